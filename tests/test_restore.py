"""What is put back of a submission before it runs: the lesson's own cells, never the answers."""

import json
import tracemalloc
from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode

from autograde.course.cells import grade_id
from autograde.course.lessons import Lesson
from autograde.grading.reading.parse import parse
from autograde.grading.reading.restore import NOT_OF_LESSON, restore
from autograde.grading.record import Record

ANSWER, RUBRIC = "transplant", "test_transplant"


@pytest.fixture(scope="module")
def released(lesson: Lesson) -> NotebookNode:
    return nbformat.read(lesson.released_notebook, as_version=4)


def names_of(nb: NotebookNode) -> list[str]:
    return [name for cell in nb.cells if (name := grade_id(cell))]


def place_of(nb: NotebookNode, name: str) -> int:
    return next(place for place, cell in enumerate(nb.cells) if grade_id(cell) == name)


def deleted(name: str) -> Callable[[NotebookNode], None]:
    def change(nb: NotebookNode) -> None:
        del nb.cells[place_of(nb, name)]

    return change


def edited(nb: NotebookNode) -> None:
    nb.cells[place_of(nb, RUBRIC)].source = "points = 18"


def doubled(name: str) -> Callable[[NotebookNode], None]:
    def change(nb: NotebookNode) -> None:
        place = place_of(nb, name)
        nb.cells.insert(place, NotebookNode(nbformat.from_dict(nb.cells[place])))
        nb.cells[place].source = "points = 18"

    return change


def moved_to_markdown(nb: NotebookNode) -> None:
    place = place_of(nb, ANSWER)
    cell = nbformat.v4.new_markdown_cell(nb.cells[place].source, metadata=nb.cells[place].metadata)
    nb.cells[place] = cell


def with_outputs(nb: NotebookNode) -> None:
    cell = nb.cells[place_of(nb, RUBRIC)]
    cell.outputs = [nbformat.v4.new_output("stream", text="18 of 18")]


def nameless(nb: NotebookNode) -> None:
    """As some editors save it."""
    for cell in nb.cells:
        cell.metadata = NotebookNode()


CHANGES = {
    "deleted rubric": (deleted(RUBRIC), RUBRIC, "the cell is missing; the original is used"),
    "edited rubric": (edited, RUBRIC, "the cell was changed; the original is used"),
    "doubled rubric": (doubled(RUBRIC), RUBRIC, "the cell is there twice"),
    "doubled answer": (doubled(ANSWER), ANSWER, "the last one is used"),
    "answer as Markdown": (moved_to_markdown, ANSWER, "it is treated as code"),
    "outputs": (with_outputs, RUBRIC, ""),
}
"""Adding a case is adding a row: the change, the cell, and what is noted there."""


@pytest.mark.parametrize("name", CHANGES)
def test_the_lessons_cells_are_as_they_were_released(name: str, released: NotebookNode) -> None:
    change, cell, said = CHANGES[name]
    students = NotebookNode(nbformat.from_dict(released))
    students.cells[place_of(students, ANSWER)].source = "def transplant(x, y): ..."
    change(students)
    restored = parse(json.dumps(students).encode())
    restore(restored, released)
    assert names_of(restored.nb) == names_of(released)
    for each in names_of(released):
        original = released.cells[place_of(released, each)]
        found = restored.nb.cells[place_of(restored.nb, each)]
        assert (found.cell_type, found.metadata) == (original.cell_type, original.metadata)
        assert found.get("outputs", []) == []
        if not original.metadata["nbgrader"].get("solution"):
            assert found.source == original.source
    answer = restored.nb.cells[place_of(restored.nb, ANSWER)]
    assert answer.source == "def transplant(x, y): ..."
    assert said in " ".join(restored.notes.get(cell, []))
    assert set(restored.notes) <= {cell}


def test_a_locked_cell_that_the_lesson_has_changed_since_is_no_change_of_the_students(
    released: NotebookNode,
) -> None:
    students, released = (NotebookNode(nbformat.from_dict(released)) for _ in range(2))
    place = place_of(released, "setup")
    released.cells[place].source += "\n# a correction"
    restored = parse(json.dumps(students).encode())
    restore(restored, released)
    assert restored.notes == {}
    assert restored.nb.cells[place].source == released.cells[place].source
    students.cells[place].source += "\nmine = 1"
    restored = parse(json.dumps(students).encode())
    restore(restored, released)
    assert {*restored.notes} == {"setup"}


def test_a_deleted_answer_comes_back_empty(released: NotebookNode) -> None:
    """Its text may stand in another cell, which the stub would overwrite."""
    students = NotebookNode(nbformat.from_dict(released))
    deleted(ANSWER)(students)
    restored = Record(students)
    restore(restored, released)
    assert restored.nb.cells[place_of(restored.nb, ANSWER)].source == ""


