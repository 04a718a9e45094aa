"""The progress in a lesson and in the course, for the student alone.

Only practice writes here, one small file for each exercise, beside the working copy. Grading
neither writes nor reads it.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from autograde.rubric.panel import COLOURS, box, number

STATE = ".lessons"
"""The folder in a working copy that holds what `autograde update` and practice remember."""
INDEX = "lessons.json"

_here: dict[str, float] = {}
"""The points of the exercises whose rubrics ran in this kernel."""


@dataclass(frozen=True)
class Standing:
    """One lesson: what its exercises are worth, and the points of those that were tried."""

    lesson: str
    worth: Mapping[str, float]
    points: Mapping[str, float]

    @property
    def solved(self) -> list[str]:
        return [name for name in self.worth if self.points.get(name, 0) >= self.worth[name]]

    @property
    def next(self) -> str:
        """The first exercise that is not solved, or ""."""
        return next((name for name in self.worth if name not in self.solved), "")

    def in_words(self) -> str:
        have = number(sum(self.points.get(name, 0) for name in self.worth))
        return (
            f"{len(self.solved)} of {len(self.worth)} exercises right, "
            f"{have} of {number(sum(self.worth.values()))} points"
        )


def remember(exercise: str, points: float, *, keep: bool = True) -> None:
    """Note the points of a rubric that has just run, for this kernel and, to keep, for the next.

    They are kept in a working copy alone; elsewhere the notebook stands by itself.
    """
    _here[exercise] = points
    folder = Path.cwd()
    if not keep or not (folder.parent / STATE / INDEX).is_file():
        return
    path = record_file(folder.parent, folder.name, exercise)
    with suppress(OSError):  # a full or read-only disk is no reason to fail the rubric
        path.parent.mkdir(parents=True, exist_ok=True)
        # two kernels may write at once: each file is put in place whole, and the last one counts
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"points": points, "ran": _ran(exercise)}, file)
        Path(fresh).replace(path)


def _ran(exercise: str) -> list[str]:
    """Return digests of the cells run in this kernel that name an exercise."""
    history = getattr(get_ipython(), "history_manager", None)
    texts = history.input_hist_raw if history is not None else []
    return sorted({digest(text) for text in texts if exercise in text})


def digest(text: str) -> str:
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def ran(working: Path, lesson: str, exercise: str) -> list[str]:
    """Return digests of the cells that had run when the rubric of an exercise last did."""
    found = _record(working, lesson, exercise).get("ran")
    return found if isinstance(found, list) else []


def record_file(working: Path, lesson: str, exercise: str) -> Path:
    return working / STATE / "progress" / lesson / f"{exercise}.json"


def of_lesson(worth: Mapping[str, float]) -> Standing:
    """Return the standing in the lesson of the current folder."""
    folder = Path.cwd()
    return Standing(folder.name, worth, {**_kept(folder.parent, folder.name, worth), **_here})


def of_course(working: Path) -> list[Standing]:
    """Return the standing in each lesson of a working copy."""
    return [
        Standing(name, worth, _kept(working, name, worth))
        for name, worth in _index(working).items()
    ]


def _index(working: Path) -> dict[str, dict[str, float]]:
    """Return the lessons of a working copy, and what their exercises are worth."""
    found = _read(working / STATE / INDEX)
    if not isinstance(found, dict):
        return {}
    return {
        str(lesson): {str(name): float(points) for name, points in worth.items()}
        for lesson, worth in found.items()
        if isinstance(worth, dict) and all(isinstance(p, int | float) for p in worth.values())
    }


def _kept(working: Path, lesson: str, worth: Mapping[str, float]) -> dict[str, float]:
    found = {name: _record(working, lesson, name).get("points") for name in worth}
    return {name: float(p) for name, p in found.items() if isinstance(p, int | float)}


def _record(working: Path, lesson: str, exercise: str) -> dict[str, Any]:
    found = _read(record_file(working, lesson, exercise))
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> Any:
    """Return the JSON in a file; None when the file is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


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
