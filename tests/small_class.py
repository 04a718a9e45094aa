"""A small graded class of lesson 02, for tests of what comes after grading."""

import shutil
from contextlib import chdir
from pathlib import Path

import nbformat
from click.testing import CliRunner
from conftest import HERE
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveCells

from autograde.authoring.sources import sync
from autograde.cli import main
from autograde.course import Lesson, grade_id, lessons
from autograde.grader.variants import read_variants
from autograde.kernels.wall import missing

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"

MARKDOWN = """# My own heading

[a link](https://example.org/x) ![picture](https://example.org/p.png)

<h1 id="exercises">HTML</h1><script>window.evil = 1</script>
"""
"""A text cell that bob adds: it must neither disturb the page's outline nor lead away."""


def make_course(root: Path) -> Lesson:
    """A course that knows lesson 02 from what is committed; nothing is built anew."""
    for folder in ("source", "notebooks", "solutions"):
        shutil.copytree(HERE / folder, root / folder)
    shutil.copy(HERE / "nbgrader_config.py", root)
    sync(root)
    lesson = lessons(root)[LESSON]
    database = f"sqlite:///{root}/gradebook.db"
    with Gradebook(database, "attention") as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate="2026-03-01 12:00:00")
    about = {"notebook": NOTEBOOK, "assignment": LESSON, "db_url": database}
    released = nbformat.read(lesson.released_notebook, as_version=4)
    SaveCells().preprocess(released, {"nbgrader": about})
    return lesson


def answered(lesson: Lesson, answers: dict[str, str]) -> NotebookNode:
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    for cell in nb.cells:
        cell.source = answers.get(grade_id(cell) or "", cell.source)
    return nb


def reference(lesson: Lesson) -> dict[str, str]:
    nb = nbformat.read(lesson.solution_notebook, as_version=4)
    names = {exercise.name for exercise in lesson.exercises}
    return {name: cell.source for cell in nb.cells if (name := grade_id(cell)) in names}


def wrong_mask(lesson: Lesson) -> str:
    """A variant of the first exercise with a known misconception."""
    variants = read_variants(lesson, lesson.exercise("causal_mask")).wrong
    return next(variant.code for variant in variants if variant.name == "one_too_many")


def hand_in(lesson: Lesson, student: str, content: NotebookNode | bytes) -> None:
    path = lesson.root / "submitted" / student / LESSON / f"{NOTEBOOK}.ipynb"
    path.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        nbformat.write(content, path)


def make_small_class(root: Path) -> Lesson:
    """ada has everything, bob a misconception and an own text, zoe nothing, eve no notebook.

    kim handed in and was not graded; bob was a day and a half late.
    """
    lesson = make_course(root)
    right = reference(lesson)
    hand_in(lesson, "ada", answered(lesson, right))
    bobs = answered(lesson, {**right, "causal_mask": wrong_mask(lesson)})
    bobs.cells.append(nbformat.v4.new_markdown_cell(MARKDOWN))
    hand_in(lesson, "bob", bobs)
    hand_in(lesson, "zoe", answered(lesson, {}))
    hand_in(lesson, "eve", b"no notebook")
    (root / "submitted" / "bob" / LESSON / "timestamp.txt").write_text("2026-03-03 00:00:00 UTC")
    with chdir(root):
        result = CliRunner().invoke(main, ["grade", LESSON, *(["--no-wall"] if missing() else [])])
    assert result.exit_code == 0, result.output
    hand_in(lesson, "kim", b"no notebook")
    with Gradebook(f"sqlite:///{root}/gradebook.db", "attention") as gradebook:
        gradebook.update_or_create_student(
            "ada", first_name="Ada", last_name='=HYPERLINK("https://example.org","x")'
        )
        gradebook.update_or_create_student("bob", first_name="Bob", last_name="Müller, jr.")
    return lesson
