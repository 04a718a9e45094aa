"""A new version of a lesson in a notebook that a student has worked in: a table of cases."""

import copy
import re
from dataclasses import dataclass

import nbformat
import pytest
from nbformat import NotebookNode

from autograde.authoring.sources import identify
from autograde.course.cells import grade_id
from autograde.workspace.merge import CHANGED_TOO, merge

Cells = list[NotebookNode]


def cell(source: str, kind: str = "code", **nbgrader: object) -> NotebookNode:
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return NotebookNode(make(source, metadata={"nbgrader": nbgrader} if nbgrader else {}))


def text(source: str) -> NotebookNode:
    return cell(source, "markdown")


def answer(source: str, name: str = "f") -> NotebookNode:
    return cell(source, grade_id=name, solution=True, locked=False, grade=False)


def rubric(source: str, name: str = "test_f", points: int = 2) -> NotebookNode:
    return cell(source, grade_id=name, solution=False, locked=True, grade=True, points=points)


def lesson(*cells: NotebookNode) -> NotebookNode:
    """A lesson as `autograde build` writes it."""
    return identify(nbformat.v4.new_notebook(cells=[copy.deepcopy(cell) for cell in cells]))


def students(old: NotebookNode, *steps: object) -> NotebookNode:
    """What a student made of it: each step changes, deletes or adds a cell."""
    nb = copy.deepcopy(old)
    for step in steps:
        step(nb.cells)  # type: ignore[operator]
    return nb


def edit(before: str, after: str) -> object:
    def step(cells: Cells) -> None:
        next(cell for cell in cells if cell.source == before).source = after

    return step


def delete(source: str) -> object:
    def step(cells: Cells) -> None:
        cells[:] = [cell for cell in cells if cell.source != source]

    return step


def add(source: str, after: str | None = None) -> object:
    def step(cells: Cells) -> None:
        sources = [cell.source for cell in cells]
        place = 0 if after is None else sources.index(after) + 1
        cells.insert(place, NotebookNode(nbformat.v4.new_code_cell(source)))

    return step


def double(source: str, now: str) -> object:
    """Copy a cell, name and all, to the end."""

    def step(cells: Cells) -> None:
        again = copy.deepcopy(next(cell for cell in cells if cell.source == source))
        again.source, again["id"] = now, "copied"
        cells.append(again)

    return step


def forget_ids() -> object:
    """As some programs do when they save."""

    def step(cells: Cells) -> None:
        for number, cell in enumerate(cells):
            cell["id"] = f"other-{number}"
        del cells[0]["id"]

    return step


def move_up(source: str) -> object:
    def step(cells: Cells) -> None:
        cells.insert(0, cells.pop([cell.source for cell in cells].index(source)))

    return step


def summary(nb: NotebookNode) -> list[str]:
    """The cells' texts; a note is named by the text that it shows."""
    note = re.compile(rf"{re.escape(CHANGED_TOO)}\n\n~~~~python\n(.*)\n~~~~", re.DOTALL)
    return [note.sub(r"the lesson's is: \1", cell.source) for cell in nb.cells]


@dataclass(frozen=True)
class Case:
    """`old` was handed out, the student took `steps`, then the lesson became `new`."""

    old: tuple[NotebookNode, ...]
    steps: tuple[object, ...]
    new: tuple[NotebookNode, ...]
    becomes: list[str]


A, B, STUB, CHECK = text("# A"), text("B"), answer("stub"), rubric("check")
GIVEN = (A, STUB, CHECK, B)

