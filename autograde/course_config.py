"""nbgrader's configuration of a course, and its converters run from Python."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.converters import BaseConverter
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograde.course import CourseError

CONFIG = "nbgrader_config.py"


def course_config(root: Path) -> Config:
    """Return the nbgrader configuration of the course in a folder.

    Raises:
        CourseError: the folder has none.
    """
    if not (root / CONFIG).is_file():
        raise CourseError(f"{root / CONFIG} is missing; a course needs it for nbgrader")
    config = PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    return config


@contextmanager
def without_order_warnings() -> Iterator[None]:
    """Hide SQLAlchemy 2.1's warning about the order in which nbgrader 0.9 adds rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        yield


def convert(converter: type[BaseConverter], config: Config) -> None:
    """Run one of nbgrader's converters.

    Raises:
        CourseError: it failed; the message is our own where one of our steps raised, else the
            reason that nbgrader logged.
    """
    root = Path(config.CourseDirectory.root)
    log, text = logging.Logger("autograde", logging.ERROR), io.StringIO()
    log.addHandler(logging.StreamHandler(text))
    running = converter(coursedir=CourseDirectory(config=config), config=config, log=log)
    try:
        with without_order_warnings():
            running.start()
    except NbGraderException as error:
        logged = text.getvalue()
        _, ours, rest = logged.partition("CourseError: ")
        if ours:
            raise CourseError(rest.partition("\nThere was an error")[0].strip()) from error
        path = root / ".autograde" / "nbgrader.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text(logged)
        raise CourseError(f"nbgrader failed: {_reason(logged)} (all of it: {path})") from error


def _reason(logged: str) -> str:
    """Return the last line of the traceback in nbgrader's log, or its first line."""
    said, _, _ = logged.rpartition("\nThere was an error")
    lines = said.strip().splitlines() or logged.splitlines() or ["it said nothing"]
    return lines[-1] if said else lines[0]
