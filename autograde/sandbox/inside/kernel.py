"""The kernel itself: an ordinary ipykernel in a confined process with a fresh start."""

import gc
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ipykernel.kernelapp import IPKernelApp
from IPython.core.pylabtools import activate_matplotlib
from matplotlib_inline.backend_inline import configure_inline_support

from autograde.sandbox.both_sides import HOME, KernelLimits
from autograde.sandbox.inside.confine import confine
from autograde.sandbox.inside.messages import CONFIG
from autograde.values.loaded_torch import loaded_torch

TORCH_START = 67280421310721
"""The seed that torch has in every new process."""
NICE = 2
"""Added to the kernel's nice value: the process that watches it and the grader come first."""
CONNECTION = Path(HOME, ".connection.json")


def run(request: dict[str, Any], limits: KernelLimits, ready: Callable[[], None]) -> None:
    """Become a kernel; returns when it is shut down."""
    os.setsid()
    os.nice(NICE)
    os.chdir(HOME)
    sys.path.insert(0, "")  # as in every kernel: modules beside the notebook
    confine(limits)
    _forget_random_state()
    CONNECTION.write_text(json.dumps(request["connection"]))
    app: Any = IPKernelApp.instance(
        connection_file=str(CONNECTION), parent_handle=0, log_level=50, quiet=True
    )
    app.update_config(CONFIG)
    app.config.HistoryManager.hist_file = ":memory:"
    app.config.IPythonKernel._execute_sleep = 0  # it flushes its output before it answers anyway
    app.initialize([])
    CONNECTION.unlink()
    _show_figures(app.shell)
    gc.enable()
    ready()
    app.start()
    os._exit(0)


def _show_figures(shell: Any) -> None:
    """Do what importing pyplot does in a kernel; the template imported it, but is not a kernel."""
    activate_matplotlib(os.environ["MPLBACKEND"])
    configure: Any = configure_inline_support
    configure(shell, os.environ["MPLBACKEND"])


def _forget_random_state() -> None:
    """Seed as in a new process: torch with its usual seed, NumPy and Python from the system."""
    if torch := loaded_torch():
        torch.default_generator.manual_seed(TORCH_START)  # there is no other device here
    np.random.seed()
    random.seed()
