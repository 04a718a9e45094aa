"""Verdicts as the metadata of a graded notebook, and cells of tables for spreadsheets."""

import csv
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import HERE
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograde.course.lessons import lessons
from autograde.course.versions import Version
from autograde.grading.record import Record, read_record, write_record
from autograde.grading.running.job import job_of, seed_of
from autograde.grading.submission import Place, Problem, Submission, Task
from autograde.lms.spreadsheet import Cell, safe, write_table
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief
from autograde.rubric.panel import advice
from autograde.values.base import Table
from autograde.values.text import digest, of_points

TABLE = Table("shape (1, 2)", (("1", "0.5000"),), ((0, 1),))
LINES = (
    LineVerdict("one", True, 1.5, 1.5),
    LineVerdict("two", False, 0.0, 1.5, Failure("Row 2 sums to 0.19.", "f(x)", TABLE, TABLE)),
    LineVerdict("three", False, 0.0, 1.5, Failure("")),
)
BELIEF = Belief("a", "b", "c", ("two",))


@pytest.mark.parametrize("beliefs", [(), (BELIEF,)])
def test_there_and_back(beliefs: tuple[Belief, ...]) -> None:
    verdicts = {
        "f": Verdict("f", 1.5, 4.5, LINES, beliefs=beliefs, note="a\nb"),
        "g": Verdict("g", 0.0, 2.0, (), attempted=False),
    }
    record = Record(
        verdicts=verdicts,
        problem=Problem("a cause", "words"),
        notes={"f": ["a note"]},
        remarks=["a remark"],
        left_out=frozenset({"a", "b"}),
        earlier=True,
        walled=False,
        title="title",
        grader="0.1",
        date="2026-03-01",
    )
    assert read_record(json.loads(json.dumps(write_record(record)))) == record


A_LESSON = lessons(HERE)["02_causal_mask"]


def seed(*cells: str | NotebookNode, text: str = "", left_out: str = "", **files: bytes) -> int:
    """The seed of a submission with these cells, and the ids of those that are not run."""
    given = [new_code_cell(each, id="a") if isinstance(each, str) else each for each in cells]
    nb = NotebookNode(cells=[*given, new_markdown_cell(text)])
    named = {".".join(name.rsplit("_", 1)): content for name, content in files.items()}
    released = new_notebook(cells=[each for each in nb.cells if each.id in left_out.split()])
    built = json.dumps(released).encode()
    version = Version(A_LESSON, digest(repr(built)), b"", b"", built, b"")
    task = Task(Submission(Place("student", A_LESSON), named), wall=False, secret=b"secret")
    return job_of(Record(nb), version, task)[1].seed


def test_every_submission_has_a_seed_of_its_own_and_keeps_it() -> None:
    assert len({seed(f"print({n})") for n in range(100)}) == 100
    assert seed("1", text="a") == seed("1", text="b")
    assert seed("1", "2") != seed("1\n2")
    assert (
        len({seed("1"), seed("1", a_txt=b"1"), seed("1", a_txt=b"2"), seed("1", b_txt=b"1")}) == 4
    )
    assert seed("1") == seed("1", a_ipynb=b"1", timestamp_txt=b"2")
    assert seed("1") == seed("1", submission_secret_txt=b"another for each time it is handed in")
    assert seed_of(b"secret", "a", "") != seed_of(b"another", "a", "")
    assert seed_of(b"secret", "a", "") != seed_of(b"secret", "b", "")


def of_name(name: str, source: str, ident: str = "a") -> NotebookNode:
    about = {"nbgrader": {"grade_id": name}} if name else {}
    return new_code_cell(source, id=ident, metadata=about)


