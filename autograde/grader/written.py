"""Written answers: kept for whoever grades by hand, and what the feedback says of them."""

import hashlib
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Grade, SubmittedAssignment
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import compute_checksum

from autograde.course import Lesson, grade_id
from autograde.grader.seeds import state_folder
from autograde.verdict.panel import number


def save_written(grade: Grade, cell: NotebookNode, read: Path, *, restored: bool) -> None:
    """Save that an answer is to be graded by hand, or that there is none, which gives 0.

    A score given by hand stays. It wants a second look only where the answer is another by now.

    Args:
        grade: the gradebook's row of this answer.
        read: where the digest of the answer is kept that was there the last time.
        restored: the cell had been deleted or changed its kind; the answer may stand elsewhere.
    """
    untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
    missing = untouched or (not cell.source.strip() and not restored)
    digest = hashlib.sha256(cell.source.encode("utf-8", "surrogatepass")).hexdigest()
    changed = not read.is_file() or read.read_text() != digest
    read.parent.mkdir(parents=True, exist_ok=True)
    read.write_text(digest)
    grade.auto_score = 0.0 if missing else None
    if grade.manual_score is None:
        grade.needs_manual_grade = not missing
    else:
        grade.needs_manual_grade = changed or grade.needs_manual_grade


def place_of(lesson: Lesson, student: str, name: str) -> Path:
    """Where `save_written` keeps the digest of an answer."""
    return state_folder(lesson.root) / "written" / student / lesson.name / name


def waiting(submission: SubmittedAssignment) -> str:
    """How many points are still to be given by hand, in words; "" when none are."""
    points = sum(
        float(grade.max_score)
        for notebook in submission.notebooks
        for grade in notebook.grades
        if grade.needs_manual_grade
    )
    return f"{number(points)} points to grade by hand" if points else ""


class HandGrades(GetGrades):
    """Scores and comments for the feedback page, and which answers nobody has graded yet."""

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._get_score(cell, resources)
        grade = self.gradebook.find_grade(
            grade_id(cell), self.notebook_id, self.assignment_id, self.student_id
        )
        if grade.manual_score is None and grade.auto_score is None:
            cell.metadata.nbgrader["score"] = None  # the gradebook counts it as 0
