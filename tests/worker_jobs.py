"""Jobs for worker processes under test; this module imports next to nothing, so they start fast."""

import os
import signal
import time
from pathlib import Path


def pid() -> int:
    return os.getpid()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise ValueError("as it should")


def note_and_wait(mark: str) -> None:
    """Write down which process this is, and stay."""
    Path(mark).write_text(str(os.getpid()))
    time.sleep(60)


def time_out() -> None:
    raise TimeoutError("the database is slow")
