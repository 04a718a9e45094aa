"""The cells of a notebook that the lesson has named, and what their names say."""

from typing import TYPE_CHECKING

from autograde.values.text import digest

if TYPE_CHECKING:  # nbformat is slow to import; commands that only look do without
    from nbformat import NotebookNode


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
