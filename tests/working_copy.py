"""A project for tests, as a student has it: lessons in notebooks/, and nothing of the course."""

import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
from classes import reference_answers
from conftest import HERE
from nbformat import NotebookNode

from autograde.course.cells import named_cells
from autograde.course.lessons import lessons
from autograde.workspace.project import Project
from autograde.workspace.update import prepare

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"


def make_project(root: Path, names: tuple[str, ...] = (LESSON,)) -> Project:
    """A folder with these lessons and a working copy of them."""
    for name in names:
        shutil.copytree(HERE / "notebooks" / name, root / "notebooks" / name)
    project = Project(root, root / "notebooks")
    prepare(project)
    return project


def released(project: Project) -> Path:
    return project.root / "notebooks" / LESSON / f"{NOTEBOOK}.ipynb"


def mine(project: Project) -> Path:
    return project.work / LESSON / f"{NOTEBOOK}.ipynb"


def change(path: Path, how: Callable[[dict[str, NotebookNode]], None]) -> None:
    """Change cells of a notebook's file, by grade_id."""
    nb = nbformat.read(path, as_version=4)
    how(named_cells(nb))
    nbformat.write(nb, path)


def answer_all(path: Path, **others: str) -> None:
    """Write right answers into a notebook, or others in their place."""
    texts = {**reference_answers(lessons(HERE)[LESSON]), **others}

    def write(cells: dict[str, NotebookNode]) -> None:
        for name, cell in cells.items():
            cell.source = texts.get(name, cell.source)

    change(path, write)
