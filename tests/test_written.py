"""Written answers: one question added to a lesson, built, handed in, graded by hand, regraded."""

import html
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jupytext
import nbformat
import pytest
from classes import file_of, grade_one, gradebook_of, put_file, without_demonstrations
from conftest import HERE, run
from nbformat import NotebookNode
from nbgrader.api import Grade

from autograde.authoring import lint
from autograde.authoring.build import build
from autograde.authoring.sources import source_notebook
from autograde.course.cells import code_cells, id_of_text, named_cells
from autograde.course.lesson_files import read_text
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from autograde.grading.gradebook import marks_of_class
from autograde.grading.reading.parse import parse
from autograde.grading.reading.restore import MORE, restore
from autograde.grading.record import Record, marks_of
from autograde.grading.submission import GRADED, Marks
from autograde.marking.answers import read_question
from autograde.report.classdata import EMPTY, SCORED, WAITING, read_class

LESSON = "02_causal_mask"

PAGE = (HERE / "docs" / "recipes.md").read_text()
(CELLS,) = re.findall(r"```python written\n(.*?)```", PAGE, re.DOTALL)
(ENTRY,) = re.findall(r"```toml written\n(.*?)```", PAGE, re.DOTALL)


def with_question(root: Path) -> Lesson:
    """A course in which a lesson has a written question."""
    shutil.copytree(HERE / "source", root / "source")
    shutil.copy(HERE / "nbgrader_config.py", root)
    text = root / "source" / LESSON / "causal_mask.py"
    text.write_text(f"{text.read_text()}\n{CELLS}")
    needs = "[lesson.needs]\ntril_causal_weights"
    curriculum = (root / CURRICULUM).read_text()
    assert needs in curriculum
    changed = curriculum.replace(needs, f"{ENTRY}\n{needs}")
    (root / CURRICULUM).write_text(changed)
    lesson = lessons(root)[LESSON]
    jupytext.write(without_demonstrations(read_text(lesson)), text, fmt="py:percent")
    return lesson


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    made = with_question(tmp_path_factory.mktemp("course"))
    build(made)
    return made


def hand_in(lesson: Lesson, student: str, change: Callable[[NotebookNode], None]) -> None:
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    change(nb)
    without_demonstrations(nb)
    put_file(lesson, student, nb)


def answered(text: str) -> Callable[[NotebookNode], None]:
    def change(nb: NotebookNode) -> None:
        named_cells(nb)["why_zero"].source = text

    return change


def row_of(
    lesson: Lesson, student: str, change: Callable[[Grade], None] | None = None
) -> list[object]:
    """What the gradebook says of the answer: automatic and manual score, whether one must look."""
    with gradebook_of(lesson.root) as gradebook:
        row = gradebook.find_grade("why_zero", lesson.notebook, lesson.name, student)
        if change is not None:
            change(row)
            gradebook.find_comment(
                "why_zero", lesson.notebook, lesson.name, student
            ).manual_comment = "Good."
            gradebook.db.commit()
        return [row.auto_score, row.manual_score, row.needs_manual_grade]


def score_of(lesson: Lesson, student: str) -> float:
    with gradebook_of(lesson.root) as gradebook:
        return float(gradebook.find_submission(lesson.name, student).score)


def by_hand_of(lesson: Lesson) -> int:
    with gradebook_of(lesson.root) as gradebook:
        return sum(len(marks.waits) for marks in marks_of_class(gradebook, lesson).values())


def in_report(lesson: Lesson, student: str) -> float | str:
    """The score of the answer, or its state if it has none."""
    row = read_class(lesson).row_of[student, "why_zero", ""]
    return row.points if row.state == SCORED else row.state


def page(lesson: Lesson, student: str) -> str:
    return html.unescape(file_of(lesson, student, "feedback").read_text())


def by_hand(row: Grade) -> None:
    """What Formgrader does when a score is typed in."""
    row.manual_score, row.needs_manual_grade = 1.5, False


