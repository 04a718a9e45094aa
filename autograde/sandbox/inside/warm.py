"""Import what a lesson uses, so that kernels need not.

That is what the grader needs, and what the course's package imports: torch, for some.
"""

import importlib
import sys
from contextlib import suppress

import autograde.notebook
import autograde.sandbox.inside.kernel  # noqa: F401
from autograde.values.dispatch import LIBRARIES, module_named
from autograde.values.loaded_torch import compute_on_one_thread, loaded_torch

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


def import_lesson(package: str) -> None:
    """Import the course's package, and what records the values of its libraries."""
    if package:
        importlib.import_module(package)
    compute_on_one_thread()
    for library, module in LIBRARIES.items():
        if library in sys.modules:
            module_named(module)


def try_the_rest() -> None:
    """Run once what only some kernels need; training alone imports a thousand modules."""
    if (torch := loaded_torch()) is None:
        return
    torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))