def test_a_locked_cell_that_says_nothing_is_no_trouble(released: NotebookNode) -> None:
    about = {"nbgrader": {"grade_id": "empty", "grade": False, "solution": False, "locked": True}}
    empty = nbformat.v4.new_markdown_cell("", metadata=about)
    lesson = NotebookNode({**released, "cells": [empty, *released.cells]})
    nb = restore(Record(NotebookNode(nbformat.from_dict(lesson))), lesson).nb
    assert names_of(nb) == names_of(lesson)


def as_lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


LINES: dict[str, Callable[[str], str | list[str]]] = {
    "Windows": lambda source: source.replace("\n", "\r\n"),
    "an old Mac": lambda source: source.replace("\n", "\r"),
    "Windows, line by line": lambda source: as_lines(source.replace("\n", "\r\n")),
    "both": lambda source: source.replace("\n", "\r\n", 1),
}
"""How programs end the lines of a cell."""


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("ended", LINES)
def test_other_ends_of_lines_change_nothing(
    ended: str, whole: bool, released: NotebookNode
) -> None:
    students = json.loads(nbformat.writes(released))
    for cell in students["cells"]:
        cell["source"] = LINES[ended]("".join(cell["source"]))
    read = parse(json.dumps(students).encode(), whole=whole)
    assert [cell.source for cell in read.nb.cells] == [cell.source for cell in released.cells]
    restore(read, released)
    assert read.notes == {}


def order_of(nb: NotebookNode, *texts: str) -> list[int]:
    return [next(i for i, cell in enumerate(nb.cells) if text in cell.source) for text in texts]


def test_rubrics_without_their_names_are_found_by_their_text(released: NotebookNode) -> None:
    students = NotebookNode(nbformat.from_dict(released))
    students.cells[place_of(students, ANSWER)].source = "def transplant(x, y): ..."
    nameless(students)
    nb = restore(Record(students), released).nb
    assert {*names_of(nb)} == {*names_of(released)}
    answer, rubric = order_of(nb, "(x, y): ...", '@rubric("transplant")')
    assert answer < rubric == place_of(nb, RUBRIC)


@pytest.mark.parametrize(
    ("code", "said"),
    [("x = 1", NOT_OF_LESSON.words), ("def transplant(x, y): ...", "")],
)
def test_a_notebook_with_nothing_of_the_lesson_is_not_judged(
    code: str, said: str, released: NotebookNode
) -> None:
    homework = nbformat.v4.new_markdown_cell("Homework 3")
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code), homework])
    record = restore(Record(other), released)
    assert (record.problem.words if record.problem else "") == said
    assert bool(record.notes) == (not said)
    assert any(cell.source == "Homework 3" for cell in record.nb.cells) == (not said)


def test_of_a_notebook_of_answers_alone_each_rubric_stands_below_its_answer(
    released: NotebookNode,
) -> None:
    mine = ("def transplant(x, y): ...", "def attention_scores(q, k): ...")
    cells = [nbformat.v4.new_code_cell(code) for code in mine]
    nb = restore(Record(nbformat.v4.new_notebook(cells=cells)), released).nb
    setup, last, first = order_of(nb, "# the set-up", *mine)
    assert setup < last < first < place_of(nb, "test_attention_scores") < place_of(nb, RUBRIC)


@pytest.mark.parametrize("name", [ANSWER, RUBRIC])
def test_code_that_was_merged_into_another_cell_is_kept(released: NotebookNode, name: str) -> None:
    students = NotebookNode(nbformat.from_dict(released))
    rubric = place_of(students, "test_SelfAttention_v2")
    mine = "def transplant(x, y): ..."
    merged = {ANSWER: [rubric], RUBRIC: [place_of(students, RUBRIC)]}[name]
    for place in merged:
        own = students.cells[place].source
        students.cells[place].source = f"{own}\n\n{mine}" if name == ANSWER else f"{mine}\n\n{own}"
    del students.cells[place_of(students, ANSWER)]
    nb = restore(Record(students), released).nb
    answer, after = order_of(nb, mine, '@rubric("transplant")')
    assert place_of(nb, "test_SelfAttention_v2") < answer < after == place_of(nb, RUBRIC)
    assert mine not in nb.cells[place_of(nb, RUBRIC)].source


def test_many_small_cells_are_left_as_they_came() -> None:
    content = b'{"nbformat": 4, "cells": [' + b"{}," * 100_000 + b"{}]}"
    tracemalloc.start()
    assert "99501 were left out" in " ".join(parse(content).remarks)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60 * len(content)


def test_what_befell_many_cells_is_said_once() -> None:
    record = Record(notes={"a": ["it is missing"], "b": ["it is missing", "it was changed"]})
    assert record.noticed == "a, b: it is missing; b: it was changed"
