"""Demonstrations: run by students, skipped in grading and by Validate."""

from pathlib import Path

import nbformat
import pytest
from conftest import HERE
from nbformat import NotebookNode
from nbgrader.validator import Validator

from autograde.authoring import lint
from autograde.authoring.sources import source_notebook
from autograde.course.lessons import lessons
from autograde.grading.running.job import Job
from autograde.grading.running.run import run_job
from autograde.notebook.explaining import SKIPPED, is_demonstration
from autograde.rubric.names import MAX_CHARS, Names, names_of
from autograde.sandbox.wall import missing

SETUP = "from autograde.notebook import show"
TRAINING = "# demonstration: a minute of training\nlosses = [3, 2, 1]\nraise RuntimeError('it ran')"


def code(source: str, **kind: object) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(source)
    if kind:
        cell.metadata["nbgrader"] = {"schema_version": 3, "task": False, **kind}
    return cell


WALLED = pytest.param(True, marks=pytest.mark.skipif(bool(missing()), reason=missing()))


@pytest.mark.parametrize("walled", [False, WALLED])
def test_grading_skips_it_and_a_cell_that_needs_it_says_so_in_one_line(walled: bool) -> None:
    cells = (SETUP, TRAINING, "print(losses)", "print(other)", "1 + 1")
    job = Job(tuple(("", source) for source in cells), files=(), seed=7, wall=walled)
    outputs = [cell["outputs"] for cell in run_job(job).cells]
    assert outputs[1][0].text == f"{SKIPPED}\n"
    (error,) = outputs[2]
    assert error.traceback == [
        "losses comes from a demonstration, and demonstrations are not run in grading."
    ]
    assert len(outputs[3][0].traceback) > 1
    assert outputs[4][0].data["text/plain"] == "2"


def test_validate_skips_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "assert 'losses' not in globals()"
    test = code(asked, grade=True, grade_id="test_it", locked=True, points=1, solution=False)
    nb = nbformat.v4.new_notebook(cells=[code(SETUP), code(TRAINING), test])
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(nb, tmp_path / "it.ipynb")
    monkeypatch.chdir(tmp_path)
    assert Validator(ignore_checksums=True).validate("it.ipynb") == {}


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("# demonstration", True),
        ("# demonstration: slow", True),
        ("# demonstrations of masks", False),
        ("x = 1\n# demonstration", False),
    ],
)
def test_the_first_line_alone_makes_one(source: str, is_one: bool) -> None:
    assert is_demonstration(source) == is_one


def test_names_that_a_cell_makes_and_needs() -> None:
    source = "import torch as t\nfor i in range(n): total = i\ndef f(x):\n    return g(x) + t.e"
    assert names_of(source).bound == {"t", "i", "total", "f"}
    assert names_of(source).needed == {"range", "n", "g"}


def in_lesson(cell: NotebookNode) -> list[str]:
    lesson = lessons(HERE)["02_causal_mask"]
    nb = source_notebook(lesson)
    nb.cells.append(cell)
    return list(lint.lint_source(lesson, nb))


def test_the_linter_refuses_it_where_grading_needs_it() -> None:
    assert in_lesson(code(TRAINING)) == []
    (fault,) = in_lesson(code(TRAINING, grade_id="setup_more", grade=False, solution=False))
    assert "setup_more is a demonstration, but grading needs it" in fault
    faults = in_lesson(code("# demonstration\ntorch = None"))
    assert any("needs torch from the cell 'torch = None'" in fault for fault in faults)


def test_names_are_read_of_short_programs_alone() -> None:
    long = "import " + "a." * MAX_CHARS + "a"
    assert names_of("1 +") == names_of(long) == Names()
    assert names_of("b + 1").needed | names_of("c = d").needed == {"b", "d"}
