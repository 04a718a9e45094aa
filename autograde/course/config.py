"""nbgrader's configuration of a course, and its converters run from Python."""

import io
import logging
import os
import sys
import warnings
from pathlib import Path

from nbgrader.converters import BaseConverter
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograde.course.lessons import CourseError, state_folder
from autograde.files import write_whole
from autograde.installed import manual
from autograde.nbgrader_settings import configure

CONFIG = "nbgrader_config.py"
EXECUTION = "NBGRADER_EXECUTION"
"""The environment variable by which nbgrader says that it is grading."""
CONFIGURE = (
    "Have it import `configure` from autograde.nbgrader_settings, and call "
    "configure(get_config(), __file__); "
    f"{manual() / 'plain.md'}, “Lessons in a course that you have”, shows how."
)

# nbgrader 0.9 fills in relations before it adds the object, which SQLAlchemy 2.1 warns of
warnings.filterwarnings("ignore", "Object of type <Submitted", SAWarning)


def course_config(root: Path) -> Config:
    """Return the nbgrader configuration of the course in a folder.

    Raises:
        CourseError: nbgrader cannot work there, the folder has none, it fails, it does not call
            `configure`, or it takes back what grading relies on.
    """
    if odd := set("*?[") & set(str(root)):
        raise CourseError(
            f"nbgrader finds no file below {root}, because of the {odd.pop()}: rename that folder, "
            "or move the course elsewhere"
        )
    if not (root / CONFIG).is_file():
        raise CourseError(f"{root / CONFIG} is missing, so nbgrader knows no course. {CONFIGURE}")
    try:
        config = PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    except CourseError:
        raise
    except Exception as error:  # it is a program, so it may fail in any way
        raise CourseError(f"{root / CONFIG} fails: {type(error).__name__}: {error}") from error
    if not config.Autograde.get("exporter_class"):
        raise CourseError(f"{root / CONFIG} lacks the settings of a course. {CONFIGURE}")
    _refuse_others(config, root)
    config.CourseDirectory.root = str(root)
    return config


def _refuse_others(config: Config, root: Path) -> None:
    """Raises CourseError for other folders, and for a list that lacks a step of the grader's."""
    configure(wanted := Config(), str(root / CONFIG))
    for section, settings in wanted.items():
        for name, value in settings.items():
            own, setting = config[section][name], f"{CONFIG}: c.{section}.{name}"
            if section == "CourseDirectory" and own != value:
                raise CourseError(
                    f"{setting} is {own!r}; a course with lessons has {value!r}. Delete that line, "
                    "and rename the folder if you have it"
                )
            if isinstance(value, list) and (lacking := [each for each in value if each not in own]):
                raise CourseError(
                    f"{setting} lacks {lacking[0]}, without which lessons are graded wrongly. "
                    "Delete that line, or add your own steps to the list with +="
                )


def ignored(root: Path) -> list[str]:
    """Return the patterns of files that stay with the teacher: nbgrader's and the course's own."""
    return list(CourseDirectory(config=course_config(root)).ignore)


def convert(converter: type[BaseConverter], config: Config) -> None:
    """Run one of nbgrader's converters.

    Raises:
        CourseError: it failed. nbgrader logs an error while handling it, then raises one of its
            own. The message gives the last error that it handled.
    """
    log, text = logging.Logger("autograde", logging.ERROR), io.StringIO()
    log.addHandler(logging.StreamHandler(text))
    handled: list[BaseException | None] = []

    def note(record: logging.LogRecord) -> bool:
        handled.append(sys.exception())
        return True

    log.addFilter(note)
    running = converter(coursedir=CourseDirectory(config=config), config=config, log=log)
    before = os.environ.get(EXECUTION)
    try:
        running.start()
    except NbGraderException as error:
        reason = next(filter(None, reversed(handled)), error)
        if isinstance(reason, CourseError):
            raise reason from error
        path = state_folder(Path(config.CourseDirectory.root)) / "nbgrader.log"
        write_whole(path, text.getvalue().encode())
        raise CourseError(
            f"nbgrader failed on {config.CourseDirectory.assignment_id}: "
            f"{type(reason).__name__}: {reason} (all of it: {path})"
        ) from error
    finally:  # nbgrader leaves its own value there when it fails
        os.environ.pop(EXECUTION, None)
        if before is not None:
            os.environ[EXECUTION] = before
