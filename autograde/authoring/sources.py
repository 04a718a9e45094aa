"""Lesson text: the curriculum's points in it, and the notebooks made from it."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course.cells import grade_id, id_of_text
from autograde.course.lesson_files import parse_text, text_of
from autograde.course.lessons import CURRICULUM, CourseError, Lesson
from autograde.files import write_whole
from autograde.values.text import digest

MADE_FROM = "made_from"
"""In the metadata of a notebook written here: digests of the lesson's text and of what it says."""

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

TYPED_POINTS = re.compile(r'^# %%.*"grade_id": "(\w+)".*"points": ([\d.]+)', re.M)
"""What somebody typed into nbgrader's panel for a cell of a lesson's text: name and points."""
HEADING = re.compile(
    r"^(?P<before>(?:# )?#+ .*`(?P<name>\w+)` \()(?P<points>[\d.]+ points?)\b", re.M
)
"""The heading of an exercise or a question in a lesson's text, with its name and points."""


def identify(nb: NotebookNode) -> NotebookNode:
    """Give every cell an id that depends on its name or text alone, and plain metadata.

    A named cell keeps its grade_id; another takes a digest of its text, numbered if it repeats.
    """
    seen: Counter[str] = Counter()
    for cell in nb.cells:
        name = grade_id(cell) or id_of_text(cell)
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
        cell.metadata.pop("jupytext", None)
    nb.metadata = NotebookNode(kernelspec=KERNELSPEC, language_info={"name": "python"})
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def source_notebook(lesson: Lesson) -> NotebookNode:
    """Return the lesson's text as a notebook with repeatable ids and the curriculum's points."""
    return identify(parse_text(lesson, text_with_points(lesson, text_of(lesson))))


def sync(lesson: Lesson) -> None:
    """Write the lesson's text as the notebook that nbgrader looks for, where it is out of date.

    Raises:
        CourseError: there is no text, or the notebook has newer changes that the text lacks;
            nothing is overwritten.
    """
    path, text = lesson.source_notebook, text_with_points(lesson, text_of(lesson))
    made_from, there = _read(path)
    described = digest(f"{lesson.graded_cells}\n{text}")
    if made_from == [described, there]:
        return  # seen without parsing the text
    nb = identify(parse_text(lesson, text))
    written = _written(nb)
    changed = there not in ("", written, *made_from)
    if changed and path.stat().st_mtime > lesson.text.stat().st_mtime:
        raise CourseError(
            f"{path} has changes that {lesson.text.name} lacks. Open the .py file as a "
            f"notebook and make them there, points in {CURRICULUM}; then delete the .ipynb file."
        )
    nb.metadata[MADE_FROM] = [described, written]
    path.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")


def _read(path: Path) -> tuple[list[str], str]:
    """Return what a notebook was made from, and a digest of what is written in it, or nothing."""
    try:
        plain = json.loads(path.read_bytes())
        return plain["metadata"].get(MADE_FROM, []), _written(plain)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return [], ""


def _written(nb: Any) -> str:
    """Return a digest of what an author writes in cells: types, texts, names, points and tags."""
    cells = [
        (cell["cell_type"], "".join(cell["source"]), about.get("nbgrader"), about.get("tags"))
        for cell in nb["cells"]
        for about in [cell["metadata"]]
    ]
    return digest(json.dumps(cells, sort_keys=True))


def text_with_points(lesson: Lesson, text: str) -> str:
    """Return a lesson's text with the curriculum's points in its headings."""

    def heading(found: re.Match[str]) -> str:
        points = lesson.worth.get(found["name"])
        if points is None or float(found["points"].split()[0]) == points:
            return found[0]
        return found["before"] + in_words(points)

    return HEADING.sub(heading, text)


def in_words(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"


def write_points(lesson: Lesson) -> None:
    """Write the curriculum's points into the headings of a lesson's text that say others."""
    text = text_of(lesson)
    if (right := text_with_points(lesson, text)) != text:
        write_whole(lesson.text, right.encode())


def changes(lesson: Lesson, known: dict[str, float]) -> list[str]:
    """Say what is worth other points than the gradebook knows, or than a cell's head says."""
    cells = lesson.graded_cells
    said = [
        f"{name.removeprefix('test_')} is worth {in_words(points)} instead of {known[name]:g}"
        for name, points in cells.items()
        if known.get(name, points) != points
    ]
    for name, typed in TYPED_POINTS.findall(text_of(lesson)):
        if name in cells and float(typed) != cells[name]:
            said.append(
                f"{name.removeprefix('test_')} is worth {in_words(cells[name])}, as {CURRICULUM} "
                f"says; the {typed} of its cell count for nothing: delete them there"
            )
    return said
