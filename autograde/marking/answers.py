"""Questions marked by hand: read their answers and marks, and save a mark.

nbgrader's gradebook is the only place where marks are kept, so Formgrader, feedback, report and
exports show the same.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbformat import NotebookNode, from_dict
from nbformat.v4.rwbase import rejoin_lines
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Student,
    SubmittedNotebook,
)
from sqlalchemy import and_, select, update
from traitlets.config import Config

from autograde.course.cells import named_cells
from autograde.course.config import course_config
from autograde.course.lesson_files import read_text
from autograde.course.lessons import CourseError, Lesson, Written, lessons
from autograde.grading.feedback import MARK_SCHEME, from_markdown, shown_outputs
from autograde.grading.gradebook import open_gradebook, rows_of_class
from autograde.grading.record import as_marked
from autograde.grading.submission import Place, graded_notebook
from autograde.values.text import digest


class Refused(CourseError):
    """The refusal of what the page asks for, with an HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Mark:
    """A person's mark for an answer; `waits` says that somebody still has to look at it."""

    score: float | None
    comment: str
    waits: bool


@dataclass(frozen=True)
class WrittenAnswer:
    """A student's answer. `grade` and `notebook` are the gradebook's ids of its row and notebook.

    `seen` is a digest of answer and mark: nobody marks an answer that has been replaced, or
    overwrites a mark without having seen it.
    """

    grade: str
    notebook: str
    student: str
    html: Markup
    mark: Mark
    seen: str


CHANGED = "somebody has marked this, or it was graded again. Reload this page."
MISSING = Markup("<p><em>The cell is empty. Look for an answer in the whole notebook.</em></p>")


@dataclass(frozen=True)
class WrittenQuestion:
    """A question with its marking scheme and every answer; `empty` are those without a word."""

    lesson: Lesson
    written: Written
    html: Markup
    scheme: Markup
    answers: tuple[WrittenAnswer, ...]
    empty: int

    @property
    def waiting(self) -> int:
        return sum(answer.mark.waits for answer in self.answers)

    @property
    def comments(self) -> list[str]:
        """The comments given so far, the commonest first."""
        given = Counter(answer.mark.comment for answer in self.answers if answer.mark.comment)
        return [comment for comment, _ in given.most_common()]


@dataclass(frozen=True)
class Sent:
    """A mark as the page sends it: for which row of the gradebook, and what its author saw."""

    grade: str
    seen: str
    score: float | None
    comment: str


def find_question(root: Path, lesson: str, question: str) -> tuple[Lesson, Written]:
    """Find a question by name.

    Raises:
        Refused: there is none of that name.
    """
    for found in lessons(root).values():
        for written in found.written:
            if (found.name, written.name) == (lesson, question):
                return found, written
    raise Refused(HTTPStatus.NOT_FOUND, f"{lesson} has no question {question!r} to mark by hand")


def all_waiting(root: Path) -> dict[tuple[str, str], int]:
    """Count the answers that wait to be marked, by lesson and question, in the course's order."""
    with open_gradebook(_config(root)) as gradebook:
        return {
            (lesson.name, written.name): rows_of_class(gradebook, lesson, Grade, Grade.id)
            .filter(Grade.needs_manual_grade, BaseCell.name == written.name)
            .count()
            for lesson in lessons(root).values()
            for written in lesson.written
        }


def read_question(root: Path, lesson_name: str, question: str) -> WrittenQuestion:
    """Read a question and its answers from the gradebook and the graded notebooks.

    The order of the answers reveals nothing about their authors and differs for each question.
    """
    lesson, written = find_question(root, lesson_name, question)
    text = named_cells(read_text(lesson))[written.question_cell].source
    with open_gradebook(_config(root)) as gradebook:
        rows = _rows(gradebook, lesson, question)
    answers = []
    for row in rows:
        given = _given(lesson, row.student, question)
        if given is not None and (row.auto_score is None or row.manual_score is not None):
            html = _as_html(given)
            seen = _seen(row, given)
            answers.append(
                WrittenAnswer(row.grade, row.notebook, row.student, html, _mark(row), seen)
            )
    answers.sort(key=lambda answer: digest(f"{question} {answer.student}"))
    scheme = "".join(
        "\n".join(found[0].strip().splitlines()[1:-1]) for found in MARK_SCHEME.finditer(text)
    )
    return WrittenQuestion(
        lesson,
        written,
        html=from_markdown(MARK_SCHEME.sub("", text)),
        scheme=from_markdown(scheme),
        answers=tuple(answers),
        empty=len(rows) - len(answers),
    )


