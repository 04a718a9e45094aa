"""Imports that an interruption must not break off.

PyTorch loads a part of itself when the first optimizer is made, which takes seconds. Python forgets
a package whose import was broken off and keeps the modules in it, so it never loads whole again:
until the kernel restarted, every training would fail.
"""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

LOADED_LATE = {"torch._dynamo", "sympy", "mpmath"}
SOON = 0.1
"""Seconds from the end of a module's code until the import machinery has kept it for sure."""


class WholeImports(MetaPathFinder):
    """Finds these packages, and has an interruption wait until each is loaded."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names or threading.current_thread() != threading.main_thread():
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and (loader := spec.loader) is not None:
            execute = loader.exec_module

            def execute_whole(module: ModuleType) -> None:
                with _interrupted_later():
                    execute(module)

            loader.exec_module = execute_whole  # type: ignore[method-assign]
        return spec


def import_whole(names: set[str] = LOADED_LATE) -> None:
    """Have these packages loaded whole from now on."""
    if not any(isinstance(each, WholeImports) for each in sys.meta_path):
        sys.meta_path.insert(0, WholeImports(names))


@contextmanager
def _interrupted_later() -> Iterator[None]:
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            threading.Timer(SOON, _thread.interrupt_main).start()
