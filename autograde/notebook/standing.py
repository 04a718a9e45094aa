"""Progress in the student's kernel: what rubrics earned, and the panel that shows it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from html import escape
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
from autograde.rubric.panel import COLOURS, box


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


def to_text(here: Standing, course: list[Standing]) -> str:
    """Return the panel as text, for terminals and screen readers."""
    lines = [f"This lesson: {here.in_words()}"]
    lines += [f"  {_state(here, name):9}  {name}" for name in here.worth]
    lines += [f"Next: {here.next}"] if here.next else []
    lines += ["Other lessons:"] if course else []
    lines += [f"  {lesson.lesson}: {lesson.in_words()}" for lesson in course]
    return "\n".join(lines)


def _state(lesson: Standing, name: str) -> str:
    if name in lesson.solved:
        return "right"
    return "not right" if name in lesson.points else "not tried"


MARKS = {"right": ("✓", "right"), "not right": ("✗", "wrong"), "not tried": ("·", "idle")}
PLAIN = "list-style:none;margin:.4em 0 0;padding:0"


def to_html(here: Standing, course: list[Standing]) -> str:
    """Return the panel as HTML: no script, no address, every text escaped."""
    rows = "".join(_row(here, name) for name in here.worth)
    others = "".join(f"<li>{escape(lesson.lesson)}: {lesson.in_words()}</li>" for lesson in course)
    body = f'<ul style="{PLAIN}">{rows}</ul>'
    if course:
        body += f'<strong>Other lessons</strong><ul style="{PLAIN}">{others}</ul>'
    kind = "idle" if here.next else "right"
    return box(kind, f"This lesson: {here.in_words()}", body, "progress")


def _row(lesson: Standing, name: str) -> str:
    state = _state(lesson, name)
    mark, kind = MARKS[state]
    following = " <strong>(next)</strong>" if name == lesson.next else ""
    return (
        '<li style="margin:.15em 0"><span style="display:inline-block;width:6.5em;'
        f'color:{COLOURS[kind]};font-weight:bold">{mark} {state}</span>'
        f"{escape(name)}{following}</li>"
    )