def test_students_get_the_question_without_its_scheme_and_answer(lesson: Lesson) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    assert named_cells(released)["why_zero"].source == "YOUR ANSWER HERE"
    assert named_cells(released)["question_why_zero"].source.strip().endswith("and not ones?")
    assert "naming the multiplication" not in lesson.released_notebook.read_text()
    solution = lesson.solution_notebook.read_text()
    assert "naming the multiplication" in solution
    assert "only zero makes a product vanish" in solution
    with gradebook_of(lesson.root) as gradebook:
        assert gradebook.find_assignment(LESSON).max_score == lesson.points == 15


def test_graded_by_hand_once_and_again_only_when_the_answer_changed(lesson: Lesson) -> None:
    hand_in(lesson, "ada", answered("Because of the product."))
    assert not grade_one(lesson, "ada").problem
    assert (score_of(lesson, "ada"), by_hand_of(lesson)) == (0, 1)
    assert row_of(lesson, "ada") == [None, None, True]
    assert in_report(lesson, "ada") == WAITING
    assert "points, 2 points await marking" in page(lesson, "ada")
    assert ">2 points await marking</td>" in page(lesson, "ada")
    seen_by_graders = file_of(lesson, "ada", "autograded").read_text()
    assert "naming the multiplication" in seen_by_graders
    assert "naming the multiplication" not in page(lesson, "ada")

    row_of(lesson, "ada", by_hand)
    assert not grade_one(lesson, "ada").problem
    assert (score_of(lesson, "ada"), by_hand_of(lesson)) == (1.5, 0)
    assert row_of(lesson, "ada") == [None, 1.5, False]
    assert in_report(lesson, "ada") == 1.5
    assert "Graded by hand:</strong> 1.5 of 2 points.</p>" in page(lesson, "ada")
    assert "Good." in page(lesson, "ada")

    hand_in(lesson, "ada", answered("Because of the product of two numbers."))
    for _ in range(2):  # until somebody looks
        grade_one(lesson, "ada")
        assert by_hand_of(lesson) == 1
        assert row_of(lesson, "ada") == [None, 1.5, True]
        assert "Graded by hand:</strong> 1.5 of 2 points, for an earlier answer;" in page(
            lesson, "ada"
        )
    assert in_report(lesson, "ada") == WAITING


def deleted(nb: NotebookNode) -> None:
    nb.cells.remove(named_cells(nb)["why_zero"])


def turned_into_code(nb: NotebookNode) -> None:
    cell = named_cells(nb)["why_zero"]
    code = nbformat.v4.new_code_cell("Because.", metadata=cell.metadata, id="why_zero")
    nb.cells[nb.cells.index(cell)] = code


@pytest.mark.parametrize(
    ("change", "row"),
    [
        (lambda nb: None, [0.0, None, False]),
        (answered("  \n"), [0.0, None, False]),
        (deleted, [None, None, True]),
        (turned_into_code, [None, None, True]),
    ],
    ids=["untouched", "emptied", "deleted", "turned_into_code"],
)
def test_only_where_there_is_nothing_to_read_no_hand_is_needed(
    lesson: Lesson, change: Callable[[NotebookNode], None], row: list[object]
) -> None:
    hand_in(lesson, "bob", change)
    assert grade_one(lesson, "bob").outcome == GRADED
    assert row_of(lesson, "bob") == row


def test_an_unreadable_notebook_waits_for_nobody(lesson: Lesson) -> None:
    put_file(lesson, "eve", b"no notebook")
    result = run(lesson.root, "grade", LESSON, "--student", "eve")
    assert result.exit_code == 0, result.output
    assert row_of(lesson, "eve") == [0.0, None, False]
    assert in_report(lesson, "eve") == EMPTY


def no_scheme(nb: NotebookNode) -> None:
    named_cells(nb)["question_why_zero"].source = "Why zero?"


def scheme_elsewhere(nb: NotebookNode) -> None:
    named_cells(nb)["setup"].source += "\n# BEGIN MARK SCHEME\n# END MARK SCHEME"


