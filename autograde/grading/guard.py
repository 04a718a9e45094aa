"""One run at a time, room on the disk, a gradebook that can be read."""

import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from traitlets.config import Config

from autograde.course import CourseError
from autograde.grading.seeds import state_folder

COPIES = 5
"""How many copies of the gradebook are kept."""
LEAST_FREE_BYTES = 50_000_000
FULL = (errno.ENOSPC, errno.EDQUOT)
GO_ON = "What was finished is kept: run autograde grade again to go on."


class Stop(CourseError):
    """Nothing more can be graded, whatever the submission; the message says why."""


@contextmanager
def one_run(root: Path) -> Iterator[None]:
    """Hold the course for this run; it is let go when the process ends, however it does.

    Raises:
        Stop: another run holds it, or nothing can be written in the course.
    """
    try:
        path = state_folder(root) / "lock"
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise Stop(f"cannot write in the course {root}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Stop(
                f"{root} is being graded already, by {file.read().strip() or 'another process'}. "
                "Wait until that is done."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} since {datetime.now():%Y-%m-%d %H:%M:%S}")
        file.flush()
        yield


def require_room(root: Path) -> None:
    """Raises Stop when the disk is (nearly) full or nothing can be written in the course."""
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES:
        raise Stop(
            f"{free / 1e6:.0f} MB are free on the disk of {root}; grading needs "
            f"{LEAST_FREE_BYTES / 1e6:.0f} MB at least. Make room first. {GO_ON}"
        )
    for folder in (root, *(root / name for name in ("autograded", "feedback"))):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise Stop(f"cannot write in {folder}: grading changes it")


def why_disk(root: Path, error: OSError) -> str:
    """What an error of the file system means for whoever grades."""
    if error.errno in FULL:
        return f"the disk is full ({error.filename or root}). Make room. {GO_ON}"
    return f"{error.filename or root}: {error.strerror}. {GO_ON}"


def copy_gradebook(root: Path, db_url: str) -> Path | None:
    """Copy an SQLite gradebook and look whether it is sound; other databases have their own ways.

    Raises:
        Stop: the gradebook is damaged, or cannot be copied.
    """
    url = make_url(db_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    gradebook, folder = Path(url.database), state_folder(root) / "gradebooks"
    copies = sorted(folder.glob("gradebook-*.db"))
    target = folder / f"gradebook-{datetime.now():%Y%m%d-%H%M%S-%f}.db"
    fresh = folder / "copying"
    try:
        folder.mkdir(exist_ok=True)
        fresh.unlink(missing_ok=True)
        # not read-only: what a killed run left half written is rolled back when it is opened
        address = f"{gradebook.resolve().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(address, uri=True)) as old,
            closing(sqlite3.connect(fresh)) as new,
        ):
            old.backup(new)
            (verdict,) = new.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        fresh.replace(target)
    except sqlite3.OperationalError as error:
        fresh.unlink(missing_ok=True)
        raise Stop(f"{gradebook} cannot be copied to {folder}: {error}") from error
    except sqlite3.DatabaseError as error:
        fresh.unlink(missing_ok=True)
        raise Stop(f"the gradebook {gradebook} is damaged: {error}. {last_copy(root)}") from error
    for old_copy in copies[: -(COPIES - 1)]:
        old_copy.unlink()
    return target


@contextmanager
def open_gradebook(config: Config) -> Iterator[Gradebook]:
    """The course's gradebook.

    Raises:
        Stop: it cannot be opened, or what is done with it fails.
    """
    course = CourseDirectory(config=config)
    try:
        with Gradebook(course.db_url, course.course_id) as gradebook:
            # each submission gets a session of its own, so that nothing in it is old; else every
            # row would be read again after each of nbgrader's commits
            gradebook.db.remove()
            gradebook.db.configure(expire_on_commit=False)
            yield gradebook
    except DBAPIError as error:
        where = make_url(course.db_url).render_as_string(hide_password=True)
        copy = last_copy(Path(course.root))
        raise Stop(f"the gradebook {where} cannot be used: {error.orig}. {copy}") from error


def last_copy(root: Path) -> str:
    """Where the newest copy of the gradebook is, in words."""
    copies = sorted((state_folder(root) / "gradebooks").glob("gradebook-*.db"))
    if not copies:
        return "There is no copy of it."
    return f"The last copy, from before the last run, is {copies[-1]}."
