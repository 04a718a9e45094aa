"""Questions answered in words: read their answers and marks, and save a mark.

nbgrader's gradebook is the only place where marks are kept, so Formgrader, feedback, report and
exports show the same.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    SourceCell,
    Student,
    SubmittedNotebook,
)
from sqlalchemy import and_, select, update
from traitlets.config import Config

from autograde.course import CourseError, Lesson, Written, lessons
from autograde.course_config import course_config
from autograde.grading.feedback import MARK_SCHEME, from_markdown
from autograde.grading.gradebook import open_gradebook, rows_of_class
from autograde.rubric.text import digest

KEPT_NOTEBOOKS = 4000


class NoQuestion(CourseError):
    """The course has no such question, or the question no such answer."""

    status = HTTPStatus.NOT_FOUND


class BadMark(CourseError):
    """The mark that was sent is not one for this question."""

    status = HTTPStatus.BAD_REQUEST


@dataclass(frozen=True)
class Mark:
    """A person's mark for an answer; `waits` says that somebody still has to look at it."""

    score: float | None
    comment: str
    waits: bool


class Changed(CourseError):
    """The mark in the gradebook is not the one that was seen, or the answer has changed.

    `mark` is the mark that the gradebook has now; it is None when the answer has changed.
    """

    status = HTTPStatus.CONFLICT

    def __init__(self, mark: Mark | None) -> None:
        super().__init__("The gradebook has changed in the meantime.")
        self.mark = mark


@dataclass(frozen=True)
class Answer:
    """A student's answer. `grade` and `notebook` are the gradebook's ids of its row and notebook.

    `digest` is that of the text, so that nobody marks a text that has been replaced.
    """

    grade: str
    notebook: str
    student: str
    html: Markup
    digest: str
    mark: Mark


MISSING = Markup("<p><em>The cell is empty. Look for an answer in the whole notebook.</em></p>")


@dataclass(frozen=True)
class Question:
    """A question with its marking scheme and every answer; `empty` are those without a word."""

    lesson: Lesson
    written: Written
    html: Markup
    scheme: Markup
    answers: tuple[Answer, ...]
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
class Seen:
    """A mark for an answer, and what its author saw: the mark before it, and the text's digest."""

    grade: str
    mark: Mark
    before: Mark
    digest: str


def find_question(root: Path, lesson: str, question: str) -> tuple[Lesson, Written]:
    """Find a question by name.

    Raises:
        NoQuestion: there is none of that name.
    """
    for found in lessons(root).values():
        for written in found.written:
            if (found.name, written.name) == (lesson, question):
                return found, written
    raise NoQuestion(f"{lesson} has no question {question!r} to be answered in words")


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


def read_question(root: Path, lesson_name: str, question: str) -> Question:
    """Read a question and its answers from the gradebook and the graded notebooks.

    The order of the answers reveals nothing about their authors and differs for each question.

    Raises:
        NoQuestion: there is no such question.
        CourseError: the gradebook or a graded notebook cannot be read.
    """
    lesson, written = find_question(root, lesson_name, question)
    with open_gradebook(_config(root)) as gradebook:
        source = gradebook.db.query(SourceCell.source).filter(
            SourceCell.name == written.question_cell,
            SourceCell.notebook.has(name=lesson.notebook),
        )
        (text,) = source.one_or_none() or ("",)
        rows = _rows(gradebook, lesson, question)
    answers = []
    for row in rows:
        given = _answer_text(lesson, row.student, question)
        if given is not None and (row.auto_score is None or row.manual_score is not None):
            html = from_markdown(given) if given.strip() else MISSING
            answers.append(
                Answer(row.grade, row.notebook, row.student, html, _digest(given), _mark(row))
            )
    answers.sort(key=lambda answer: _digest(f"{question} {answer.student}"))
    scheme = "".join(
        "\n".join(found[0].strip().splitlines()[1:-1]) for found in MARK_SCHEME.finditer(text)
    )
    return Question(
        lesson,
        written,
        html=from_markdown(MARK_SCHEME.sub("", text)),
        scheme=from_markdown(scheme),
        answers=tuple(answers),
        empty=len(rows) - len(answers),
    )


def save(root: Path, lesson_name: str, question: str, seen: Seen) -> Mark:
    """Save a mark if the gradebook still has the one that was seen; return the mark it then has.

    Raises:
        NoQuestion: there is no such question, or no such answer to it.
        BadMark: the score is not possible for this question.
        Changed: the gradebook has another mark by now, or the answer has changed.
        CourseError: the gradebook cannot be written.
    """
    lesson, written = find_question(root, lesson_name, question)
    score = seen.mark.score
    if score is not None and not 0 <= score <= written.points:
        raise BadMark(f"Between 0 and {written.points:g} points, please.")
    with open_gradebook(_config(root)) as gradebook:
        rows = _rows(gradebook, lesson, question, Grade.id == seen.grade)
        if not rows:
            raise NoQuestion("There is no such answer any more.")
        (row,) = rows
        if _digest(_answer_text(lesson, row.student, question) or "") != seen.digest:
            raise Changed(None)
        # the database itself compares, so that no other process comes in between
        graded = gradebook.db.execute(
            update(Grade)
            .where(
                Grade.id == row.grade,
                Grade.manual_score.is_not_distinct_from(seen.before.score),
                Grade.needs_manual_grade == seen.before.waits,
            )
            .values(
                manual_score=score,
                needs_manual_grade=Grade.auto_score.is_(None) if score is None else False,
            )
            .execution_options(synchronize_session=False)
        )
        commented = gradebook.db.execute(
            update(Comment)
            .where(
                Comment.id == row.comment,
                Comment.manual_comment.is_not_distinct_from(seen.before.comment or None),
            )
            .values(manual_comment=seen.mark.comment or None)
            .execution_options(synchronize_session=False)
        )
        agreed = graded.rowcount == commented.rowcount == 1
        if agreed:
            gradebook.db.commit()
        else:
            gradebook.db.rollback()
        (row,) = _rows(gradebook, lesson, question, Grade.id == seen.grade)
        now = _mark(row)
    if not agreed:
        raise Changed(now)
    return now


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


def _answer_text(lesson: Lesson, student: str, question: str) -> str | None:
    """Return an answer from its graded notebook, sanitised there; None without a notebook.

    Raises:
        CourseError: the notebook cannot be read.
    """
    path = lesson.root / "autograded" / student / lesson.name / f"{lesson.notebook}.ipynb"
    if not path.is_file():
        return None
    facts = path.stat()
    names = tuple(written.name for written in lesson.written)
    return _texts(path, facts.st_mtime_ns, facts.st_size, names).get(question)


@lru_cache(KEPT_NOTEBOOKS)
def _texts(path: Path, changed: int, size: int, names: tuple[str, ...]) -> dict[str, str]:
    try:
        cells = json.loads(path.read_text(encoding="utf-8", errors="replace"))["cells"]
        named = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in cells}
        return {name: "".join(named[name]["source"]) for name in names if name in named}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            f"{path} is not a notebook that `autograde grade` wrote ({error!r}). Grade it again."
        ) from error


def _digest(text: str) -> str:
    return digest(text)[:16]
