"""A question answered by a figure: from the lesson's text to a mark that follows the figure."""

import re
import shutil
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from classes import NO_WALL, file_of, put_file
from conftest import HERE, program

from autograde.course.cells import code_cells, named_cells
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record
from autograde.marking.answers import Mark, Sent, WrittenAnswer, read_question, save

QUESTION, POINTS = "wet_days", 2.0
PAGE = (HERE / "docs" / "recipes.md").read_text()
(CELLS,) = re.findall(r"```python figure\n(.*?)```", PAGE, re.DOTALL)
DRAWN = "plt.bar(range(len(RAIN)), RAIN);"
"""As a student draws: the figure is shown because the cell ends, and has no words."""


def hand_in(lesson: Lesson, student: str, answer: str, before: str = "") -> None:
    """Hand in an answer, or the cell as it is; what stands before runs in a cell above it."""
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    cell = named_cells(nb)[QUESTION]
    cell.source = answer or cell.source
    nb.cells.insert(nb.cells.index(cell), nbformat.v4.new_code_cell(before))
    put_file(lesson, student, nb)


def autograde(root: Path, *arguments: str) -> str:
    done = program("autograde", *arguments, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    root = tmp_path_factory.mktemp("figures") / "rain"
    shutil.copytree(HERE / "examples" / "rain", root, ignore=shutil.ignore_patterns("*.ipynb"))
    (lesson,) = lessons(root).values()
    with lesson.text.open("a") as file:
        file.write(f"\n{CELLS}")
    with (root / CURRICULUM).open("a") as file:
        file.write(f"\n[lesson.written]\n{QUESTION} = 2\n")
    autograde(root, "build")
    (lesson,) = lessons(root).values()
    for student, answer in {"ada": DRAWN, "bob": "", "eve": "plt.bars(RAIN)"}.items():
        hand_in(lesson, student, answer)
    assert "3 graded" in autograde(root, "grade", "--workers", "1", *NO_WALL)
    return lesson


def answer_of(lesson: Lesson, student: str) -> WrittenAnswer:
    question = read_question(lesson.root, lesson.name, QUESTION)
    return next(each for each in question.answers if each.student == student)


def test_students_get_an_empty_cell_that_does_not_end_run_all(lesson: Lesson) -> None:
    cell = named_cells(nbformat.read(lesson.released_notebook, as_version=4))[QUESTION]
    assert cell.source == "# YOUR CODE HERE\nraise NotImplementedError()"
    assert cell.metadata.tags == ["raises-exception"]


def test_a_figure_waits_and_is_shown_to_whoever_marks_it(lesson: Lesson) -> None:
    ada, eve = answer_of(lesson, "ada"), answer_of(lesson, "eve")
    assert (ada.mark.waits, eve.mark.waits) == (True, True)
    assert 'img src="data:image/png;base64,' in ada.html
    assert "plt.bar(" in ada.html
    assert "AttributeError" in eve.html
    question = read_question(lesson.root, lesson.name, QUESTION)
    assert (question.waiting, question.empty) == (2, 1)


def test_its_student_sees_it_with_the_mark(lesson: Lesson) -> None:
    page = file_of(lesson, "ada", "feedback").read_text()
    cell = page.partition(f'id="cell-{QUESTION}"')[2].partition('<div class="cell"')[0]
    assert "The figure of the cell that begins: plt.bar(" in cell
    assert "<strong>Graded by hand:</strong> not yet" in cell
    assert "rubric cell" not in cell


def test_a_mark_stays_with_its_figure(lesson: Lesson) -> None:
    ada = answer_of(lesson, "ada")
    save(lesson.root, lesson.name, QUESTION, Sent(ada.grade, ada.seen, POINTS, "Clear."))
    autograde(lesson.root, "grade", *NO_WALL, "--regrade", "--student", "ada")
    assert not answer_of(lesson, "ada").mark.waits
    hand_in(lesson, "ada", DRAWN, before="RAIN = RAIN[::-1]")
    autograde(lesson.root, "grade", *NO_WALL)
    assert answer_of(lesson, "ada").mark == Mark(POINTS, "Clear.", waits=True)


def test_of_two_copies_the_last_is_run_and_the_other_keeps_its_code(lesson: Lesson) -> None:
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    cell = named_cells(nb)[QUESTION]
    first = deepcopy(cell)
    first.source, cell.source = "first = 1", "plt.plot(first)"
    nb.cells.insert(nb.cells.index(cell), first)
    record = restore(Record(nb), nbformat.read(lesson.released_notebook, as_version=4))
    sources = [each.source for each in code_cells(record.nb)]
    assert sources[sources.index("first = 1") + 1] == "plt.plot(first)"
    assert named_cells(record.nb)[QUESTION].source == "plt.plot(first)"
    assert record.notes == {QUESTION: ["the cell is there twice; the last one is used"]}
