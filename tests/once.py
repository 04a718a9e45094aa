"""What a test run makes once, whichever of its workers asks for it first."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

shared_folder = Path()
"""Of all workers of this test run; tests/conftest.py sets it."""


def made(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` fills; nobody may change it afterwards."""
    folder, done = shared_folder / f"once-{name}", shared_folder / f"once-{name}.done"
    with (shared_folder / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
