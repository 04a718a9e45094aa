"""What a student's cells bind reaches the student's code, and no rubric; answers reach it."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from classes import HERE, fill, judged, reference_answers
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook
from nightly import few
from traitlets.config import Config

from autograde.course.cells import named_cells
from autograde.course.lessons import Lesson, lessons
from autograde.course.versions import notebook_of, versions
from autograde.grading.record import Record
from autograde.grading.verdicts import _explained
from autograde.notebook import explaining, judgements, practice, rubric
from autograde.rubric import runs, session
from autograde.rubric.judge import Verdict
from autograde.rubric.lesson_names import given_in, keep_given
from autograde.rubric.recording import Recording

OWN_CELLS = {
    "02_causal_mask": {
        "causal_mask": ["rubric = 'my notes'", "for rubric in range(3): pass"],
        "renormalise": ["torch = 'a light'"],
        "apply_mask": ["from math import pi as torch", "del rubric"],
    },
    "03_inf_mask": {
        "future_mask": ["def rubric(name): return print"],
    },
    "05_causal_attention": {"count_parameters": ["nn = 2", "nn: int = 3"]},
    "07_tiny_gpt": {
        "generate": [
            "chars = sorted(set('abc')); stoi = {c: i for i, c in enumerate(chars)}\n"
            "encode = lambda s: [stoi[c] for c in s]",
            "END = 0; VOCABULARY = 'abc'",
            "len = 3",
            "for encode, END in enumerate('ab'): pass",
        ],
        "loss_of": ["globals()['rubric'] = None"],
    },
    "08_fast_attention": {
        "online_softmax": ["import sys as device"],
        "with_sdpa": ["with open('/dev/null') as device: pass"],
    },
}
"""Cells that students add above an exercise, each of which bound what its rubric reads."""
ROWS = [
    (name, exercise, cell)
    for name, exercises in OWN_CELLS.items()
    for exercise, cells in exercises.items()
    for cell in cells
]


def lesson_called(name: str) -> Lesson:
    return lessons(HERE)[name]


@cache
def right(name: str) -> dict[str, str]:
    return reference_answers(lesson_called(name))


@pytest.fixture
def practise(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs cells as a student does; returns the panels that they showed."""
    panels: list[str] = []
    for module, name, new in (
        (runs, "_runs", []),
        (judgements, "last", {}),
        (practice, "display", lambda data, raw: panels.append(data["text/plain"])),
    ):
        monkeypatch.setattr(module, name, new)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell puts its own
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    explaining.watch()

    def run(lesson: Lesson, *cells: str) -> list[str]:
        monkeypatch.chdir(lesson.practice_file.parent)
        shell.reset()
        runs._runs.clear()
        panels.clear()
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        return panels

    yield run
    InteractiveShell.clear_instance()


def cells_of(lesson: Lesson, exercise: str) -> tuple[str, str, str]:
    """The set-up, the right answers to an exercise and what it needs, and its rubric."""
    cells = named_cells(notebook_of(versions(lesson)[0]))
    answers = right(lesson.name)
    upto = [*lesson.exercise(exercise).needs, exercise]
    rubric_cell = cells[lesson.exercise(exercise).rubric_cell].source
    return cells["setup"].source, "\n\n".join(answers[name] for name in upto), rubric_cell


@pytest.mark.parametrize(("name", "exercise", "cell"), ROWS)
def test_in_practice_a_right_answer_is_right_whatever_a_cell_bound(
    name: str, exercise: str, cell: str, practise: Any
) -> None:
    lesson = lesson_called(name)
    setup, answers, rubric_cell = cells_of(lesson, exercise)
    for order in ((setup, cell, answers), (cell, setup, answers, cell)):
        shown = practise(lesson, *order, rubric_cell)
        assert "WRONG" not in "".join(shown)
        assert judgements.last.pop(exercise).verdict.passed


@pytest.mark.parametrize("name", few(OWN_CELLS.keys(), "02_causal_mask"))
def test_in_grading_right_answers_earn_every_point_whatever_a_cell_bound(name: str) -> None:
    lesson = lesson_called(name)
    found = graded(lesson, right(name), OWN_CELLS[name])
    assert {each: found[each].points for each in OWN_CELLS[name]} == {
        each: lesson.exercise(each).points for each in OWN_CELLS[name]
    }


