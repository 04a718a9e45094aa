"""The gradebook: what is saved of a verdict, and what is there already."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from nbgrader.utils import compute_checksum, is_grade, is_solution, is_task

from autograde.course import Lesson, grade_id
from autograde.course_config import without_order_warnings
from autograde.grading.verdicts import NOTE
from autograde.grading.written import keep_read, save_written
from autograde.rubric.judge import Verdict

GRADE = (Grade.score, Grade.max_score, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
COMMENT = (Comment.comment, Comment.manual_comment)


class Rows:
    """The rows of one submitted notebook, read at once, to be changed."""

    def __init__(self, gradebook: Gradebook, place: tuple[str, Lesson]) -> None:
        student, lesson = self.place = place
        self.notebook: SubmittedNotebook = gradebook.find_submission_notebook(
            lesson.notebook, lesson.name, student
        )
        self.grades = self._by_cell(gradebook, Grade)
        self.comments = self._by_cell(gradebook, Comment)

    def _by_cell(self, gradebook: Gradebook, kind: Any) -> dict[str, Any]:
        rows = gradebook.db.query(BaseCell.name, kind).join(kind, kind.cell_id == BaseCell.id)
        return dict(rows.filter(kind.notebook_id == self.notebook.id).all())


def save_scores(rows: Rows, nb: NotebookNode, verdicts: dict[str, Verdict]) -> None:
    """Write the scores and automatic comments of one judged notebook; the caller commits.

    nbgrader commits cell by cell. Here a killed run leaves all of a notebook or nothing.
    """
    for cell in nb.cells:
        name = grade_id(cell) or ""
        if is_grade(cell):
            verdict = verdicts.get(name.removeprefix("test_"))
            if verdict is not None:
                _save_score(rows.grades[name], verdict)
            else:
                restored = name in nb.metadata[NOTE]["notes"]
                save_written(rows.place, rows.grades[name], cell, restored=restored)
        if is_solution(cell) or is_task(cell):
            untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            rows.comments[name].auto_comment = (
                "No response." if untouched and not is_task(cell) else None
            )


def _save_score(grade: Grade, verdict: Verdict) -> None:
    """A score given by hand stays; it wants a second look where the automatic one moved.

    Who has looked says so in Formgrader; until then the wish stays, also when a run is repeated.
    """
    changed = grade.auto_score != verdict.points
    grade.auto_score = verdict.points
    if grade.manual_score is None:
        grade.needs_manual_grade = False
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
    with without_order_warnings():
        submission = gradebook.update_or_create_submission(lesson.name, student, **when)
    rows = Rows(gradebook, place)
    save_scores(rows, *judged)
    _penalise(gradebook, submission, rows.notebook, late)
    gradebook.db.commit()
    keep_read(place, judged[0])
    gradebook.db.remove()  # else the session would keep the whole class in memory


def penalise(gradebook: Gradebook, place: tuple[str, Lesson], late: AssignLatePenalties) -> None:
    """Save what lateness costs a score that people have changed since it was saved."""
    student, lesson = place
    submission = gradebook.find_submission(lesson.name, student)
    _penalise(gradebook, submission, Rows(gradebook, place).notebook, late)
    gradebook.db.commit()


def _penalise(
    gradebook: Gradebook,
    submission: SubmittedAssignment,
    notebook: SubmittedNotebook,
    late: AssignLatePenalties,
) -> None:
    notebook.late_submission_penalty = None
    if submission.total_seconds_late > 0:
        gradebook.db.flush()
        gradebook.db.refresh(notebook)
        penalty = late.plugin_inst.late_submission_penalty(
            submission.student_id, notebook.score, submission.total_seconds_late
        )
        if penalty is not None:
            notebook.late_submission_penalty = late._check_late_penalty(notebook, penalty)


@dataclass(frozen=True)
class Saved:
    """What the gradebook holds of one notebook, as plain values: for its page, made elsewhere.

    It answers what nbgrader's GetGrades asks a gradebook.
    """

    score: float
    max_score: float
    penalty: float | None
    extension: timedelta | None
    grades: dict[str, SimpleNamespace]
    comments: dict[str, SimpleNamespace]

    def find_grade(
        self, name: str, notebook: str, assignment: str, student: str
    ) -> SimpleNamespace:
        return self.grades[name]

    def find_comment(
        self, name: str, notebook: str, assignment: str, student: str
    ) -> SimpleNamespace:
        return self.comments[name]


def saved(gradebook: Gradebook, place: tuple[str, Lesson]) -> Saved:
    """What the gradebook holds of a student's notebook."""
    student, lesson = place
    facts = (
        SubmittedNotebook.id, SubmittedNotebook.score, SubmittedNotebook.max_score,
        SubmittedNotebook.late_submission_penalty, SubmittedAssignment.extension,
    )  # fmt: skip
    number, score, max_score, penalty, extension = (
        gradebook.db.query(*facts)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .filter(Student.id == student, Notebook.name == lesson.notebook)
        .filter(SubmittedAssignment.assignment.has(name=lesson.name))
        .one()
    )
    found = [
        {
            row.name: SimpleNamespace(**row._mapping)
            for row in gradebook.db.query(BaseCell.name, *columns)
            .join(kind, kind.cell_id == BaseCell.id)
            .filter(kind.notebook_id == number)
        }
        for kind, columns in ((Grade, GRADE), (Comment, COMMENT))
    ]
    return Saved(score, max_score, penalty, extension, *found)


