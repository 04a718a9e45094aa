"""Import and try once what a lesson uses, so that kernels need not.

That is what the grader needs, and what the course's package imports: torch, for some.
"""

import base64
import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import autograde.notebook
import autograde.sandbox.inside.kernel  # noqa: F401
from autograde.rubric import session
from autograde.rubric.probes.lines import rubric
from autograde.values.loaded_torch import compute_on_one_thread, loaded_torch
from autograde.values.packing import pack

# what ipykernel and IPython import late, in their first seconds or at the first error
LATE = (
    "encodings.utf_16_be", "faulthandler", "ipykernel.debugger", "ipykernel.heartbeat",
    "ipykernel.iostream", "ipykernel.ipkernel",
    "ipykernel.kernelapp", "ipykernel.parentpoller", "ipykernel.subshell_manager",
    "ipykernel.zmqshell", "IPython.core.completerlib", "IPython.core.debugger",
    "IPython.core.logger", "IPython.core.magics", "IPython.core.oinspect",
    "IPython.core.pylabtools", "IPython.extensions.storemagic", "IPython.paths",
    "ipywidgets", "jedi", "matplotlib_inline.backend_inline", "multiprocessing.util", "psutil",
    "sqlite3", "stack_data", "tornado.platform.asyncio", "zmq.asyncio",
    "zmq.eventloop.zmqstream",
)  # fmt: skip


def import_late() -> None:
    """Import what a kernel would in its first seconds."""
    for name in LATE:
        with suppress(ImportError):  # a later version may have dropped or moved it
            importlib.import_module(name)


def try_lesson(package: str) -> None:
    """Import the course's package, and run once what is slow the first time."""
    if package:
        importlib.import_module(package)
    compute_on_one_thread()
    if loaded_torch():
        _try_torch()
        _try_rubric(_lines_of_torch, "softmax")
    _try_rubric(_lines)


def try_the_rest() -> None:
    """Run once what only some kernels need; training alone imports a thousand modules."""
    if (torch := loaded_torch()) is None:
        return
    torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))


def _try_torch() -> None:
    import torch
    from torch import nn

    layer = nn.Linear(4, 4)
    x = torch.ones(2, 3, 4)
    weights = torch.softmax(layer(x) @ layer(x).mT / 2, dim=-1)
    weights = nn.functional.dropout(weights.masked_fill(torch.eye(3, dtype=torch.bool), 0.0), 0.1)
    (weights @ x).sum().backward()
    repr(x)
    repr(layer)


def _try_rubric(lines: Callable[[Any], None], *forbidden: str) -> None:
    with session.recording(1) as recordings:
        rubric("warm", forbids=forbidden)(lines)
    base64.b64encode(pack(recordings["warm"]))


def _lines(r: Any) -> None:
    r.call("call", abs, -1.5)
    r.refuses("refuses", float, ("x",))
    r.unchanged("unchanged")


def _lines_of_torch(r: Any) -> None:
    import torch

    r.call("call", torch.relu, r.normal(2, 2))
    layer = r.layer(torch.nn.Linear, d_in=2, d_out=2)
    layer.parameters("weight", "d_out d_in")
    r.conventions(torch.relu, r.normal(2, 2))
    r.forbids("forbids", os.path.join)