CASES = {
    "nothing changed": Case(GIVEN, (), GIVEN, ["# A", "stub", "check", "B"]),
    "an answer is kept": Case(
        GIVEN, (edit("stub", "mine"),), GIVEN, ["# A", "mine", "check", "B"]
    ),
    "a new text is taken": Case(
        GIVEN, (edit("stub", "mine"),), (text("# A2"), STUB, CHECK, B),
        ["# A2", "mine", "check", "B"],
    ),
    "a new rubric is taken": Case(
        GIVEN, (edit("stub", "mine"),), (A, STUB, rubric("check 2"), B),
        ["# A", "mine", "check 2", "B"],
    ),
    "a new stub is taken where nothing was written": Case(
        GIVEN, (), (A, answer("stub 2"), CHECK, B), ["# A", "stub 2", "check", "B"]
    ),
    "an answer and a new stub": Case(
        GIVEN, (edit("stub", "mine"),), (A, answer("stub 2"), CHECK, B),
        ["# A", "mine", "the lesson's is: stub 2", "check", "B"],
    ),
    "an answer that is the new stub": Case(
        GIVEN, (edit("stub", "stub 2"),), (A, answer("stub 2"), CHECK, B),
        ["# A", "stub 2", "check", "B"],
    ),
    "a locked cell is the lesson's": Case(
        GIVEN, (edit("check", "cheat"),), (text("# A2"), STUB, CHECK, B),
        ["# A2", "stub", "check", "B"],
    ),
    "a text that the student annotated": Case(
        GIVEN, (edit("B", "B, I think"),), (text("# A2"), STUB, CHECK, B),
        ["# A2", "stub", "check", "B, I think"],
    ),
    "a text that both changed": Case(
        GIVEN, (edit("B", "B, I think"),), (A, STUB, CHECK, text("B2")),
        ["# A", "stub", "check", "B, I think", "B2"],
    ),
    "an own cell behind one that was rewritten": Case(
        GIVEN, (add("my note", "B"), add("mine", "# A")), (text("# A2"), STUB, CHECK, text("B2")),
        ["mine", "# A2", "stub", "check", "my note", "B2"],
    ),
    "a cell that the lesson dropped": Case(
        GIVEN, (), (A, STUB, CHECK), ["# A", "stub", "check"]
    ),
    "an exercise that the lesson dropped and the student had answered": Case(
        GIVEN, (edit("stub", "mine"),), (A, B), ["# A", "mine", "B"],
    ),
    "a cell that the lesson added": Case(
        GIVEN, (edit("stub", "mine"),), (A, answer("stub g", "g"), STUB, CHECK, text("C"), B),
        ["# A", "stub g", "mine", "check", "C", "B"],
    ),
    "a deleted cell comes back": Case(
        GIVEN, (delete("check"),), (text("# A2"), STUB, CHECK, B), ["# A2", "stub", "check", "B"]
    ),
    "cells of the student's own stay where they were": Case(
        GIVEN, (add("first"), add("my note", "stub"), add("my test", "my note"), add("last", "B")),
        (A, text("new"), STUB, CHECK, B),
        ["first", "# A", "new", "stub", "my note", "my test", "check", "B", "last"],
    ),
    "an own cell behind one that was dropped": Case(
        GIVEN, (add("my note", "check"),), (A, STUB, B), ["# A", "stub", "my note", "B"]
    ),
    "a cell that stands twice: the last one is used, as in grading": Case(
        GIVEN, (edit("stub", "first try"), double("first try", "second try")),
        (A, STUB, CHECK, text("B2")), ["# A", "first try", "second try", "check", "B2"],
    ),
    "a program that dropped the ids": Case(
        GIVEN, (edit("stub", "mine"), forget_ids()), (A, STUB, CHECK, text("B2")),
        ["# A", "mine", "check", "B2"],
    ),
    "cells that the student moved go back, with their texts": Case(
        GIVEN, (edit("stub", "mine"), move_up("mine")), (text("# A2"), STUB, CHECK, B),
        ["# A2", "mine", "check", "B"],
    ),
    "everything at once, in an empty notebook": Case(
        GIVEN, tuple(delete(cell.source) for cell in GIVEN), (A, STUB, rubric("check 2")),
        ["# A", "stub", "check 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_merge(case: Case) -> None:
    old, new = lesson(*case.old), lesson(*case.new)
    mine = students(old, *case.steps)
    merged = merge(old, mine, new)
    assert summary(merged) == case.becomes
    nbformat.validate(merged)
    ids = [cell.id for cell in merged.cells]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_that_a_student_wrote_is_lost_but_changes_of_locked_cells(case: Case) -> None:
    old, new = lesson(*case.old), lesson(*case.new)
    mine = students(old, *case.steps)
    written = {cell.source for cell in mine.cells} - {cell.source for cell in old.cells}
    everything = "\n".join(cell.source for cell in merge(old, mine, new).cells)
    assert [source for source in written - {"cheat"} if source not in everything] == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_merging_again_changes_nothing(case: Case) -> None:
    """Also when the merge was written and what was handed out was not: it was killed between."""
    old, new = lesson(*case.old), lesson(*case.new)
    once = merge(old, students(old, *case.steps), new)
    assert merge(new, once, new) == once
    assert merge(old, once, new) == once


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_name_stands_once_and_only_if_the_lesson_has_it(case: Case) -> None:
    """nbgrader goes by names; one that stands twice is an error to it."""
    old, new = lesson(*case.old), lesson(*case.new)
    merged = merge(old, students(old, *case.steps), new)
    names = [name for cell in merged.cells if (name := grade_id(cell))]
    assert len(names) == len(set(names))
    assert set(names) <= {grade_id(cell) for cell in new.cells}


def test_points_tags_and_checksums_are_the_lessons() -> None:
    old, new = lesson(*GIVEN), lesson(A, STUB, rubric("check", points=3), B)
    mine = students(old, edit("stub", "mine"))
    mine.cells[2].metadata["collapsed"] = True
    merged = merge(old, mine, new)
    (kept,) = (cell for cell in merged.cells if grade_id(cell) == "test_f")
    assert kept.metadata["nbgrader"]["points"] == 3
    assert kept.metadata["collapsed"]


def test_outputs_stay_where_the_cell_stays() -> None:
    old, new = lesson(*GIVEN), lesson(A, STUB, rubric("check 2"), B)
    mine = students(old, edit("stub", "mine"))
    for cell in mine.cells[1:3]:
        cell.outputs = [nbformat.v4.new_output("stream", text="out")]
        cell.execution_count = 1
    _, kept, taken, _ = merge(old, mine, new).cells
    assert kept.outputs
    assert (taken.outputs, taken.execution_count) == ([], None)
