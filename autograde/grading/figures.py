"""Pictures that need no drawing in grading: the executed reference has them already."""

from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course import Lesson
from autograde.rubric.recording import FIGURE_MIME

Figures = dict[str, NotebookNode]


def figures_of(lesson: Lesson) -> Figures:
    """The pictures of a lesson's executed reference, as outputs, by the key of what they show.

    A kernel that is about to draw one of these names it instead. Most pictures of right answers
    are the reference's. None if the solution is not built here; then all are drawn.
    """
    path = lesson.solution_notebook
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else {}


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> Figures:
    return {
        output.metadata[FIGURE_MIME]: output
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
        if FIGURE_MIME in output.get("metadata", {}) and "image/png" in output.data
    }
