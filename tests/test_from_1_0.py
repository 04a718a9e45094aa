"""A course that version 1.0 made and graded, read by this one: course_1_0.zip stays as it is."""

import csv
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from classes import NO_WALL
from conftest import program
from nbgrader.api import Gradebook

LESSON = "01_words"
SCORES = {"ada": 6.5, "bob": 10 / 7, "eve": 5.0, "kim": 0.0}
"""Ada got 1.5 by hand. Eve's answer is right by the earlier version of the lesson only."""


@pytest.fixture
def words(tmp_path: Path) -> Path:
    with ZipFile(Path(__file__).with_name("course_1_0.zip")) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def autograde(root: Path, *arguments: str) -> str:
    done = program(sys.executable, "-m", "autograde.cli", *arguments, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def grades(root: Path) -> dict[tuple[str, str], Any]:
    """What the gradebook says of each cell of each student."""
    with Gradebook(f"sqlite:///{root}/gradebook.db", "words") as gradebook:
        return {
            (submission.student_id, grade.name): (
                grade.auto_score,
                grade.manual_score,
                grade.needs_manual_grade,
                {each.manual_comment for each in notebook.comments if each.name == grade.name},
            )
            for submission in gradebook.assignment_submissions(LESSON)
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def test_its_submissions_are_graded_again_with_the_same_marks(words: Path) -> None:
    before = grades(words)
    assert before["ada", "why_split"] == (None, 1.5, False, {"And the end of a line?"})
    autograde(words, "build")
    assert "4 graded" in autograde(words, "grade", *NO_WALL)
    assert grades(words) == before


def test_its_reports_and_exports_are_made(words: Path) -> None:
    autograde(words, "report")
    report = (words / "report" / f"{LESSON}.html").read_text()
    assert "1 of 4 were made from an earlier version of the lesson" in report
    assert "<code>max</code> finds what is longest" in report
    autograde(words, "export", "--format", "csv", "--to", "grades.csv")
    with (words / "grades.csv").open() as file:
        rows = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert rows == pytest.approx(SCORES, abs=0.0001)
