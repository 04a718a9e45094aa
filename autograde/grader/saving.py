"""The gradebook: what is saved of a verdict, and what is there already."""

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.exc import SAWarning

from autograde.course import Lesson, grade_id
from autograde.verdict.judge import Verdict


def save_scores(
    gradebook: Gradebook, saved: SubmittedNotebook, nb: NotebookNode, verdicts: dict[str, Verdict]
) -> None:
    """Write the scores and automatic comments of one judged notebook; the caller commits.

    nbgrader commits cell by cell. Here a killed run leaves all of a notebook or nothing.
    """
    grades, comments = _by_cell(gradebook, Grade, saved), _by_cell(gradebook, Comment, saved)
    for cell in nb.cells:
        name = grade_id(cell) or ""
        if is_grade(cell):
            _save_score(grades[name], cell, verdicts.get(name.removeprefix("test_")))
        if is_solution(cell) or is_task(cell):
            untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            comments[name].auto_comment = (
                "No response." if untouched and not is_task(cell) else None
            )


def _by_cell(gradebook: Gradebook, kind: Any, saved: SubmittedNotebook) -> dict[str, Any]:
    """The grades or the comments of a submitted notebook, by the name of their cell."""
    rows = gradebook.db.query(BaseCell.name, kind).join(kind, kind.cell_id == BaseCell.id)
    return dict(rows.filter(kind.notebook_id == saved.id).all())


def _save_score(grade: Grade, cell: NotebookNode, verdict: Verdict | None) -> None:
    """A score given by hand stays; it wants a second look where the automatic one moved.

    Who has looked says so in Formgrader; until then the wish stays, also when a run is repeated.
    """
    points = determine_grade(cell)[0] if verdict is None else verdict.points
    changed = grade.auto_score != points
    grade.auto_score = points
    if grade.manual_score is None:
        grade.needs_manual_grade = points is None
    else:
        grade.needs_manual_grade = bool(changed or grade.needs_manual_grade)


def save(
    gradebook: Gradebook,
    place: tuple[str, Lesson],
    timestamp: datetime | None,
    judged: tuple[NotebookNode, dict[str, Verdict]],
    late: AssignLatePenalties,
) -> None:
    """Save one submission, as nbgrader's autograde does: student, time, scores, lateness.

    Args:
        place: the student and the lesson.
        timestamp: when it was handed in, if that is known.
        judged: the notebook and the verdicts on it.
        late: nbgrader's step for late submissions, with the course's policy.
    """
    student, lesson = place
    when = {} if timestamp is None else {"timestamp": timestamp}
    gradebook.update_or_create_student(student)
    with warnings.catch_warnings():
        # nbgrader 0.9 adds rows in an order that SQLAlchemy 2.1 warns about; they are right
        warnings.simplefilter("ignore", SAWarning)
        submission = gradebook.update_or_create_submission(lesson.name, student, **when)
    (saved,) = (nb for nb in submission.notebooks if nb.name == lesson.notebook)
    save_scores(gradebook, saved, *judged)
    saved.late_submission_penalty = None
    if submission.total_seconds_late > 0:
        gradebook.db.flush()
        gradebook.db.refresh(saved)
        penalty = late.plugin_inst.late_submission_penalty(
            student, saved.score, submission.total_seconds_late
        )
        if penalty is not None:
            saved.late_submission_penalty = late._check_late_penalty(saved, penalty)
    gradebook.db.commit()
    gradebook.db.remove()  # else the session would keep the whole class in memory


@dataclass(frozen=True)
class Known:
    """Digests of what the gradebook holds of a submission: automatic scores, what people gave."""

    scores: str
    by_hand: str
    extension: str


def known(gradebook: Gradebook, lesson: Lesson, student: str | None = None) -> dict[str, Known]:
    """What the gradebook holds of a lesson's submissions, by student; of one alone if named."""
    scores: dict[str, list[Any]] = defaultdict(list)
    by_hand: dict[str, list[Any]] = defaultdict(list)
    extensions: dict[str, str] = {}
    grades = (BaseCell.name, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
    for who, extension, penalty, name, auto, manual, extra in _rows(
        gradebook, lesson, student, Grade, *grades
    ):
        scores[who].append((name, _number(auto)))
        by_hand[who].append((name, _number(manual), _number(extra), _number(penalty)))
        extensions[who] = str(extension)
    comments = (BaseCell.name, Comment.manual_comment)
    for who, _, _, name, comment in _rows(gradebook, lesson, student, Comment, *comments):
        by_hand[who].append((name, comment))
    gradebook.db.remove()
    return {
        who: Known(digest(scores[who]), digest(by_hand[who]), extensions[who]) for who in scores
    }


def _rows(
    gradebook: Gradebook, lesson: Lesson, student: str | None, kind: Any, *columns: Any
) -> Iterable[Any]:
    facts = (Student.id, SubmittedAssignment.extension, SubmittedNotebook.late_submission_penalty)
    query = (
        gradebook.db.query(*facts, *columns)
        .select_from(kind)
        .join(BaseCell, BaseCell.id == kind.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .filter(Notebook.name == lesson.notebook)
        .filter(SubmittedAssignment.assignment.has(name=lesson.name))
        .order_by(Student.id, BaseCell.name)
    )
    rows: Iterable[Any] = query if student is None else query.filter(Student.id == student)
    return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{float(value):.6f}"


def digest(facts: Any) -> str:
    """A digest of facts that print the same when they are the same."""
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()


class LessonCells:
    """What nbgrader's OverwriteCells asks the gradebook about a lesson, read once."""

    def __init__(self, gradebook: Gradebook, lesson: Lesson) -> None:
        notebook = gradebook.find_notebook(lesson.notebook, lesson.name)
        self.kernelspec = notebook.kernelspec
        self.duedate = str(notebook.assignment.duedate)
        self._source = {
            cell.name: SimpleNamespace(
                cell_type=cell.cell_type,
                locked=cell.locked,
                source=cell.source,
                checksum=cell.checksum,
            )
            for cell in notebook.source_cells
        }
        graded = (*notebook.grade_cells, *notebook.task_cells)
        self._graded = {cell.name: SimpleNamespace(max_score=cell.max_score) for cell in graded}
        gradebook.db.remove()

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        return self._find(self._source, name)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        return self._find(self._graded, name)

    @staticmethod
    def _find(cells: dict[str, SimpleNamespace], name: str) -> SimpleNamespace:
        if name not in cells:
            raise MissingEntry(f"No such cell: {name}")
        return cells[name]
