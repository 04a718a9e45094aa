"""The files of a lesson, read: its text, what a build wrote, what was measured."""

import json
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograde.course.cells import describe
from autograde.course.lessons import CURRICULUM, CourseError, Lesson

if TYPE_CHECKING:
    from nbformat import NotebookNode


def text_of(lesson: Lesson) -> str:
    """Return the lesson's text.

    Raises:
        CourseError: there is none, or it is not UTF-8.
    """
    if not lesson.text.is_file():
        raise CourseError(
            f"the lesson {lesson.name} has no text: {lesson.text} is missing. Put it back, or take "
            f"the lesson out of {CURRICULUM}"
        )
    return read_utf8(lesson.text)


def read_utf8(path: Path) -> str:
    """Return what an author has written in a file.

    Raises:
        CourseError: it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a mark at the start
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CourseError(f"{path}: line {line} is not UTF-8; save the file as UTF-8") from error


def read_text(lesson: Lesson) -> "NotebookNode":
    """Return the lesson's text as a notebook."""
    return parse_text(lesson, text_of(lesson))


def parse_text(lesson: Lesson, text: str) -> "NotebookNode":
    """Return a text of the lesson as a notebook of complete cells, which the caller may change."""
    return describe(deepcopy(_parse(text)), lesson)


@lru_cache(maxsize=16)
def _parse(text: str) -> "NotebookNode":
    """Parse it once for all who read it: each of its exercises does."""
    import jupytext

    nb: NotebookNode = jupytext.reads(text, fmt="py:percent")
    return nb


def read_built(path: Path, todo: str = "") -> "NotebookNode":
    """Return a notebook that a build has written.

    Args:
        todo: what to do about one that cannot be read; by default to build it again.

    Raises:
        CourseError: it is not there, or damaged, for example by a merge.
    """
    import nbformat

    todo = todo or f"Run: autograde build {path.parent.name}"
    try:
        nb: NotebookNode = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        if not isinstance(nb.get("cells"), list):
            raise ValueError("it has no cells")
    except FileNotFoundError:
        raise CourseError(f"{path.parent.name} is not built here. {todo}") from None
    except (OSError, ValueError) as error:
        raise CourseError(f"{path} cannot be read ({error}). {todo}") from error
    return nb


def read_measured(lesson: Lesson) -> dict[str, dict[str, Any]]:
    """Return what was measured of each exercise's lines; nothing before the first time.

    Raises:
        CourseError: the file is damaged, for example by a merge.
    """
    path, measured = lesson.tolerance_file, dict[str, dict[str, Any]]()
    try:
        if path.is_file():
            measured = json.loads(path.read_bytes())
    except ValueError as error:
        raise CourseError(
            f"{path} cannot be read ({error}). Delete it, then run: "
            f"autograde check --measure {lesson.name}"
        ) from error
    return measured