TWO = {
    "a NUL between cells": (seed("x", ""), seed("x\0")),
    "a NUL before a file": (seed("x", a_txt=b"1"), seed(f"x\0a.txt\0{sha256(b'1').hexdigest()}")),
    "another cell that is the answer": (
        seed(of_name("f", "x"), "y"),
        seed(of_name("", "x"), of_name("f", "y")),
    ),
    "another cell that is run": (
        seed(of_name("", "x", "a"), of_name("", "y", "b"), left_out="a"),
        seed(of_name("", "x", "a"), of_name("", "y", "b"), left_out="b"),
    ),
    "a cell that is not run": (seed("x"), seed("x", left_out="a")),
    "cells in another order": (seed("x", "y"), seed("y", "x")),
    "an empty cell": (seed("x"), seed("x", "")),
    "text in quotes": (seed('x", "y'), seed("x", "y")),
    "a file of another name": (seed("x", a_txt=b"bc"), seed("x", ab_txt=b"c")),
    "two files": (seed("x", a_txt=b"", b_txt=b""), seed("x", a_txt=b"")),
}


@pytest.mark.parametrize("name", TWO)
def test_submissions_that_a_kernel_can_tell_apart_share_no_seed(name: str) -> None:
    one, other = TWO[name]
    assert one != other


def test_a_regrade_keeps_the_seed_whatever_a_kernel_cannot_see() -> None:
    assert seed("x", text="a", a_txt=b"1") == seed("x", text="b", a_txt=b"1", b_ipynb=b"2")
    assert seed(of_name("", "x", "a"), left_out="a") == seed(of_name("", "y", "a"), left_out="a")


CELLS: list[tuple[Cell, Cell]] = [
    ("=1+1", "'=1+1"),
    ("+49 30", "'+49 30"),
    ("-cmd", "'-cmd"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "'\t=1"),
    ("\r=1", "'\r=1"),
    ("\n=1", "'\n=1"),
    ("＝1", "'＝1"),  # noqa: RUF001
    ("-1.5", "-1.5"),
    ("+3", "+3"),
    (-1.5, -1.5),
    (None, None),
    ("", ""),
    ("a=b", "a=b"),
    ("O'Neil; Ann", "O'Neil; Ann"),
]


SCORES = {
    (5.0, 9.0, 0.0): "5 of 9 points",
    (5.0, 9.0, 2.0): "5 of 9 points, 2 points await marking",
    (0.0, 9.0, 9.0): "0 of 9 points, 9 points await marking",
    (0.5, 1.0, 1.0): "0.5 of 1 point, 1 point awaits marking",
}


@pytest.mark.parametrize("score", SCORES)
def test_a_score_says_what_awaits_marking(score: tuple[float, float, float]) -> None:
    assert of_points(*score) == SCORES[score]


@pytest.mark.parametrize(("value", "cell"), CELLS)
def test_no_cell_runs_as_a_formula(value: Cell, cell: Cell) -> None:
    assert safe(value) == cell


def test_a_table_keeps_numbers_and_quotes_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(path, ["a", "=b"], [["x;=1", 2.5], ['say "hi"\n=2', None], ["Müller", -3]])
    text = path.read_bytes().decode()
    assert '"x;=1",2.5\r\n' in text  # a quoted cell is one cell for other separators as well
    with path.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["a", "'=b"], ["x;=1", "2.5"], ['say "hi"\n=2', ""], ["Müller", "-3"],
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("explained", "words"),
    [(("two",), "b That would explain 1 of the 3 wrong lines."),
     (("two", "four"), "b That would explain 2 of the 3 wrong lines."),
     (("two", "three", "four"), "b That would explain all 3 wrong lines.")],
)  # fmt: skip
def test_a_belief_says_how_many_of_the_wrong_lines_it_explains(
    explained: tuple[str, ...], words: str
) -> None:
    belief = replace(BELIEF, lines=explained)
    four = LineVerdict("four", False, 0.0, 1.5, Failure("It is 1, expected 2.", "f(y)"))
    said, _ = advice(Verdict("f", 1.5, 6.0, (*LINES, four), beliefs=(belief,)), named=True)
    assert said.endswith(words)
    one_call = Verdict("f", 1.5, 4.5, LINES, beliefs=(BELIEF,))
    assert advice(one_call, named=True)[0].endswith("that b")
