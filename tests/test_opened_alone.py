"""Each lesson where its notebook is the only file there, as in a hosted notebook service."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import HERE
from nbformat import NotebookNode
from nightly import nightly

from autograde.course.cells import grade_id, named_cells
from autograde.course.lessons import Lesson, lessons
from autograde.notebook.explaining import is_demonstration
from autograde.values.text import of_points

PARTS = ("autograde", "attention_course", "notebooks")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
NAMES = list(lessons(HERE))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it, and nothing else of the project."""
    folder = tmp_path_factory.mktemp("installed")
    for name in PARTS:
        shutil.copytree(
            HERE / name, folder / "copy" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in FILES:
        shutil.copy(HERE / name, folder / "copy")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    target = ["--no-build-isolation", "--target", str(folder / "site"), str(folder / "copy")]
    subprocess.run([*pip, *target], check=True)
    shutil.rmtree(folder / "copy")
    return folder / "site"


RUN = """
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
import autograde.notebook

for folder in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    os.chdir(folder)
    shell = InteractiveShell.instance()
    with open("alone.ipynb") as file:
        cells = json.load(file)["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            with capture_output() as captured:
                done = shell.run_cell("".join(cell["source"]))
            done.raise_error()
    with open("said.json", "w") as file:
        json.dump([captured.outputs[0].data["text/plain"], autograde.__file__], file)
    os._exit(0)
"""
"""Runs each notebook in a copy of one process, which has imported what takes long."""


@pytest.fixture(scope="module")
def said(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What each lesson's first rubric says of the right answer, and where the package lies."""
    folders = {name: tmp_path_factory.mktemp(name) for name in NAMES}
    for name, folder in folders.items():
        nbformat.write(up_to_the_first_rubric(lessons(HERE)[name]), folder / "alone.ipynb")
    command = [sys.executable, "-c", RUN, *map(str, folders.values())]
    env = {**os.environ, "PYTHONPATH": str(installed), "IPYTHONDIR": str(installed)}
    subprocess.run(command, cwd=installed.parent, env=env, check=True)
    found = {name: folder / "said.json" for name, folder in folders.items()}
    return {name: json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def up_to_the_first_rubric(lesson: Lesson) -> NotebookNode:
    """A lesson whose first answer is right, without what follows."""
    first = lesson.exercises[0]
    solution = nbformat.read(lesson.solution_notebook, as_version=4)
    right = named_cells(solution)[first.name].source
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    place = [grade_id(cell) for cell in nb.cells].index(first.rubric_cell)
    nb.cells = [cell for cell in nb.cells[: place + 1] if not is_demonstration(cell.source)]
    for cell in nb.cells:
        cell.source = right if grade_id(cell) == first.name else cell.source
    return nb


@pytest.mark.parametrize("name", NAMES)
@nightly
def test_a_lesson_works_alone(name: str, said: dict[str, tuple[str, str]], installed: Path) -> None:
    """Up to its first rubric, with the right answer, where nothing else is."""
    first = lessons(HERE)[name].exercises[0]
    panel, package = said[name]
    assert panel.startswith(f"{first.name}: {of_points(first.points, first.points)}")
    assert package.startswith(str(installed))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_or_the_last_says_how_to_install_the_package(name: str) -> None:
    nb = nbformat.read(lessons(HERE)[name].released_notebook, as_version=4)
    ends = [cell.source for cell in (nb.cells[0], nb.cells[-1])]
    (note,) = [text for text in ends if "`%pip install attention_notebooks-*.whl`" in text]
    assert "http" not in note
