"""What is handed in: which notebook is graded, which files stay beside it, what is said of it."""

import html
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import classes
import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograde.grading.gradebook import time_of
from autograde.grading.limits import LIMITS, Limits
from autograde.grading.reading import handed_in as reading
from autograde.grading.reading.handed_in import read_submission
from autograde.grading.reading.parse import parse_submission
from autograde.grading.submission import Place, Submission
from autograde.lms import exchange

NOTEBOOK = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'


def a_lesson(root: Path) -> Any:
    """The few facts of a lesson that matter here, with a file of its own."""
    folder = root / "source" / "01_a"
    folder.mkdir(parents=True)
    (folder / "data.txt").write_text("the lesson's own")
    (folder / "variants").mkdir()
    (folder / "variants" / "wrong.md").write_text("not for students")
    own = {"text": folder / "a.py", "tolerance_file": folder / "tolerances.json"}
    return SimpleNamespace(root=root, name="01_a", notebook="a", folder=folder, **own)


def submitted(root: Path, handed_out: Sequence[Any] = (), **contents: bytes) -> Submission:
    """Read a submission of these files."""
    folder = root / "submitted" / "eve" / "01_a"
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return read_submission(Place("eve", a_lesson(root)), ["variants"], handed_out)


def can_be_written(read: Submission, folder: Path) -> None:
    for name, content in (read.files | {"a.html": b""}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


FOLDERS = {
    "the notebook's name on a folder": (("a.ipynb/x.txt",), "a.ipynb was not handed in"),
    "the page's name on a folder": (("a.ipynb", "a.html/x"), ""),
    "a folder called like the lesson's file": (("a.ipynb", "data.txt/x"), ""),
    "a second notebook": (("a.ipynb", "b.ipynb"), ""),
    "very deep": (("a.ipynb", "d/" * 60 + "x"), ""),
    "escapes in a name": (
        ("\x1b[31mred.ipynb", "\x1b.ipynb"),
        r"'\x1b.ipynb', '\x1b[31mred.ipynb'",
    ),
    "half a character": ((b"\xff.ipynb".decode("utf-8", "surrogateescape"),), ""),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_odd_folders_are_read(tmp_path: Path, name: str) -> None:
    names, problem = FOLDERS[name]
    read = submitted(tmp_path, **{each: NOTEBOOK + b" " * n for n, each in enumerate(names)})
    words = read.problem.words if read.problem else ""
    assert problem in words
    assert bool(problem) == bool(words)
    assert parse_submission(read).problem == read.problem
    f"{words} {read.remark}".encode()
    assert [file for file in read.files if file.endswith(".ipynb")] == ["a.ipynb"]
    can_be_written(read, tmp_path / "autograded")


def test_a_file_in_the_way_is_left_out_and_said(tmp_path: Path) -> None:
    read = submitted(tmp_path, **dict.fromkeys(("a.ipynb", "a.html/x"), NOTEBOOK))
    assert read.remark == "2 files were handed in; 1 were left out."


def test_many_files_are_left_out_and_said(tmp_path: Path) -> None:
    names = "a.ipynb", *(f"{n}.txt" for n in range(LIMITS.files + 5))
    read = submitted(tmp_path, **dict.fromkeys(names, b"text"))
    assert f"{LIMITS.files + 6} files were handed in; 6 were left out." in read.remark
    assert len(read.files) == LIMITS.files + 1  # and the lesson's own
    assert read.problem is None
    assert read.files["a.ipynb"] == b"text"
    assert read.remark in parse_submission(read).remarks


def test_files_below_more_than_ten_folders_are_left_out(tmp_path: Path) -> None:
    deep, deeper = "d/" * 10 + "x", "d/" * 11 + "x"
    read = submitted(tmp_path, **dict.fromkeys(("a.ipynb", deep, deeper), b"text"))
    assert read.files.keys() == {"a.ipynb", deep, "data.txt"}


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "eve"
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.ipynb").write_bytes(NOTEBOOK)
    (folder / "01_a").symlink_to(tmp_path / "elsewhere")
    read = submitted(tmp_path)
    assert list(read.files) == ["a.ipynb", "data.txt"]
    assert read.problem
    assert "was not handed in" in read.problem.words


SIZES = {
    ("a.ipynb", "data.bin"): ("", "Too large, so left out: 'data.bin'."),
    ("my own.ipynb", "data.bin"): (
        "",
        "The file was called 'my own.ipynb'; it was graded as a.ipynb. "
        "Too large, so left out: 'data.bin'.",
    ),
    ("huge.ipynb",): (
        "0.0 MB, more than the 30 MB allowed. Clear all outputs, save, and submit",
        "",
    ),
    ("a.txt", "b.txt", "c.txt", "a.ipynb"): ("", "Too large, so left out: 'c.txt'."),
}


@pytest.mark.parametrize("names", SIZES)
def test_what_is_too_large_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(reading, "LIMITS", Limits(together_bytes=2100))
    sizes = {"data.bin": 2101, "huge.ipynb": 2101, "a.ipynb": 2, "my own.ipynb": 2}
    contents = {
        name: b"{}" if sizes.get(name) == 2 else b"x" * sizes.get(name, 900) for name in names
    }
    read = submitted(tmp_path, **contents)
    problem, remark = SIZES[names]
    assert read.remark == remark
    found = parse_submission(read).problem
    assert found
    assert (problem or "JSON, but not") in found.words


def of_lesson(
    *answers: str, rubric: str = "f", checksum: str = "1", more: str = ""
) -> NotebookNode:
    """A notebook of a lesson with two exercises, some of them answered, and text of one's own."""
    names = (rubric, f"{rubric}_again")
    given = [*answers, "# YOUR CODE HERE", "# YOUR CODE HERE"]
    cells = [new_markdown_cell("The lesson's text")]
    for name, source in zip(names, given, strict=False):
        answer = {"grade_id": name, "solution": True, "grade": False}
        judged = {"grade_id": f"test_{name}", "solution": False, "grade": True,
                  "checksum": f"{name}-{checksum}"}  # fmt: skip
        rubric_text = f'@rubric("{name}")'
        cells.append(new_code_cell(source, metadata={"nbgrader": answer}))
        cells.append(new_code_cell(rubric_text, metadata={"nbgrader": judged}))
    return new_notebook(cells=[*cells, *([new_markdown_cell(more)] if more else [])])


def nameless(nb: NotebookNode) -> NotebookNode:
    for cell in nb.cells:
        cell.metadata = NotebookNode()
    return nb


GIVEN, ONE, TWO = of_lesson(), of_lesson("1"), of_lesson("1", "2")
OTHER = of_lesson("1", "2", rubric="g")
UTF_16 = nbformat.writes(ONE).encode("utf-16")

CHOICES: dict[str, tuple[dict[str, NotebookNode | bytes], str, str]] = {
    "a copy with the work": (
        {"a.ipynb": GIVEN, "a-Copy1.ipynb": ONE}, "a-Copy1.ipynb", "it has the most answers"),
    "an untouched copy": ({"a.ipynb": ONE, "a-Copy1.ipynb": GIVEN}, "a.ipynb", "the most answers"),
    "an early copy": ({"a.ipynb": TWO, "a-Copy1.ipynb": ONE}, "a.ipynb", "the most answers"),
    "two with work": (
        {"a.ipynb": ONE, "a-Copy2.ipynb": of_lesson("3"), "a-Copy1.ipynb": of_lesson("2")},
        "a-Copy2.ipynb", "the number in its name is the highest"),
    "a later download": (
        {"a (1).ipynb": of_lesson("4"), "a (10).ipynb": ONE, "a (9).ipynb": of_lesson("3")},
        "a (10).ipynb", "the number"),
    "two names": ({"z.ipynb": of_lesson("2"), "a.ipynb": ONE}, "a.ipynb", "it has the name of the"),
    "only words": (
        {"a.ipynb": GIVEN, "b.ipynb": of_lesson(more="Hello")}, "b.ipynb", "something of the"),
    "another lesson's": ({"a.ipynb": OTHER, "b.ipynb": ONE}, "b.ipynb", "it is from this lesson"),
    "another lesson's beside an untouched one": (
        {"a.ipynb": GIVEN, "b.ipynb": OTHER}, "a.ipynb", "it is from this lesson"),
    "another version of the lesson": (
        {"a.ipynb": of_lesson("1", "2", checksum="0"), "b.ipynb": GIVEN}, "b.ipynb",
        "it is from this lesson"),
    "a broken one": ({"a.ipynb": b"{", "b.ipynb": ONE}, "b.ipynb", "it is from this lesson"),
    "cells without names": (
        {"a.ipynb": OTHER, "b.ipynb": nameless(of_lesson("1"))}, "b.ipynb", "from this lesson"),
    "none of this lesson": ({"a.ipynb": OTHER, "b.ipynb": b"{"}, "a.ipynb", "the name of the"),
    "a folder below": ({"hw/a.ipynb": ONE, "a.ipynb": GIVEN}, "hw/a.ipynb", "the most answers"),
    "the same twice": ({"hw/a.ipynb": ONE, "a.ipynb": ONE}, "a.ipynb", ""),
    "in a folder": ({"hw/a.ipynb": ONE}, "hw/a.ipynb", "The file was called 'hw/a.ipynb'"),
    "as JSON": ({"a.ipynb.json": ONE}, "a.ipynb.json", "The file was called 'a.ipynb.json'"),
    "as text": ({"a.ipynb.txt": ONE, "b.txt": b"{}"}, "a.ipynb.txt", "called 'a.ipynb.txt'"),
    "as UTF-16": ({"a.ipynb.txt": UTF_16}, "a.ipynb.txt", "called 'a.ipynb.txt'"),
    "loud": ({"A.IPYNB": ONE}, "A.IPYNB", "The file was called 'A.IPYNB'"),
    "without an end": ({"mine": ONE, "a.html": b"<p>"}, "mine", "The file was called mine"),
    "a hidden folder": (
        {".ipynb_checkpoints/a-checkpoint.ipynb": TWO, "a.ipynb": ONE}, "a.ipynb", ""),
}  # fmt: skip
"""What was handed in, which file is graded, and what is said."""


@pytest.mark.parametrize("case", CHOICES)
def test_the_notebook_is_chosen_by_what_is_in_it(tmp_path: Path, case: str) -> None:
    given, chosen, said = CHOICES[case]
    contents = {
        name: nb if isinstance(nb, bytes) else nbformat.writes(nb).encode()
        for name, nb in given.items()
    }
    read = submitted(tmp_path, [GIVEN], **contents)
    assert read.problem is None
    assert read.files["a.ipynb"] == contents[chosen]
    assert said in read.remark if said else read.remark == ""
    for name, content in contents.items():  # each is named
        if content != contents[chosen] and "nb" in name and not name.startswith("."):
            assert name in read.remark
    assert not [n for n in read.files if "ipynb" in n.lower() and n != "a.ipynb"]
    assert read.remark in " ".join(parse_submission(read).remarks)


def test_what_came_in_place_of_a_notebook_is_named(tmp_path: Path) -> None:
    read = submitted(tmp_path, **{"work.rar": b"Rar!", "timestamp.txt": b"2026-03-01 12:00"})
    assert read.problem
    assert read.problem.words.startswith(
        "a.ipynb was not handed in (found: no notebook, only 'work.rar'). What counts is "
    )


TIMES = {
    "2026-03-03 06:00:00 -0500": datetime(2026, 3, 3, 11),
    "2026-03-03 06:00 +05:30": datetime(2026, 3, 3, 0, 30),
    "2026-03-03T06:00:00-05:00": datetime(2026, 3, 3, 11),
    "2026-03-03 06:00:00.5 UTC": datetime(2026, 3, 3, 6, 0, 0, 500_000),
    "2026-03-03 06:00:00": datetime(2026, 3, 3, 6),
    "": None,
}


@pytest.mark.parametrize("text", TIMES)
def test_an_offset_in_a_time_stamp_counts_in_hours(tmp_path: Path, text: str) -> None:
    read = submitted(tmp_path, **{"a.ipynb": NOTEBOOK, "timestamp.txt": text.encode()})
    assert time_of(read) == TIMES[text]


@pytest.mark.parametrize("text", TIMES)
def test_the_exchange_reads_a_time_stamp_as_grading_does(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    assert exchange._time(tmp_path / "timestamp.txt") == TIMES[text]


def test_the_choice_is_on_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    lesson = classes.make_course(tmp_path, ())
    path = classes.hand_in(lesson, "ann")
    path.rename(path.with_name("causal_mask-Copy1.ipynb"))
    classes.put_file(lesson, "ann", lesson.released_notebook.read_bytes())
    said = "'causal_mask-Copy1.ipynb' was graded, because it has the most answers"
    assert said in classes.grade_one(lesson, "ann").problem
    page = html.unescape(classes.file_of(lesson, "ann", "feedback").read_text())
    assert f"{said}; not graded: 'causal_mask.ipynb'." in page
    assert classes.scores(tmp_path) == {"ann": lesson.points}
