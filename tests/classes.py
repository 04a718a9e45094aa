"""A small class of lesson 02 for tests, and what a gradebook holds, to be compared."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Base, Gradebook
from once import made
from sqlalchemy import text

from autograde.authoring.build import adopt
from autograde.authoring.variants import Variant, read_variants
from autograde.course.cells import grade_id
from autograde.course.lessons import Lesson, lessons
from autograde.course.versions import notebook_of, versions
from autograde.grading import pipeline
from autograde.grading.batch import How, grade_class
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record
from autograde.grading.running import job
from autograde.grading.submission import Done, Place, Submission, Task
from autograde.sandbox.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import CHANGES, FILES, fill, reference_answers  # noqa: E402

LESSON = "02_causal_mask"
NO_WALL = ["--no-wall"] if missing() else []

# nbgrader starts `alembic` by name when it makes a gradebook
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def gradebook_of(root: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{root}/gradebook.db", "attention")


def copy_course(root: Path) -> None:
    """This course, built, with nobody in it."""
    for folder in ("source", "notebooks", "solutions"):
        shutil.copytree(HERE / folder, root / folder)
    shutil.copy(HERE / "nbgrader_config.py", root)


def make_course(root: Path, students: tuple[str, ...], name: str = LESSON) -> Lesson:
    """This course, one lesson of it known to the gradebook, and a class that has handed it in."""

    def make(root: Path) -> None:
        copy_course(root)
        adopt(lessons(root)[name])

    shutil.copytree(made(f"course-{name}", make), root, dirs_exist_ok=True)
    lesson = lessons(root)[name]
    for student in students:
        hand_in(lesson, student)
    return lesson


def judged(lesson: Lesson, nb: NotebookNode) -> Record:
    """What grading finds out about a notebook, on seed 7; behind a wall where there is one."""
    version = versions(lesson)[0]
    submission = Submission(Place("student", lesson), {})
    task = Task(submission, not missing(), secret=b"secret", alone=True)
    with patch.object(job, "seed_of", return_value=7):
        restored = restore(Record(nb), notebook_of(version))
        record, _, _ = pipeline.grade_restored(restored, version, task)
    return record


def file_of(lesson: Lesson, student: str, kind: str = "submitted") -> Path:
    """A student's notebook, submitted or autograded, or the page of feedback on it."""
    ending = "html" if kind == "feedback" else "ipynb"
    return lesson.root / kind / student / lesson.name / f"{lesson.notebook}.{ending}"


def files_in(folder: Path) -> dict[str, bytes]:
    """The files anywhere below a folder, by their paths from there."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def put_file(
    lesson: Lesson, student: str, content: NotebookNode | bytes, kind: str = "submitted"
) -> Path:
    path = file_of(lesson, student, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        nbformat.write(content, path)
    return path


def hand_in(lesson: Lesson, student: str, *, code: str = "") -> Path:
    """Hand in the reference's answers, with the changes that the sample class has for a student."""
    if student in FILES:
        return put_file(lesson, student, FILES[student])
    nb = fill(lesson, {} if student.startswith("untouched") else reference_answers(lesson))
    if student in CHANGES:
        CHANGES[student](nb, lesson.exercises[-1])
    nb.cells.append(nbformat.v4.new_code_cell(code or f"print('this is {student}')"))
    return put_file(lesson, student, nb)


def wrong_answer(lesson: Lesson, exercise: str, name: str) -> Variant:
    """A known wrong answer."""
    variants = read_variants(lesson, lesson.exercise(exercise)).wrong
    wrong = {variant.name: variant for variant in variants}
    assert name in wrong, f"{exercise} has no wrong variant {name}; there are {', '.join(wrong)}"
    return wrong[name]


def without_demonstrations(nb: NotebookNode) -> NotebookNode:
    """Leave out the code that only shows something, for answers that would have all of it run."""
    nb.cells = [cell for cell in nb.cells if cell.cell_type != "code" or grade_id(cell)]
    return nb


def forget(root: Path, *, results: bool = False, keep: str = "") -> None:
    """As if nobody had been graded yet; with `results` nothing has run, either.

    The gradebook keeps what it has of one student.
    """
    for name in ("autograded", "feedback", ".autograde/graded"):
        shutil.rmtree(root / name)
    if results:
        shutil.rmtree(root / ".autograde" / "ran")
    with gradebook_of(root) as gradebook:
        for student in {student.id for student in gradebook.students} - {keep}:
            gradebook.remove_student(student)


def grade(root: Path, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run `autograde grade`, walled where that is possible."""
    command = [sys.executable, "-m", "autograde.cli", "grade", LESSON, *NO_WALL, *options]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, **more)


def grade_one(lesson: Lesson, student: str) -> Done:
    """Grade one submission in this process's way, walled where that is possible."""
    (done,) = grade_all([Place(student, lesson)], How(1, wall=not missing()))
    return done


def grade_all(places: list[Place], how: How) -> list[Done]:
    """Grade submissions in this process's way, and return what became of each."""
    done: list[Done] = []
    grade_class(places, how, done.append)
    return done


ROWS = {
    "students": "SELECT id FROM student",
    "submissions": """
        SELECT s.student_id, s.timestamp, s.extension, n.late_submission_penalty
        FROM submitted_assignment s LEFT JOIN submitted_notebook n ON n.assignment_id = s.id""",
    "grades": """
        SELECT s.student_id, c.name, g.auto_score, g.manual_score, g.extra_credit,
               g.needs_manual_grade
        FROM submitted_assignment s JOIN submitted_notebook n ON n.assignment_id = s.id
        JOIN grade g ON g.notebook_id = n.id JOIN base_cell c ON c.id = g.cell_id""",
    "comments": """
        SELECT s.student_id, c.name, m.auto_comment, m.manual_comment
        FROM submitted_assignment s JOIN submitted_notebook n ON n.assignment_id = s.id
        JOIN comment m ON m.notebook_id = n.id JOIN base_cell c ON c.id = m.cell_id""",
    "cells": "SELECT name, type FROM base_cell",
    "assignments": "SELECT name, duedate FROM assignment",
}


def contents(root: Path, db_url: str = "") -> dict[str, Any]:
    """All that a gradebook says, without the ids that it gives its rows."""
    with Gradebook(db_url or f"sqlite:///{root}/gradebook.db", "attention") as gradebook:
        found: dict[str, Any] = {
            name: sorted(map(_plain, gradebook.db.execute(text(query)).all()))
            for name, query in ROWS.items()
        }
        for table in Base.metadata.tables:
            found[f"rows of {table}"] = gradebook.db.execute(
                text(f"SELECT count(*) FROM {table}")  # noqa: S608 (names from above)
            ).scalar()
    return found


def _plain(row: Any) -> str:
    """A row as text; databases differ in how they give back truth and times."""
    return " ".join(str(int(value) if isinstance(value, bool) else value) for value in row)


def scores(root: Path, lesson: str = LESSON) -> dict[str, float]:
    with gradebook_of(root) as gradebook:
        found = gradebook.assignment_submissions(lesson)
        return {submission.student.id: submission.score for submission in found}