def no_reference(nb: NotebookNode) -> None:
    named_cells(nb)["why_zero"].source = "Why not?"


def question_in_code(nb: NotebookNode) -> None:
    named_cells(nb)["question_why_zero"].cell_type = "code"


def answer_first(nb: NotebookNode) -> None:
    nb.cells.append(nb.cells.pop(nb.cells.index(named_cells(nb)["question_why_zero"])))


FAULTS: dict[Callable[[NotebookNode], None], str] = {
    no_scheme: "question_why_zero: a marking scheme belongs in each question's cell",
    scheme_elsewhere: "setup: a marking scheme belongs in each question's cell, and in no other",
    no_reference: "why_zero needs each answer between",
    question_in_code: "question_why_zero is a code cell; it should be a markdown cell",
    answer_first: "why_zero stands before question_why_zero",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_linter_refuses(lesson: Lesson, fault: Callable[[NotebookNode], None]) -> None:
    nb = source_notebook(lesson)
    assert list(lint.lint_source(lesson, nb)) == []
    fault(nb)
    assert FAULTS[fault] in "\n".join(lint.lint_source(lesson, nb))


def test_a_question_that_the_curriculum_lacks_is_named_once(lesson: Lesson) -> None:
    faults = lint.lint_source(replace(lesson, written=()), source_notebook(lesson))
    assert [fault.partition(" is ")[0] for fault in faults] == ["the cell why_zero"]


def test_linter_refuses_an_answer_or_a_scheme_that_survives(lesson: Lesson) -> None:
    nb = source_notebook(lesson)
    student = nbformat.read(lesson.released_notebook, as_version=4)
    assert list(lint.lint_student(nb, student)) == []
    answer, scheme = (
        "Because the mask is multiplied, and only zero makes a product vanish.",
        "Both points for naming the multiplication.",
    )
    student.cells[0].source += f"\n{answer}\n{scheme}"
    faults = "\n".join(lint.lint_student(nb, student))
    for line in (answer, scheme):
        assert f"a solution line survives: {line!r}" in faults


def markdown(text: str, name: str = "") -> NotebookNode:
    about = {"nbgrader": {"grade_id": name}} if name else {}
    return nbformat.v4.new_markdown_cell(text, metadata=about)


def beside(*cells: NotebookNode, above: bool = False) -> Callable[[NotebookNode], None]:
    """Cells of the student's own, below the answer's cell or above it."""

    def change(nb: NotebookNode) -> None:
        place = nb.cells.index(named_cells(nb)["why_zero"]) + (not above)
        nb.cells[place:place] = cells

    return change


def split(nb: NotebookNode) -> None:
    """As JupyterLab splits a cell: both halves keep its name."""
    answered("the lower half")(nb)
    beside(markdown("The upper half,", "why_zero"), above=True)(nb)


def copied_away(nb: NotebookNode) -> None:
    answered("A second try.")(nb)
    nb.cells.insert(0, markdown("A first try.", "why_zero"))


def merged_with_its_question(nb: NotebookNode) -> None:
    named_cells(nb)["question_why_zero"].source += "\n\nBecause of the product."
    deleted(nb)


def a_step_below_the_lessons_next_cell(nb: NotebookNode) -> None:
    nb.cells += [markdown("## The lesson goes on"), markdown("My notes on what goes on.")]


code = nbformat.v4.new_code_cell

GATHERED: dict[str, tuple[Callable[[NotebookNode], None], str | None]] = {
    "in a new cell": (beside(markdown("Because."), markdown("")), "Because."),
    "in a new cell above": (beside(markdown("Because."), above=True), "Because."),
    "in a raw cell": (beside(nbformat.v4.new_raw_cell("Because.")), "Because."),
    "in a new code cell": (beside(code("Because of it")), "    Because of it"),
    "as comments": (beside(code("# Because\n# of it")), "    # Because\n    # of it"),
    "a stub split off": (beside(markdown("Because.", "why_zero")), "Because."),
    "split": (split, "The upper half,\n\nthe lower half"),
    "copied away": (copied_away, "A first try.\n\nA second try."),
    "a copy": (beside(markdown("YOUR ANSWER HERE", "why_zero")), None),
    "merged with its question": (merged_with_its_question, "Because of the product."),
    "code that runs": (beside(code("print(tril)")), None),
    "next to other people's cells": (a_step_below_the_lessons_next_cell, None),
    "both": (lambda nb: (split(nb), beside(markdown("And more."))(nb))[0],
             "The upper half,\n\nthe lower half\n\nAnd more."),
}  # fmt: skip
"""Where an answer may stand, and the text that its marker sees; None where nobody has to look."""


@pytest.mark.parametrize("where", GATHERED)
def test_an_answer_is_gathered_wherever_it_stands(lesson: Lesson, where: str) -> None:
    change, text = GATHERED[where]
    released = nbformat.read(lesson.released_notebook, as_version=4)
    if where == "next to other people's cells":
        released.cells.append(markdown("## The lesson goes on"))
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    change(nb)
    codes = [cell.source for cell in code_cells(nb)]
    record = restore(Record(nb), released)
    nb, marks = record.nb, marks_of(record, released, Marks())
    assert (marks.automatic["why_zero"], marks.comments["why_zero"]) == (
        (0.0, "No response.") if text is None else (None, None)
    )
    found = named_cells(nb)["why_zero"].source
    assert found == ("YOUR ANSWER HERE" if text is None else text)
    assert [cell.source for cell in code_cells(nb)] == codes  # later answers may need them
    texts = [cell.source for cell in nb.cells if cell.cell_type != "code"]
    assert text is None or "".join(texts).count(text) == 1


def test_a_text_of_the_lesson_that_was_corrected_since_is_no_answer(lesson: Lesson) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    nb.cells.append(markdown("## The leson goes on"))
    nb.cells[-1]["id"] = id_of_text(nb.cells[-1])
    released.cells.append(markdown("## The lesson goes on"))
    record = restore(parse(nbformat.writes(nb).encode()), released)
    assert marks_of(record, released, Marks()).automatic["why_zero"] == 0
    assert "leson" not in named_cells(record.nb)["why_zero"].source


def test_more_than_a_page_can_show_stays_where_it_is(lesson: Lesson) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    beside(markdown("a" * 15_000), markdown("b" * 15_000), markdown("short"))(nb)
    nb = restore(Record(nb), released).nb
    answer = named_cells(nb)["why_zero"].source
    assert answer.startswith("aaa")
    assert "b" not in answer.replace(MORE, "")
    assert answer.endswith(f"short\n\n{MORE}")
    assert "b" * 15_000 in [cell.source for cell in nb.cells]


def test_code_beside_an_answer_is_not_read_where_reading_it_takes_gigabytes(lesson: Lesson) -> None:
    released = nbformat.read(lesson.released_notebook, as_version=4)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    beside(code("import " + "a." * 40_000 + "a"), markdown("Because."))(nb)
    began = time.process_time()
    nb = restore(Record(nb), released).nb
    assert time.process_time() - began < 2
    assert named_cells(nb)["why_zero"].source == "Because."


def test_a_gathered_answer_is_on_the_marking_page_and_in_feedback(lesson: Lesson) -> None:
    hand_in(lesson, "fay", lambda nb: (split(nb), beside(markdown("And *more*."))(nb))[0])
    assert not grade_one(lesson, "fay").problem
    assert row_of(lesson, "fay") == [None, None, True]
    asked = read_question(lesson.root, LESSON, "why_zero").answers
    shown = next(answer.html for answer in asked if answer.student == "fay")
    for text in ("The upper half,", "the lower half", "And <em>more</em>."):
        assert text in shown
        assert text in page(lesson, "fay")
        assert text in file_of(lesson, "fay", "autograded").read_text()  # for Formgrader
