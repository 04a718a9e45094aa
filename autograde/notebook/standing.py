"""Progress in the student's kernel: what rubrics earned, and what a panel says of it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from IPython.core.getipython import get_ipython

from autograde.progress import (
    INDEX,
    STATE,
    Standing,
    digest_of_cell,
    kept_points,
    note,
    of_course,
    write_page,
)


def remember(exercise: str, points: float) -> None:
    """Keep the points of a rubric that has just run, for the next kernel.

    Only a working copy keeps them; elsewhere the notebook stands by itself. Points from a run by
    nbgrader are not kept.
    """
    folder = Path.cwd()
    if "NBGRADER_EXECUTION" in os.environ or not (folder.parent / STATE / INDEX).is_file():
        return
    with suppress(OSError):  # a full or read-only disk is no reason to fail the rubric
        note(folder.parent, folder.name, exercise, points, _ran(exercise))
        write_page(folder.parent)


def _ran(exercise: str) -> list[str]:
    """Return digests of the cells run in this kernel that name an exercise."""
    history = getattr(get_ipython(), "history_manager", None)
    texts = history.input_hist_raw if history is not None else []
    return sorted({digest_of_cell(text) for text in texts if exercise in text})


def of_lesson(worth: Mapping[str, float], earned: Mapping[str, float]) -> Standing:
    """Return the standing in the current folder's lesson, untitled outside a working copy.

    Args:
        earned: points of this kernel's rubrics; they override kept points.
    """
    folder = Path.cwd()
    points = {**kept_points(folder.parent, folder.name, worth), **earned}
    for lesson in of_course(folder.parent):
        if lesson.lesson == folder.name:
            return replace(lesson, worth=worth, points=points)
    return Standing(folder.name, worth, points)


def in_paragraphs(here: Standing, others: list[Standing]) -> list[str]:
    """Return what the panel of a lesson says below its title: its exercises, then other lessons."""
    wrong = [name for name in here.worth if name in here.points and name not in here.solved]
    new = [name for name in here.worth if name not in here.points]
    states = {"Right": here.solved, "Not right": wrong, "Not tried": new}
    said = [
        f"{state}: {', '.join(f'`{name}`' for name in names)}"
        for state, names in states.items()
        if names
    ]
    said += [f"Next: `{here.next}`"] if here.next else []
    return said + [f"{lesson.lesson}: {lesson.in_words()}" for lesson in others]
