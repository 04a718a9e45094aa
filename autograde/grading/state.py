"""Keep lock, secret and results in the course's folder `.autograde/`.

Two things are remembered of a submission. `ran/LESSON/STUDENT` holds the result of its last run:
code runs again only if what its kernel sees or the grader has changed, whoever grades.
`graded/LESSON/STUDENT` says by what it was last graded: it is judged again only if that has
changed. Each file is put in place whole: a killed run leaves the old one or the new one.
"""

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from autograde.course.lessons import CourseError, state_folder
from autograde.files import FRESH, write_whole
from autograde.grading.submission import Entry, Place
from autograde.values.packing import from_plain

LEAST_FREE_BYTES = 50_000_000
FULL = (errno.ENOSPC, errno.EDQUOT)
GO_ON = "What was finished is kept: run autograde grade again to go on."


class Halted(CourseError):
    """Nothing more can be graded, whatever the submission; the message says why."""


def require_locks() -> None:
    """Raises Halted on Windows, where nobody could be kept from grading at the same time."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        raise Halted("Grading a class needs Linux. On Windows, use WSL.") from None


@contextmanager
def one_run(root: Path) -> Iterator[None]:
    """Lock the course for this run; the lock is released when the process ends, however it does.

    Raises:
        Halted: another run holds it, nothing can be written in the course, or this is Windows.
    """
    require_locks()
    import fcntl

    try:
        path = state_folder(root) / "lock"
        path.parent.mkdir(exist_ok=True)
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise Halted(f"cannot write in the course {root}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Halted(
                f"{root} is being graded already, by {file.read().strip() or 'another process'}. "
                "Wait until that is done."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} since {datetime.now():%Y-%m-%d %H:%M:%S}")
        file.flush()
        yield


def clear_the_way(root: Path) -> None:
    """Remove what a killed run was writing; only the process that holds the lock may call this.

    Raises:
        Halted: the disk is (nearly) full, or the course or gradebook may not be written.
    """
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES:
        raise Halted(
            f"{free / 1e6:.0f} MB are free on the disk of {root}; grading needs "
            f"{LEAST_FREE_BYTES / 1e6:.0f} MB at least. Make room first. {GO_ON}"
        )
    for path in (root, root / "gradebook.db"):  # nbgrader names neither when it cannot write
        if path.exists() and not os.access(path, os.W_OK):
            raise Halted(f"cannot write to {path}: grading changes it")
    for folder in ("ran", "graded"):
        for left in (state_folder(root) / folder).rglob(f".*{FRESH}"):
            left.unlink()


def course_secret(root: Path) -> bytes:
    """Return the course's secret, made on first use and readable by its owner alone."""
    path = state_folder(root) / "secret"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_name(f"secret.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))
        with suppress(FileExistsError):  # another process was first; then its secret counts
            os.link(fresh, path)
        fresh.unlink()
    return bytes.fromhex(path.read_text())


def read_entry(place: Place) -> Entry | None:
    """Read how a submission was last graded; None if it never was or that cannot be read."""
    try:
        return from_plain(Entry, json.loads(_kept("graded", place).read_bytes()))
    except (OSError, ValueError):
        return None


def keep_entry(place: Place, entry: Entry) -> None:
    write_whole(_kept("graded", place), json.dumps(asdict(entry)).encode())


def read_ran(place: Place) -> bytes:
    """Read the result of a submission's last run, perhaps cut short; empty if it never ran."""
    try:
        return _kept("ran", place).read_bytes()
    except OSError:
        return b""


def keep_ran(place: Place, ran: bytes) -> None:
    write_whole(_kept("ran", place), ran)


def _kept(folder: str, place: Place) -> Path:
    return state_folder(place.lesson.root) / folder / place.lesson.name / place.student
