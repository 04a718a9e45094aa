"""Each lesson where its notebook is the only file there, as in a hosted notebook service."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import HERE
from nbclient import NotebookClient

from autograde.course import grade_id, lessons
from autograde.rubric.text import of_points

PARTS = ("autograde", "notebooks")
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


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_works_alone(
    name: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to its first rubric, with the right answer, where nothing else is."""
    lesson = lessons(HERE)[name]
    first = lesson.exercises[0]
    solution = nbformat.read(lesson.solution_notebook, as_version=4)
    right = next(cell.source for cell in solution.cells if grade_id(cell) == first.name)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    place = [grade_id(cell) for cell in nb.cells].index(first.rubric_cell)
    nb.cells = nb.cells[: place + 1]
    for cell in nb.cells:
        cell.source = right if grade_id(cell) == first.name else cell.source
    nb.cells.append(nbformat.v4.new_code_cell("import autograde; autograde.__file__"))
    nbformat.write(nb, tmp_path / "alone.ipynb")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    client = NotebookClient(nb, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    panel = nb.cells[place].outputs[0].data["text/plain"]
    assert panel.startswith(f"{first.name}: {of_points(first.points, first.points)}")
    assert str(installed) in nb.cells[-1].outputs[0].data["text/plain"]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_says_how_to_install_the_package(name: str) -> None:
    nb = nbformat.read(lessons(HERE)[name].released_notebook, as_version=4)
    assert "`%pip install attention_notebooks-*.whl`" in nb.cells[0].source
    assert "http" not in nb.cells[0].source
