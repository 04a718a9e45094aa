"""Written answers: kept for whoever grades by hand, and what the feedback says of them."""

import hashlib
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Grade, Gradebook
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import compute_checksum

from autograde.course import Lesson, grade_id
from autograde.grading.seeds import state_folder


def save_written(
    place: tuple[str, Lesson], grade: Grade, cell: NotebookNode, *, restored: bool
) -> None:
    """Save that an answer is to be graded by hand, or that there is none, which gives 0.

    A score given by hand stays. It wants a second look only where the answer is another by now.

    Args:
        place: the student and the lesson.
        grade: the gradebook's row of this answer.
        restored: the cell had been deleted or changed its kind; the answer may stand elsewhere.
    """
    untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
    missing = untouched or (not cell.source.strip() and not restored)
    read = _read(place, grade_id(cell) or "")
    changed = not read.is_file() or read.read_text() != _digest(cell)
    grade.auto_score = 0.0 if missing else None
    if grade.manual_score is None:
        grade.needs_manual_grade = not missing
    else:
        grade.needs_manual_grade = bool(changed or grade.needs_manual_grade)


def keep_read(place: tuple[str, Lesson], nb: NotebookNode) -> None:
    """Note which written answers the gradebook has now; after the commit, so that a run that is
    killed before it asks for the second look again."""
    names = {written.name for written in place[1].written}
    for cell in nb.cells:
        if (name := grade_id(cell)) in names:
            read = _read(place, name or "")
            read.parent.mkdir(parents=True, exist_ok=True)
            read.write_text(_digest(cell))


def _read(place: tuple[str, Lesson], name: str) -> Path:
    """Where the digest of an answer is kept that was there the last time."""
    student, lesson = place
    return state_folder(lesson.root) / "written" / student / lesson.name / name


def _digest(cell: NotebookNode) -> str:
    return hashlib.sha256(cell.source.encode("utf-8", "surrogatepass")).hexdigest()


def waiting(gradebook: Gradebook) -> str:
    """How many answers of the course are still to be graded by hand, in words; "" when none are."""
    number = gradebook.db.query(Grade).filter(Grade.needs_manual_grade).count()
    answers = "answer waits" if number == 1 else "answers wait"
    return f"{number} {answers} in Formgrader" if number else ""


class HandGrades(GetGrades):
    """Scores and comments for the feedback page, and which answers nobody has graded yet."""

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._get_score(cell, resources)
        grade = self.gradebook.find_grade(
            grade_id(cell), self.notebook_id, self.assignment_id, self.student_id
        )
        if grade.manual_score is None and grade.auto_score is None:
            cell.metadata.nbgrader["score"] = None  # the gradebook counts it as 0
