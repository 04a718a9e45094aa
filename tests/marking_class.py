"""A class whose written answers are graded but not marked: nothing runs, so it is quickly made."""

from pathlib import Path

import nbformat
from classes import gradebook_of, make_course, put_file

from autograde.course.cells import named_cells
from autograde.course.lessons import Lesson
from autograde.grading.gradebook import save_scores
from autograde.grading.record import Record, write_record
from autograde.grading.sanitise import sanitise_text
from autograde.grading.submission import Marks, Place

LESSON, QUESTION = "05_causal_attention", "why_buffer"
POINTS = 2.0


def make_marking_class(root: Path, answers: dict[str, str]) -> Lesson:
    """A course with lesson 05, and a graded notebook for each student; "" is no answer."""
    lesson = make_course(root, (), LESSON)
    with gradebook_of(root) as gradebook:
        for student, text in answers.items():
            gradebook.update_or_create_student(student)
            gradebook.update_or_create_submission(lesson.name, student)
            put(lesson, student, text)
            save_scores(gradebook, Place(student, lesson), marks_of(lesson, text))
    return lesson


def marks_of(lesson: Lesson, text: str) -> Marks:
    """No points for any exercise; the written answer waits if there is one."""
    automatic: dict[str, float | None] = {each.rubric_cell: 0.0 for each in lesson.exercises}
    automatic[QUESTION] = None if text else 0.0
    return Marks(automatic, comments={QUESTION: None})


def put(lesson: Lesson, student: str, text: str) -> None:
    """Write the graded notebook of a student with this answer, sanitised as in grading."""
    released = nbformat.read(lesson.released_notebook, as_version=4)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    named_cells(nb)[QUESTION].source = text
    sanitise_text(nb, released)
    put_file(lesson, student, write_record(Record(nb)), "autograded")


def row_of(lesson: Lesson, student: str) -> tuple[float | None, str | None, bool]:
    """What nbgrader says of a student's answer: points and comment by hand, whether it waits."""
    with gradebook_of(lesson.root) as gradebook:
        place = (QUESTION, lesson.notebook, lesson.name, student)
        grade, comment = gradebook.find_grade(*place), gradebook.find_comment(*place)
        return grade.manual_score, comment.manual_comment, grade.needs_manual_grade
