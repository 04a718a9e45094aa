"""The gradebook, nbgrader's database: opened, copied, saved to and read; what lateness costs."""

import math
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from traitlets import Enum, Float
from traitlets.config import Config

from autograde.course.lessons import CourseError, Lesson, state_folder
from autograde.grading.state import Halted
from autograde.grading.submission import TIMESTAMP, Marks, Place, Submission

DAY = 24 * 60 * 60
SPACE_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d)")
"""With that space nbgrader would read "-0500" as 500 seconds."""
MOST_OF_A_TIME = 100
"""Characters of a time stamp. Students can write one, and a long one takes quadratic time."""
COPIES = 5
"""The number of gradebook copies that are kept."""


def copy_gradebook(root: Path, config: Config) -> None:
    """Back up an SQLite gradebook and check it for damage; other databases have their own tools.

    Raises:
        Halted: the gradebook is damaged, cannot be copied, or is missing where there was one.
    """
    url = make_url(CourseDirectory(config=config).db_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    gradebook, folder = Path(url.database), state_folder(root) / "gradebooks"
    copies = sorted(folder.glob("gradebook-*.db"))
    if not copies and not gradebook.exists():
        return  # a fresh clone: grading says which lesson to build
    if not gradebook.exists():
        raise Halted(
            f"{gradebook} is missing. {last_copy(root)} Put it back; or, to begin with an empty "
            f"gradebook, delete {folder} and run autograde build."
        )
    target = folder / f"gradebook-{datetime.now():%Y%m%d-%H%M%S-%f}.db"
    fresh = folder / "copying"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        # not read-only: opening it rolls back what a killed run left half written
        address = f"{gradebook.resolve().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(address, uri=True)) as old,
            closing(sqlite3.connect(fresh)) as new,
        ):
            old.backup(new)
            (verdict,) = new.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        fresh.replace(target)
    except sqlite3.Error as error:
        fresh.unlink(missing_ok=True)
        raise Halted(
            f"{gradebook} cannot be copied to {folder}: {error}. {last_copy(root)}"
        ) from error
    for old_copy in copies[: -(COPIES - 1)]:
        old_copy.unlink()


@contextmanager
def open_gradebook(config: Config) -> Iterator[Gradebook]:
    """Open the course's gradebook.

    Raises:
        Halted: it cannot be opened, or what is done with it fails.
    """
    course = CourseDirectory(config=config)
    try:
        _make(course)
        with Gradebook(course.db_url, course.course_id) as gradebook:
            # nbgrader commits often; with expiry, every row would be read again after each commit.
            # Rows cannot go stale without it: each submission gets its own session
            gradebook.db.remove()
            gradebook.db.configure(expire_on_commit=False)
            yield gradebook
    except DBAPIError as error:
        where = make_url(course.db_url).render_as_string(hide_password=True)
        copy = last_copy(Path(course.root))
        raise Halted(f"the gradebook {where} cannot be used: {error.orig}. {copy}") from error


def _make(course: CourseDirectory) -> None:
    """Make an SQLite gradebook that is not there yet, whole: two builds may want it at once."""
    url = make_url(course.db_url)
    if url.get_backend_name() != "sqlite" or not url.database or Path(url.database).exists():
        return
    fresh = Path(f"{url.database}.{os.urandom(8).hex()}")
    try:
        Gradebook(f"sqlite:///{fresh}", course.course_id).close()
        os.link(fresh, url.database)
    except OSError:  # the other was first; or there are no links here, and nbgrader makes it
        pass
    finally:
        fresh.unlink(missing_ok=True)


def last_copy(root: Path) -> str:
    """Return a sentence on the newest copy of the gradebook."""
    copies = sorted((state_folder(root) / "gradebooks").glob("gradebook-*.db"))
    if not copies:
        return "There is no copy of it."
    return f"The last copy, from before the last run, is {copies[-1]}."


def maxima(gradebook: Gradebook, lesson: Lesson) -> dict[str, float]:
    """Return the maximum score of each of a lesson's graded cells; none if it was never built."""
    return {cell.name: float(cell.max_score) for cell in _grade_cells(gradebook, lesson)}


def save_maxima(gradebook: Gradebook, lesson: Lesson) -> None:
    """Bring the maximum scores up to date with the lesson, all of them or none.

    nbgrader does it cell by cell, and commits after each.
    """
    points = lesson.graded_cells
    for cell in _grade_cells(gradebook, lesson):
        cell.max_score = points.get(cell.name, cell.max_score)
    gradebook.db.commit()


