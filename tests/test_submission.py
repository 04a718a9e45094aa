"""What is handed in: which notebook is graded, which files stay beside it, what is said of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograde.grading import submission
from autograde.grading.limits import LIMITS
from autograde.grading.restore import parse_submission
from autograde.grading.submission import Place, Submission, read_submission

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


def submitted(root: Path, **contents: bytes) -> Submission:
    """Read a submission of these files."""
    folder = root / "submitted" / "eve" / "01_a"
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return read_submission(Place("eve", a_lesson(root)), ["variants"])


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
    read = submitted(tmp_path, **dict.fromkeys(names, NOTEBOOK))
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
    read = submitted(tmp_path, **dict.fromkeys(names, NOTEBOOK))
    assert f"{LIMITS.files + 6} files were handed in; 6 were left out." in read.remark
    assert len(read.files) == LIMITS.files + 1  # and the lesson's own
    assert read.problem is None
    assert read.remark in parse_submission(read).remarks


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
    ("huge.ipynb",): ("The file has 2101 bytes, more than the 30000000 allowed.", ""),
    ("a.txt", "b.txt", "c.txt", "a.ipynb"): ("", "Too large, so left out: 'c.txt'."),
}


@pytest.mark.parametrize("names", SIZES)
def test_what_is_too_large_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(submission, "MAX_TOGETHER", 2100)
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
