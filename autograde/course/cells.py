"""The cells of a notebook that the lesson has named, and what their names say."""

from typing import TYPE_CHECKING

from autograde.values.text import digest

if TYPE_CHECKING:  # nbformat is slow to import; commands that only look do without
    from nbformat import NotebookNode

    from autograde.course.lessons import Lesson

ANSWER = {"grade": False, "solution": True, "locked": False}
RUBRIC = {"grade": True, "solution": False, "locked": True}
WRITTEN = {"grade": True, "solution": True, "locked": False}
OTHER = {"grade": False, "solution": False, "locked": True}
"""What nbgrader has to know of a named cell; others are questions and what a lesson gives."""


def grade_id(cell: "NotebookNode") -> str | None:
    """Return the nbgrader name of a cell, if it has one."""
    about = cell.metadata.get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) and name else None


def exercise_of(cell: "NotebookNode") -> str:
    """Return the exercise that a cell is the rubric of; an empty string for any other cell."""
    name = grade_id(cell) or ""
    return name.removeprefix("test_") if name.startswith("test_") else ""


def code_cells(nb: "NotebookNode") -> list["NotebookNode"]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def id_of_text(cell: "NotebookNode") -> str:
    """Return the id that a build gives a cell without a name: a digest of its text."""
    return digest(f"{cell.cell_type}\n{cell.source}")[:12]


def named_cells(nb: "NotebookNode") -> dict[str, "NotebookNode"]:
    """Return the cells of a notebook that have an nbgrader name, by that name."""
    return {name: cell for cell in nb.cells if (name := grade_id(cell))}


def listed_cells(lesson: "Lesson") -> dict[str, dict[str, bool]]:
    """Return what nbgrader has to know of each cell that the curriculum wants, by its name."""
    listed: dict[str, dict[str, bool]] = {}
    for each in lesson.exercises:
        listed |= {each.name: ANSWER, each.rubric_cell: RUBRIC}
    for question in lesson.written:
        listed |= {question.question_cell: OTHER, question.name: WRITTEN}
    return listed


def describe(nb: "NotebookNode", lesson: "Lesson") -> "NotebookNode":
    """Complete the cells of a lesson's text, of which the author writes only the names.

    What else a head says of type and points counts for nothing. Rubric cells are folded, and an
    error in a cell that is graded does not end Run All.
    """
    listed = listed_cells(lesson)
    for cell in nb.cells:
        name, metadata = cell.metadata.pop("grade_id", None) or grade_id(cell), cell.metadata
        metadata.pop("nbgrader", None)
        if not isinstance(name, str):
            continue
        kind = listed.get(name, OTHER)
        metadata["nbgrader"] = {"grade_id": name, "schema_version": 3, "task": False, **kind}
        if kind["grade"]:
            points = lesson.graded_cells[name]
            metadata["nbgrader"]["points"] = int(points) if points.is_integer() else points
        if kind["grade"] and cell.cell_type == "code":
            tags = [tag for tag in metadata.get("tags", []) if tag != "raises-exception"]
            metadata["tags"] = ["raises-exception", *tags]
        if kind is RUBRIC:
            metadata["jupyter"] = {**metadata.get("jupyter", {}), "source_hidden": True}
    return nb