def as_recorded(gradebook: Gradebook, lesson: Lesson) -> Lesson:
    """Return a lesson with the points by which the gradebook's scores were given."""
    return lesson.with_points(maxima(gradebook, lesson))


def _grade_cells(gradebook: Gradebook, lesson: Lesson) -> list[GradeCell]:
    with suppress(MissingEntry):
        return list(gradebook.find_notebook(lesson.notebook, lesson.name).grade_cells)
    return []


def save(
    gradebook: Gradebook,
    place: Place,
    when: datetime | None,
    marks: Marks,
    late: AssignLatePenalties,
) -> None:
    """Save a submission that was graded: its student, time, scores and lateness.

    Without a time it is not late, though the one before it may have been.
    """
    gradebook.update_or_create_student(place.student)
    gradebook.update_or_create_submission(place.lesson.name, place.student, timestamp=when)
    save_scores(gradebook, place, marks)
    _penalise(gradebook, place, late)
    gradebook.db.remove()  # else the session would keep the whole class in memory


def save_scores(gradebook: Gradebook, place: Place, marks: Marks) -> None:
    """Save the scores and automatic comments of one notebook.

    nbgrader commits cell by cell. Here a killed run leaves all of a notebook or nothing. The
    digests of written answers follow: without them the next run asks for the second look again.

    A score given by hand stays. It is flagged for a second look if the automatic score or the
    written answer has changed. The flag stays until a teacher marks it as seen in Formgrader.
    """
    notebook = _notebook(gradebook, place)
    grades, comments = (_by_cell(gradebook, notebook, table) for table in (Grade, Comment))
    for name, score in marks.automatic.items():
        grade = grades[name]
        changed = grade.auto_score != score
        if name in marks.written:
            last = _written(place, name)
            changed = not last.is_file() or last.read_text() != marks.written[name]
        grade.auto_score = score
        if grade.manual_score is None:
            grade.needs_manual_grade = score is None
        else:
            grade.needs_manual_grade = bool(changed or grade.needs_manual_grade)
    for name, comment in marks.comments.items():
        comments[name].auto_comment = comment
    gradebook.db.commit()
    for name, answer in marks.written.items():
        path = _written(place, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(answer)


def _written(place: Place, name: str) -> Path:
    return state_folder(place.lesson.root) / "written" / place.student / place.lesson.name / name


class LatePolicy(LateSubmissionPlugin):
    """Takes nothing off, everything, or a percentage of the score for each day.

    Nothing is taken off within the hours of grace. After that, days count from the due date, and
    a day that has begun counts in full. No score falls below 0.
    """

    penalty_method = Enum(
        ("none", "zero", "percent"), default_value="none", help="What lateness costs."
    ).tag(config=True)
    percent_per_day = Float(
        10.0, help="With 'percent': the percentage taken off for each day that has begun."
    ).tag(config=True)
    grace_hours = Float(0.0, help="Hours after the due date without penalty.").tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        if self.penalty_method == "none" or total_seconds_late <= self.grace_hours * 3600:
            return None
        if self.penalty_method == "zero":
            return score
        days = math.ceil(total_seconds_late / DAY)
        return score * min(1.0, days * self.percent_per_day / 100)


def _penalise(gradebook: Gradebook, place: Place, late: AssignLatePenalties) -> None:
    """Save the late penalty on the current score, and commit."""
    submission = gradebook.find_submission(place.lesson.name, place.student)
    notebook = _notebook(gradebook, place)
    notebook.late_submission_penalty = None
    if submission.total_seconds_late > 0:
        gradebook.db.flush()
        gradebook.db.refresh(notebook)
        penalty = late.plugin_inst.late_submission_penalty(
            submission.student_id, notebook.score, submission.total_seconds_late
        )
        if penalty is not None:
            notebook.late_submission_penalty = late._check_late_penalty(notebook, penalty)
    gradebook.db.commit()


def _notebook(gradebook: Gradebook, place: Place) -> SubmittedNotebook:
    student, lesson = place
    return gradebook.find_submission_notebook(lesson.notebook, lesson.name, student)


def _by_cell(gradebook: Gradebook, notebook: SubmittedNotebook, table: Any) -> dict[str, Any]:
    rows = gradebook.db.query(BaseCell.name, table).join(table, table.cell_id == BaseCell.id)
    cells = select(BaseCell.id).where(BaseCell.notebook_id == notebook.notebook_id)
    return dict(rows.filter(table.notebook_id == notebook.id, table.cell_id.in_(cells)).all())


def marks_of_class(
    gradebook: Gradebook, lesson: Lesson, student: str | None = None
) -> dict[str, Marks]:
    """Read what the gradebook holds of a lesson's submissions, or of one, by student."""
    found: dict[str, Marks] = {}
    grades = (BaseCell.name, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
    names = (Student.first_name, Student.last_name)
    facts = (Grade.max_score, Grade.needs_manual_grade)
    rows = rows_of_class(gradebook, lesson, Grade, *grades, *facts, *names)
    wanted = [] if student is None else [Student.id == student]
    for row in rows.filter(*wanted):
        who, extension, penalty, name, auto, manual, extra, points, waits, *name_of = row
        about = Marks(penalty=penalty, extension=str(extension), student=full_name(who, *name_of))
        marks = found.setdefault(who, about)
        marks.automatic[name] = auto
        if (manual, extra) != (None, None):
            marks.by_hand[name] = manual, extra
        marks.points[name] = float(points)
        if waits:
            marks.waits.append(name)
    comments = (BaseCell.name, Comment.auto_comment, Comment.manual_comment)
    rows = rows_of_class(gradebook, lesson, Comment, *comments)
    for who, _, _, name, comment, by_hand in rows.filter(*wanted):
        if who in found:
            found[who].comments[name] = comment
            if by_hand is not None:
                found[who].comments_by_hand[name] = by_hand
    gradebook.db.remove()
    return found


def full_name(student: str, first_name: str | None, last_name: str | None) -> str:
    """Return the name that feedback shows for a student: the gradebook's, then the id."""
    name = " ".join(part for part in (first_name, last_name) if part)
    return f"{name} ({student})" if name else student


def names_of_students(gradebook: Gradebook) -> dict[str, str]:
    """Return the names of all students whom the gradebook knows, by their ids."""
    rows = gradebook.db.query(Student.id, Student.first_name, Student.last_name)
    return {row.id: full_name(*row) for row in rows}


def rows_of_class(gradebook: Gradebook, lesson: Lesson, table: Any, *columns: Any) -> Any:
    """Query columns of a lesson's grades or comments, after student, extension and penalty."""
    facts = (Student.id, SubmittedAssignment.extension, SubmittedNotebook.late_submission_penalty)
    # nbgrader's index begins with the cell: without this filter it reads the whole course's rows
    cells = select(BaseCell.id).join(Notebook, Notebook.id == BaseCell.notebook_id)
    return (
        gradebook.db.query(*facts, *columns)
        .select_from(table)
        .join(BaseCell, BaseCell.id == table.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == table.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .filter(Assignment.name == lesson.name, Notebook.name == lesson.notebook)
        .filter(Notebook.assignment_id == Assignment.id)
        .filter(table.cell_id.in_(cells.where(Notebook.name == lesson.notebook)))
    )


def due_date(gradebook: Gradebook, lesson: str) -> datetime | None:
    """Return when a lesson is due, in UTC; None if it is not, or not in the gradebook."""
    due: datetime | None = None
    with suppress(MissingEntry):
        due = gradebook.find_assignment(lesson).duedate
    return due


def time_of(submission: Submission) -> datetime | None:
    """Read the time of a submission from nbgrader's file; None if there is none.

    Raises:
        CourseError: the file holds something else.
    """
    text = submission.files.get(TIMESTAMP, b"").decode(errors="replace").strip()
    try:
        return parse_time(text)
    except ValueError as error:
        raise CourseError(
            f"{TIMESTAMP} says {text[:60]!r}, which is not a time. Correct it, for "
            "example to 2026-02-28 23:59:00 UTC"
        ) from error


def parse_time(text: str) -> datetime | None:
    """Return the time that nbgrader's file of a submission holds, in UTC; None if it holds nothing.

    Raises:
        ValueError: it holds something else.
    """
    text = text.strip()
    if len(text) > MOST_OF_A_TIME:
        raise ValueError("it is too long")
    try:
        when: datetime | None = parse_utc(SPACE_BEFORE_OFFSET.sub("", text) or None)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    return when


def odd_due_date(due: datetime | None) -> str:
    """Return a warning if a due date was probably given with an offset, or "".

    nbgrader reads "06:00 -0500" as 500 seconds off UTC, which is 06:08:20.
    """
    if due is None or due.second in (0, 59):
        return ""
    return (
        f"the due date is {due:%Y-%m-%d %H:%M:%S} UTC. If you gave it with an offset such as "
        "-0500, nbgrader read that as seconds. Give it in UTC, or without the space: 06:00-05:00"
    )
