"""Verdicts as the metadata of a graded notebook, and cells of tables for spreadsheets."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from autograde.grading.state import seed_of
from autograde.grading.verdicts import graded_note, read_verdicts
from autograde.lms.spreadsheet import Cell, safe, write_table
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief
from autograde.rubric.panel import advice
from autograde.values.base import Table

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
    note = json.loads(json.dumps(graded_note(verdicts)))
    assert read_verdicts(note) == verdicts


def test_every_submission_has_a_seed_of_its_own_and_keeps_it() -> None:
    def seed(*sources: str, text: str = "", **files: bytes) -> int:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells.append(nbformat.v4.new_markdown_cell(text))
        named = {name.replace("_", "."): content for name, content in files.items()}
        return seed_of(b"secret", "lesson", nbformat.v4.new_notebook(cells=cells), named)

    assert len({seed(f"print({n})") for n in range(100)}) == 100
    assert seed("1", text="a") == seed("1", text="b")
    assert seed("1", "2") != seed("1\n2")
    assert (
        len({seed("1"), seed("1", a_txt=b"1"), seed("1", a_txt=b"2"), seed("1", b_txt=b"1")}) == 4
    )
    assert seed("1") == seed("1", a_ipynb=b"1", timestamp_txt=b"2")
    nothing = nbformat.v4.new_notebook()
    assert seed_of(b"secret", "a", nothing, {}) != seed_of(b"another", "a", nothing, {})
    assert seed_of(b"secret", "a", nothing, {}) != seed_of(b"secret", "b", nothing, {})


def test_a_notebook_graded_without_verdicts_has_none() -> None:
    assert read_verdicts({"problem": "", "notes": {}}) == {}


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
    [(("two",), "b That would explain 1 of the 2 wrong lines."),
     (("two", "four"), "b That would explain both wrong lines.")],
)  # fmt: skip
def test_a_belief_says_how_many_wrong_calls_it_explains(
    explained: tuple[str, ...], words: str
) -> None:
    belief = replace(BELIEF, lines=explained)
    four = LineVerdict("four", False, 0.0, 1.5, Failure("It is 1, expected 2.", "f(y)"))
    said, _ = advice(Verdict("f", 1.5, 6.0, (*LINES, four), beliefs=(belief,)), named=True)
    assert said.endswith(words)
    one_call = Verdict("f", 1.5, 4.5, LINES, beliefs=(BELIEF,))
    assert advice(one_call, named=True)[0].endswith("that b")
