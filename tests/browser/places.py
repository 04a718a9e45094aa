"""A course, an exchange and students' folders, as they lie on one machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from classes import copy_course, gradebook_of

from autograde.authoring.build import generate
from autograde.course.built import note
from autograde.course.cells import named_cells
from autograde.course.lesson_files import read_text, text_of
from autograde.course.lessons import CURRICULUM, Lesson, lessons

LESSON, NOTEBOOK = "03_inf_mask", "inf_mask"
QUESTION = "why_minus_infinity"

CELLS = f"""
# %% [markdown] grade_id="question_{QUESTION}"
# ### Question: `{QUESTION}` (2 points)
#
# Why is a score hidden with minus infinity, and not with zero?
#
# <!-- BEGIN MARK SCHEME -->
# One point for exp(0) = 1, one for what that does to the other weights.
# <!-- END MARK SCHEME -->

# %% [markdown] grade_id="{QUESTION}"
# <!-- BEGIN SOLUTION -->
# exp(0) is 1, so the hidden key would take its share of the sum.
# <!-- END SOLUTION -->
"""
"""A question for lesson 03, which has none, so that one lesson tells the whole story."""

OF_A_COURSE = """
c.Exchange.root = {exchange!r}
# Here one user of the machine plays everybody.
c.ExchangeCollect.check_owner = False
"""

OF_A_STUDENT = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.student_id = {student!r}
c.Exchange.root = {exchange!r}
"""


def make_course(root: Path, exchange: Path) -> Lesson:
    """A course with lesson 03, a question in words at its end, and an exchange."""
    copy_course(root)
    with (root / "nbgrader_config.py").open("a") as config:
        config.write(OF_A_COURSE.format(exchange=str(exchange)))
    text = root / "source" / LESSON / f"{NOTEBOOK}.py"
    text.write_text(text.read_text() + CELLS)
    curriculum = (root / CURRICULUM).read_text()
    needs = '[lesson.needs]\ncausal_weights = ["future_mask"'
    assert needs in curriculum, f"{CURRICULUM} has no such lines any more: {needs}"
    asked = f"[lesson.written]\n{QUESTION} = 2\n\n{needs}"
    (root / CURRICULUM).write_text(curriculum.replace(needs, asked))
    lesson = lessons(root)[LESSON]
    made = generate(lesson, root / "made")
    nb = nbformat.read(made / f"{NOTEBOOK}.ipynb", as_version=4)
    note(nb, lesson, text_of(lesson), lesson.practice_file.read_bytes())
    nbformat.write(nb, lesson.released_notebook)
    shutil.rmtree(root / "made")
    with gradebook_of(root) as gradebook:
        gradebook.add_student("ada", first_name="Ada", last_name="Adams")
        gradebook.add_student("eve", first_name="Eve", last_name="Evans")
    exchange.mkdir()
    exchange.chmod(0o777)
    return lesson


def make_student(root: Path, exchange: Path, student: str) -> Path:
    """A student's folder, empty but for what names the course."""
    root.mkdir()
    config = OF_A_STUDENT.format(student=student, exchange=str(exchange))
    (root / "nbgrader_config.py").write_text(config)
    return root


def hand_in_broken(root: Path) -> None:
    """Hand in a file that is no notebook, with nbgrader's command."""
    (root / LESSON).mkdir()
    (root / LESSON / f"{NOTEBOOK}.ipynb").write_text('{"cells": [')
    data = {"JUPYTER_DATA_DIR": str(root / "data"), "JUPYTER_RUNTIME_DIR": str(root / "data")}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "submit", LESSON],
        cwd=root, env={**os.environ, **data}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def right_answer(lesson: Lesson, exercise: str) -> str:
    """The lesson's own answer, without the marks around it."""
    source = named_cells(read_text(lesson))[exercise].source
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("###"))
