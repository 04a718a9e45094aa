"""A small graded class of lesson 02, for tests of what comes after grading."""

from pathlib import Path

import classes
import nbformat
from classes import LESSON, fill, grade, gradebook_of, put_file, reference_answers, wrong_answer

from autograde.course.lessons import Lesson

NOTEBOOK = "causal_mask"

MARKDOWN = """# My own heading

[a link](https://example.org/x) ![picture](https://example.org/p.png)

<h1 id="exercises">HTML</h1><script>window.evil = 1</script>
"""
"""A text cell that bob adds: it must neither disturb the page's outline nor lead away."""


FIGURE = (
    "show(heatmap(masked, tokens, tokens, title='mine'), 'My own figure of the masked weights.')"
)
"""A code cell that bob adds: it needs one of the lesson's own cells, which binds `masked`."""


def make_course(root: Path) -> Lesson:
    """A course that knows lesson 02 from what is committed, with a due date."""
    lesson = classes.make_course(root, ())
    with gradebook_of(root) as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate="2026-03-01 12:00:00")
    return lesson


def make_small_class(root: Path) -> Lesson:
    """ada has everything, bob a misconception, a text and a figure, zoe nothing, eve no notebook.

    kim handed in and was not graded; bob was a day and a half late.
    """
    lesson = make_course(root)
    right = reference_answers(lesson)
    put_file(lesson, "ada", fill(lesson, right))
    wrong = wrong_answer(lesson, "causal_mask", "one_too_many")
    bobs = fill(lesson, {**right, "causal_mask": wrong.code})
    bobs.cells.append(nbformat.v4.new_markdown_cell(MARKDOWN))
    bobs.cells.append(nbformat.v4.new_code_cell(FIGURE))
    put_file(lesson, "bob", bobs)
    put_file(lesson, "zoe", fill(lesson, {}))
    put_file(lesson, "eve", b"no notebook")
    (root / "submitted" / "bob" / LESSON / "timestamp.txt").write_text("2026-03-03 00:00:00 UTC")
    done = grade(root, "--workers", "1")
    assert done.returncode == 0, done.stdout
    put_file(lesson, "kim", b"no notebook")
    with gradebook_of(root) as gradebook:
        gradebook.update_or_create_student(
            "ada", first_name="Ada", last_name='=HYPERLINK("https://example.org","x")'
        )
        gradebook.update_or_create_student("bob", first_name="Bob", last_name="Müller, jr.")
    return lesson
