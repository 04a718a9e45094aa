"""Judging one submission, as a job for a worker on the machine where the course is."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course import Lesson
from autograde.grading.job import Result, put_result
from autograde.grading.nbgrader_steps import judge_and_show
from autograde.grading.pages import as_bytes, from_bytes
from autograde.grading.verdicts import NOTE


@dataclass(frozen=True)
class Judged:
    """A graded notebook, with verdicts in its metadata, and how long it ran."""

    nb: bytes
    seconds: float


def judge_result(lesson: Lesson, nb: bytes, result: bytes | None) -> Judged | None:
    """Put a result into the notebook that it is of, and judge it; None if it cannot be read.

    Args:
        lesson: the version of it that students got.
        nb: the restored notebook.
        result: what ran; None where nothing could run, for the reason in the notebook's note.

    Raises:
        CourseError: the lesson has no answer keys.
    """
    restored, seconds = from_bytes(nb), 0.0
    if result is not None:
        ran = Result.readable(result)
        if ran is None:
            return None
        put_result(restored, ran, restored.metadata[NOTE])
        seconds = ran.seconds
    judge_and_show(lesson, restored, _released(lesson.released_notebook))
    return Judged(as_bytes(restored), seconds)


@lru_cache(maxsize=4)
def _released(path: Path) -> NotebookNode:
    """A worker lives as long as one run, in which this file stays as it is."""
    return NotebookNode(nbformat.read(path, as_version=4))