def graded(
    lesson: Lesson, answers: dict[str, str], above: dict[str, list[str]]
) -> dict[str, Verdict]:
    """The verdicts on these answers, with a student's cells between each and its rubric."""
    nb = fill(lesson, answers)
    for exercise, sources in above.items():
        place = nb.cells.index(named_cells(nb)[lesson.exercise(exercise).rubric_cell])
        nb.cells[place:place] = [new_code_cell(source) for source in sources]
    return judged(lesson, nb).verdicts


def test_an_answer_that_another_rubric_needs_is_the_students(practise: Any) -> None:
    lesson = lesson_called("06_multi_head")
    setup, answers, rubric_cell = cells_of(lesson, "pack_heads")
    practise(lesson, setup, answers, rubric_cell)
    assert judgements.last.pop("pack_heads").verdict.passed
    practise(lesson, setup, answers, "class MultiHeadAttention(nn.Module): pass", rubric_cell)
    assert not judgements.last.pop("pack_heads").verdict.passed


GENERATE = """def generate(model, tokens, max_new_tokens):
    end = ENCODE([END])[0]
    for _ in range(max_new_tokens):
        with torch.no_grad():
            scores = model.eval()(tokens[:, -model.context_length :])
        tokens = torch.cat([tokens, scores[:, -1:].argmax(dim=-1)], dim=1)
    return tokens
"""
WRONG = GENERATE.replace("ENCODE", "encode")
HELPED = GENERATE.replace("ENCODE", "ids") + "\ndef ids(words): return helper(words)"


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        (["encode = 'my notes'", WRONG], "encode"),
        (["range = (3, 4)", WRONG], "range"),
        (["encode = 3", "from attention_course.language import encode", WRONG], ""),
        (["import torch; END = '<end>'; words = 3", HELPED], "END"),
        (["fill = 3", HELPED], ""),
    ],
)
def test_the_panel_names_what_the_students_code_needs_and_a_cell_bound_anew(
    cells: list[str], named: str, practise: Any
) -> None:
    lesson = lesson_called("07_tiny_gpt")
    setup, _, rubric_cell = cells_of(lesson, "generate")
    (panel,) = practise(lesson, setup, *cells, rubric_cell)
    assert not judgements.last["generate"].verdict.passed
    said = [line for line in panel.splitlines() if line.startswith("Your code uses")]
    assert len(said) == bool(named)
    assert all(f"uses {named}, and your cell run as [" in line for line in said)


def test_an_answer_below_its_rubric_is_told_to_move() -> None:
    exercise = replace(lesson_called("07_tiny_gpt").exercise("generate"), name="answer")
    nb = new_notebook(cells=[new_code_cell(STUB), new_code_cell("rubric")])
    verdict = Verdict("answer", 0.0, 2.0, (), note="Not checked")
    for names, count in ((("answer", "test_answer"), 0), (("test_answer", "answer"), 1)):
        for cell, name in zip(nb.cells, names, strict=True):
            cell.metadata.nbgrader = {"grade_id": name}
        note = _explained(verdict, exercise, Record(nb), []).note
        assert note.count("stands below its rubric") == count


@pytest.mark.parametrize(
    ("cells", "anew"),
    [
        ([], []),
        (["import torch", "sizes, start = [1, 2], torch.zeros(2)"], []),
        (["len = 3", "sizes = 4"], ["len", "sizes"]),
        (["; ".join(f"n{i} = m{i}" for i in range(1_000))], []),
    ],
)
def test_copies_of_the_lessons_own_cells_bind_nothing_anew(
    cells: list[str], anew: list[str], practise: Any
) -> None:
    answer = "def answer(n): return torch.ones(n) * len(sizes)"
    answer += "; " + "; ".join(f"n{i}" for i in range(1_000))
    began = time.process_time()
    practise(lesson_called("07_tiny_gpt"), SETUP, *cells, answer)
    assert [*runs.rebound("answer")] == anew
    assert time.process_time() - began < 5


