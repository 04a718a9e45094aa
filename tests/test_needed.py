"""Which cells of a submission are run."""

import time

import nbformat
import pytest
from classes import fill, judged, reference_answers
from nbformat import NotebookNode

from autograde.authoring.variants import read_variants
from autograde.course.lessons import Lesson
from autograde.grading.running import job as running
from autograde.grading.running.job import not_needed
from autograde.rubric.judge import Verdict

OWN = {
    "begin": "model = 1",
    "more": "def twice(): return 2 * model",
    "shown": "print(twice())",
    "guess": "my_guess = None",
}


def code(ident: str, source: str, name: str = "") -> NotebookNode:
    about = {"nbgrader": {"grade_id": name}} if name else {}
    return nbformat.v4.new_code_cell(source, id=ident, metadata=about)


def notebook(answer: str, *added: str, **changed: str) -> NotebookNode:
    own = [code(ident, source) for ident, source in {**OWN, **changed}.items()]
    theirs = [code(f"added-{n}", source) for n, source in enumerate(added)]
    return nbformat.v4.new_notebook(cells=[code("answer", answer, "answer"), *own, *theirs])


RELEASED = notebook("raise NotImplementedError")


def left_out(nb: NotebookNode) -> str:
    return " ".join(ident for ident in OWN if ident in not_needed(nb, RELEASED))


def test_nothing_of_the_lessons_own_is_run_without_need() -> None:
    assert left_out(notebook("def f(x): return x")) == "begin more shown guess"


@pytest.mark.parametrize(
    ("added", "rest"),
    [
        ("def f(x): return model", "more shown guess"),
        ("def f(x): return twice()", "shown guess"),
        ("class F:\n    size = model", "more shown guess"),
        ("class F:\n    model = model", "more shown guess"),
        ("def f(x):\n    def g(): return [model for _ in x]\n    return g", "more shown guess"),
        ("model = model + 1", "more shown guess"),
        ("model += 1", "more shown guess"),
        ("del model", "more shown guess"),
        ("def f():\n    global model\n    model += 1", "more shown guess"),
        ("def f(model): return model", "begin more shown guess"),
        ("def f(x): return x.model", "begin more shown guess"),
        ("model =", "begin more shown guess"),
        ("print(twice())", "shown guess"),
    ],
)
def test_what_the_student_added_gets_what_it_names_and_what_that_needs(
    added: str, rest: str
) -> None:
    assert left_out(notebook("", added)) == rest


def test_where_an_answer_uses_what_the_lesson_binds_all_is_run() -> None:
    assert left_out(notebook("def f(x): return model")) == ""
    assert left_out(notebook("def f(model): return model")) == "begin more shown guess"


def test_a_changed_cell_is_the_students() -> None:
    assert left_out(notebook("", guess="my_guess = 3")) == "begin more shown"
    assert left_out(notebook("", shown="print(twice() + 1)")) == "guess"
    assert left_out(notebook("", guess="my_guess = None\n")) == "begin more shown guess"


def test_a_copy_of_the_lessons_cell_is_the_students() -> None:
    copied = notebook("", OWN["shown"])
    assert not_needed(copied, RELEASED) == {"shown", "guess"}
    assert left_out(notebook("", "model = 2")) == "begin more shown guess"


def test_a_name_that_is_read_and_bound_anew_is_needed() -> None:
    released = notebook("", begin="model = 1", more="model = model + 1; last = model")
    added = notebook("", "print(last)", begin="model = 1", more="model = model + 1; last = model")
    assert not_needed(added, released) == {"shown", "guess"}


@pytest.mark.parametrize(
    "answer",
    [
        "def f(x): return eval('model')",
        "def f(x): return globals()['model']",
        "%run elsewhere.py",
        "  x = 1\n  y = 2",
        ">>> x = 1",
        "from __main__ import model",
        "import sys; sys.modules['__main__'].model",
        "f.__globals__['model']",
        "print(_)",
        "x = 1 #" + 20_000 * "x",
    ],
)
def test_where_names_cannot_be_told_all_is_run(answer: str) -> None:
    assert left_out(notebook(answer)) == ""
    assert left_out(notebook("", answer)) == "", "in a cell that the student added"


def test_an_own_cell_whose_names_cannot_be_told_has_all_run() -> None:
    for source in ("from math import *", "%%time\nmodel = 1"):
        changed = notebook("", begin=source)
        assert not_needed(changed, changed) == set()


@pytest.mark.parametrize("text", [" \n", "\t\n ", "\n", "a \n"])
def test_names_are_soon_looked_for_in_what_is_not_python(text: str) -> None:
    nb = notebook("", begin=text * 50_000 + "\n=")
    began = time.thread_time()
    not_needed(nb, nb)
    assert time.thread_time() - began < 1


def verdicts_on(lesson: Lesson, answers: dict[str, str]) -> tuple[dict[str, Verdict], int]:
    """The verdicts on a notebook with these answers, and how many cells of it were not run."""
    found = judged(lesson, fill(lesson, answers))
    return found.verdicts, len(found.left_out)


def test_what_is_left_out_changes_no_verdict(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = reference_answers(lesson)
    answers |= {e.name: read_variants(lesson, e).wrong[0].code for e in lesson.exercises[::2]}
    in_part, left = verdicts_on(lesson, answers)
    assert left > 10
    monkeypatch.setattr(running, "not_needed", lambda nb, released: set())
    whole, none = verdicts_on(lesson, answers)
    assert none == 0
    assert in_part == whole
