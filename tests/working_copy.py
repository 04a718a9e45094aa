"""A project for tests, as a student has it: lessons in notebooks/, and nothing of the course."""

import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
from conftest import HERE
from nbformat import NotebookNode

from autograde.course import grade_id, lessons
from autograde.workspace.project import Project
from autograde.workspace.update import prepare

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"


def make_project(root: Path, names: tuple[str, ...] = (LESSON,)) -> Project:
    """A folder with these lessons and a working copy of them."""
    for name in names:
        shutil.copytree(HERE / "notebooks" / name, root / "notebooks" / name)
    project = Project(root)
    prepare(project)
    return project


def released(project: Project) -> Path:
    return project.root / "notebooks" / LESSON / f"{NOTEBOOK}.ipynb"


def mine(project: Project) -> Path:
    return project.work / LESSON / f"{NOTEBOOK}.ipynb"


def change(path: Path, how: Callable[[dict[str, NotebookNode]], None]) -> None:
    """Change cells of a notebook's file, by grade_id."""
    nb = nbformat.read(path, as_version=4)
    how({name: cell for cell in nb.cells if (name := grade_id(cell))})
    nbformat.write(nb, path)


def answers() -> dict[str, str]:
    """The instructor's own answers to the lesson."""
    lesson = lessons(HERE)[LESSON]
    nb = nbformat.read(lesson.solution_notebook, as_version=4)
    names = {exercise.name for exercise in lesson.exercises}
    return {name: cell.source for cell in nb.cells if (name := grade_id(cell)) in names}


def answer_all(path: Path, **others: str) -> None:
    """Write right answers into a notebook, or others in their place, as run once each."""
    texts = {**answers(), **others}

    def write(cells: dict[str, NotebookNode]) -> None:
        for number, (name, cell) in enumerate(cells.items(), start=1):
            cell.source = texts.get(name, cell.source)
            if cell.cell_type == "code":
                cell.execution_count = number

    change(path, write)