def save(root: Path, lesson_name: str, question: str, sent: Sent) -> tuple[Mark, str]:
    """Save a mark for an answer as it was seen; return the mark and what is to be seen now.

    Raises:
        Refused: there is no such question, the score is not possible for it, or the answer or its
            mark has changed.
        CourseError: the gradebook cannot be written.
    """
    lesson, written = find_question(root, lesson_name, question)
    if sent.score is not None and not 0 <= sent.score <= written.points:
        raise Refused(HTTPStatus.BAD_REQUEST, f"Between 0 and {written.points:g} points, please.")
    with open_gradebook(_config(root)) as gradebook:
        rows = _rows(gradebook, lesson, question, Grade.id == sent.grade)
        if [_seen(row, _given(lesson, row.student, question)) for row in rows] != [sent.seen]:
            raise Refused(HTTPStatus.CONFLICT, CHANGED)
        (row,) = rows
        waits = sent.score is None and row.auto_score is None
        # nobody else may have marked it since it was read, a moment ago
        as_read = Grade.manual_score.is_not_distinct_from(row.manual_score)
        marked = update(Grade).where(Grade.id == row.grade, as_read)
        changed = gradebook.db.execute(
            marked.values(manual_score=sent.score, needs_manual_grade=waits)
        )
        as_read = Comment.manual_comment.is_not_distinct_from(row.manual_comment)
        commented = update(Comment).where(Comment.id == row.comment, as_read)
        noted = gradebook.db.execute(commented.values(manual_comment=sent.comment or None))
        if not changed.rowcount or (row.comment is not None and not noted.rowcount):
            gradebook.db.rollback()
            raise Refused(HTTPStatus.CONFLICT, CHANGED)
        gradebook.db.commit()
        (row,) = _rows(gradebook, lesson, question, Grade.id == sent.grade)
        return _mark(row), _seen(row, _given(lesson, row.student, question))


@lru_cache
def _config(root: Path) -> Config:
    """Read the course's configuration once: it takes a second, and a mark should not."""
    return course_config(root)


def _rows(gradebook: Gradebook, lesson: Lesson, question: str, *only: Any) -> list[Any]:
    """Query each answer's grade and comment; a comment belongs to another cell of that name."""
    columns = (
        Student.id.label("student"), Grade.id.label("grade"),
        SubmittedNotebook.id.label("notebook"), Comment.id.label("comment"), Grade.auto_score,
        Grade.manual_score, Grade.needs_manual_grade, Comment.manual_comment,
    )  # fmt: skip
    cells = select(BaseCell.id).where(BaseCell.name == question).correlate(None)
    of_answer = and_(Comment.notebook_id == SubmittedNotebook.id, Comment.cell_id.in_(cells))
    rows = rows_of_class(gradebook, lesson, Grade, *columns).outerjoin(Comment, of_answer)
    return list(rows.filter(BaseCell.name == question, *only).all())


def _mark(row: Any) -> Mark:
    return Mark(row.manual_score, row.manual_comment or "", row.needs_manual_grade)


def _seen(row: Any, answer: NotebookNode | None) -> str:
    return digest(repr((answer and as_marked(answer), _mark(row))))


def _given(lesson: Lesson, student: str, question: str) -> NotebookNode | None:
    """Return an answer's cell from its graded notebook, sanitised there; None without one."""
    with graded_notebook(Place(student, lesson)) as notebook:
        if notebook is None:
            return None
        return named_cells(rejoin_lines(from_dict(notebook))).get(question)


def _as_html(answer: NotebookNode) -> Markup:
    """Return an answer as the page shows it: its words, or its code and what that showed."""
    if not answer.source.strip():
        return MISSING
    if answer.cell_type == "code":
        return Markup("<pre>{}</pre>").format(answer.source) + shown_outputs(answer)
    return from_markdown(answer.source)