STUB = "def answer(n):\n    raise NotImplementedError"


SETUP = """
import torch
from autograde.notebook import rubric
sizes, start = [1, 2], torch.zeros(2)
def of_size(n): return torch.ones(n) + sum(sizes)
"""
RUBRIC = """
@rubric("it")
def _(r):
    r.each("each", answer, *((of_size(n), start) for n in sizes))
"""


def recorded(*cells: str) -> Recording:
    """What the rubric above records of cells that ran before it."""
    notebook: dict[str, Any] = {"answer": lambda x, y: x + y}
    for cell in cells:
        exec(cell, notebook)  # noqa: S102 (from this file)
        keep_given(cell, notebook, rubric)
    with session.recording(1) as recordings:
        exec(RUBRIC, {**notebook, "rubric": rubric})  # noqa: S102 (from this file)
    assert recordings["it"].stopped is None
    return recordings["it"]


@pytest.mark.parametrize(
    "cell",
    [
        "torch = sum = 3",
        "sizes += [5]",
        "sizes.append(5)",
        "start += 1",
        "del sizes, start",
        "def of_size(n): return n",
        f"{SETUP}\nsizes = [5]",
    ],
)
def test_what_a_lesson_gives_stays_as_it_was(cell: str) -> None:
    assert repr(recorded(SETUP, cell)) == repr(recorded(SETUP))


def test_a_set_up_that_runs_again_gives_its_new_values() -> None:
    again = "import itertools\nfrom autograde.notebook import rubric\nclass Base: pass"
    notebook: dict[str, Any] = {}
    for _ in range(2):
        exec(again, notebook)  # noqa: S102 (from this file)
        keep_given(again, notebook, rubric)
    assert given_in(notebook).original("Base") is notebook["Base"]


def test_what_is_large_or_cannot_be_copied_is_given_as_it_is() -> None:
    cell = """
import torch
from autograde.notebook import rubric
parts = {"torch": torch, "one": (n for n in range(3))}
many = list(range(20_000))
"""
    notebook: dict[str, Any] = {}
    exec(cell, notebook)  # noqa: S102 (from this file)
    keep_given(cell, notebook, rubric)
    assert given_in(notebook).original("many") is notebook["many"]
    assert given_in(notebook).original("parts") == notebook["parts"]


def test_an_array_a_table_and_a_tensor_that_a_lesson_gives_stay_as_they_were() -> None:
    cell = """
import numpy as np
import pandas as pd
import torch
from autograde.notebook import rubric
array, table = np.ones(3), pd.DataFrame({"mm": [1.0, 2.0]})
computed = 2 * torch.ones(2, requires_grad=True)
"""
    notebook: dict[str, Any] = {}
    exec(cell, notebook)  # noqa: S102 (from this file)
    keep_given(cell, notebook, rubric)
    exec("array += 1; table['mm'] = 0.0; computed += 1", notebook)  # noqa: S102
    given = given_in(notebook).original
    assert given("computed").tolist() == [2, 2]
    assert (given("array").tolist(), given("table")["mm"].tolist()) == ([1, 1, 1], [1, 2])


def test_a_cell_without_the_packages_rubric_gives_nothing() -> None:
    notebook: dict[str, Any] = {"rubric": print, "other": 3}
    for cell in ("other = 3", "rubric = print", "def rubric(): pass"):
        keep_given(cell, notebook, rubric)
        assert given_in(notebook).names == {}


def test_the_answer_sees_what_the_student_bound(practise: Any) -> None:
    """Only a rubric's own names are the lesson's; `rubric` too may be a table of the student's."""
    lesson = lesson_called("02_causal_mask")
    setup, _, rubric_cell = cells_of(lesson, "causal_mask")
    answer = """def causal_mask(n):
    if n < 1: raise ValueError
    return (rubric[len('ab')](torch.ones(n, n)))"""
    practise(lesson, setup, "rubric = {3: torch.tril}; len = lambda _: 3", answer, rubric_cell)
    assert judgements.last["causal_mask"].verdict.passed