@dataclass(frozen=True)
class Known:
    """Digests of what the gradebook holds of a submission: automatic scores, what people gave."""

    scores: str
    by_hand: str
    extension: str


def known(gradebook: Gradebook, lesson: Lesson) -> dict[str, Known]:
    """What the gradebook holds of a lesson's submissions, by student."""
    scores: dict[str, list[Any]] = defaultdict(list)
    by_hand: dict[str, list[Any]] = defaultdict(list)
    extensions: dict[str, str] = {}
    grades = (BaseCell.name, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
    for who, extension, penalty, name, auto, manual, extra in rows_of_class(
        gradebook, lesson, Grade, *grades
    ):
        scores[who].append((name, _number(auto)))
        by_hand[who].append((name, _number(manual), _number(extra), _number(penalty)))
        extensions[who] = str(extension)
    comments = (BaseCell.name, Comment.manual_comment)
    for who, _, _, name, comment in rows_of_class(gradebook, lesson, Comment, *comments):
        by_hand[who].append((name, comment))
    gradebook.db.remove()
    return {who: _known(scores[who], by_hand[who], extensions[who]) for who in scores}


def known_of(saved: Saved) -> Known:
    """The same of one submission, whose rows are read already."""
    penalty = _number(saved.penalty)
    by_hand: list[Any] = [(name, row.manual_comment) for name, row in saved.comments.items()]
    scores = [(name, _number(grade.auto_score)) for name, grade in saved.grades.items()]
    for name, grade in saved.grades.items():
        by_hand.append((name, _number(grade.manual_score), _number(grade.extra_credit), penalty))
    return _known(scores, by_hand, str(saved.extension))


def _known(scores: list[Any], by_hand: list[Any], extension: str) -> Known:
    return Known(digest(sorted(scores)), digest(sorted(by_hand, key=repr)), extension)


def rows_of_class(gradebook: Gradebook, lesson: Lesson, kind: Any, *columns: Any) -> Iterable[Any]:
    """Columns of every grade or comment of a lesson, after the student, extension and penalty."""
    facts = (Student.id, SubmittedAssignment.extension, SubmittedNotebook.late_submission_penalty)
    rows: Iterable[Any] = (
        gradebook.db.query(*facts, *columns)
        .select_from(kind)
        .join(BaseCell, BaseCell.id == kind.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Student, Student.id == SubmittedAssignment.student_id)
        .filter(Notebook.name == lesson.notebook)
        .filter(SubmittedAssignment.assignment.has(name=lesson.name))
    )
    return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{float(value):.6f}"


def digest(facts: Any) -> str:
    """A digest of facts that print the same when they are the same."""
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()


def read_cells(gradebook: Gradebook, lesson: Lesson) -> dict[str, Any]:
    """What the gradebook holds of a lesson's own cells, as plain data."""
    notebook = gradebook.find_notebook(lesson.notebook, lesson.name)
    facts = ("cell_type", "locked", "source", "checksum")
    found = {
        "kernelspec": notebook.kernelspec,
        "source": {
            cell.name: {name: getattr(cell, name) for name in facts}
            for cell in notebook.source_cells
        },
        "points": {
            cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)
        },
    }
    gradebook.db.remove()
    return found


class LessonCells:
    """What nbgrader's OverwriteCells asks the gradebook about a lesson, read before."""

    def __init__(self, cells: dict[str, Any]) -> None:
        self.kernelspec: str | None = cells["kernelspec"]
        self._source = {name: SimpleNamespace(**cell) for name, cell in cells["source"].items()}
        self._graded = {
            name: SimpleNamespace(max_score=points) for name, points in cells["points"].items()
        }

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        return self._find(self._source, name)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        return self._find(self._graded, name)

    @staticmethod
    def _find(cells: dict[str, SimpleNamespace], name: str) -> SimpleNamespace:
        if name not in cells:
            raise MissingEntry(f"No such cell: {name}")
        return cells[name]
