"""Points, which the curriculum decides: written into a lesson's text, and told when they change."""

import json
import re

from autograde.course import CURRICULUM, Lesson, text_of
from autograde.files import write_whole

HEAD = re.compile(
    r'^# %%.*?nbgrader=(?P<about>\{[^\n]*?"grade_id": "(?P<name>\w+)"[^\n]*?\})', re.M
)
HEADING = re.compile(r"^(?P<before># #+ .*`(?P<name>\w+)` \()(?P<points>[\d.]+ points?)\b", re.M)
"""The heading of an exercise or a question in a lesson's text, with its name and points."""


def with_points(lesson: Lesson, text: str) -> str:
    """Return a lesson's text with the curriculum's points in its cells' metadata and headings."""

    def head(found: re.Match[str]) -> str:
        points, about = lesson.graded_cells.get(found["name"]), json.loads(found["about"])
        if points is None or not about.get("grade") or about.get("points") == points:
            return found[0]
        about["points"] = int(points) if points.is_integer() else points
        return found[0].replace(found["about"], json.dumps(about, sort_keys=True))

    def heading(found: re.Match[str]) -> str:
        points = lesson.worth.get(found["name"])
        if points is None or float(found["points"].split()[0]) == points:
            return found[0]
        return found["before"] + in_words(points)

    return HEADING.sub(heading, HEAD.sub(head, text))


def in_words(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"


def write_points(lesson: Lesson) -> None:
    """Write the curriculum's points into the lesson's text, where it says others."""
    text = text_of(lesson)
    if (right := with_points(lesson, text)) != text:
        write_whole(lesson.text, right.encode())


def changes(lesson: Lesson, known: dict[str, float]) -> list[str]:
    """Say what is worth other points than the gradebook knows, or than a cell of the text says."""
    cells = lesson.graded_cells
    said = [
        f"{_shown(name)} is worth {in_words(points)} instead of {known[name]:g}"
        for name, points in cells.items()
        if known.get(name, points) != points
    ]
    for found in HEAD.finditer(text_of(lesson)):
        name, written = found["name"], json.loads(found["about"]).get("points")
        if name in cells and written not in (None, cells[name], known.get(name)):
            said.append(
                f"{_shown(name)} is worth {in_words(cells[name])}, as {CURRICULUM} says; "
                f"its cell said {written}"
            )
    return said


def _shown(cell: str) -> str:
    return cell.removeprefix("test_")
