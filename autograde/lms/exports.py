"""Grades for elsewhere as CSV files: for a spreadsheet, for Canvas, for Moodle.

The score that counts is the raw score minus the penalty for lateness, never below 0. In the files
for other systems a student of whom nothing was graded has an empty cell, which is not a 0.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, pick
from autograde.grading.gradebook import open_gradebook
from autograde.lms.people import read_numbers
from autograde.lms.spreadsheet import Cell, safe, write_table
from autograde.student_text import named, printable


class Grades(NamedTuple):
    """The chosen lessons of a course, and every student with a submission of each.

    It is None where nothing was graded. `titles` are what lessons are called in the other system.
    """

    root: Path
    lessons: list[Assignment]
    students: list[tuple[Student, list[SubmittedAssignment | None]]]
    titles: dict[str, str]


Table = tuple[list[str], list[list[Cell]]]


def export_grades(root: Path, form: str, names: tuple[str, ...], file: Path | None) -> Path:
    """Export the grades of the named lessons, or of all that somebody has handed in.

    Returns the file.

    Raises:
        CourseError: nothing is graded, the gradebook has no lesson of a name, or Moodle's worksheet
            is wanted for several lessons.
    """
    config = course_config(root)
    file = file or root / FILES[form]
    with open_gradebook(config) as gradebook:
        grades = _read(root, gradebook, names, config.Lms.get("titles", {}))
        write_table(file, *FORMATS[form](grades))
    return file


def _read(
    root: Path, gradebook: Gradebook, names: tuple[str, ...], titles: dict[str, str]
) -> Grades:
    known = {assignment.name: assignment for assignment in gradebook.assignments}
    lessons = [pick("gradebook entry", name, known) for name in names]
    lessons = lessons or [each for each in known.values() if each.num_submissions]
    students = sorted(gradebook.students, key=lambda student: str(student.id))
    for student in students:
        if safe(student.id) != student.id:
            _warn(f"{printable(student.id)!r} reads like a formula: it is written with a '")
    graded = {
        lesson.name: {s.student_id: s for s in lesson.submissions if _has_scores(s)}
        for lesson in lessons
    }
    if not any(graded.values()):
        raise CourseError("nothing is graded yet. Run: autograde grade")
    for name, scored in graded.items():
        waiting = {who for who, s in scored.items() if s.needs_manual_grade}
        not_graded = {path.parent.name for path in root.glob(f"submitted/*/{name}")} - scored.keys()
        for what, who in (
            ("to be graded by hand", waiting),
            ("handed in and not graded, so without a score", not_graded),
        ):
            if who:
                _warn(f"{name}: {what}: {len(who)} ({printable(named(sorted(who)))})")
    found = [(each, [graded[lesson.name].get(each.id) for lesson in lessons]) for each in students]
    return Grades(root, lessons, found, titles)


def _warn(text: str) -> None:
    print(text, file=sys.stderr)


def _has_scores(found: SubmittedAssignment) -> bool:
    """Return whether anything was graded: nbgrader's gradebook also keeps what it failed to grade.

    An assignment without graded cells counts as graded.
    """
    grades = [grade for notebook in found.notebooks for grade in notebook.grades]
    return not grades or any((g.auto_score, g.manual_score) != (None, None) for g in grades)


def _counts(found: SubmittedAssignment | None) -> float | None:
    """Return the score that counts; None where nothing was graded."""
    if found is None:
        return None
    counts: float = max(0.0, found.score - (found.late_submission_penalty or 0.0))
    return round(counts, 4)


def _number_there(student: Student) -> str:
    """Return the student's number in the other system, or "" if it is not known."""
    return student.lms_user_id or (student.id if student.id.isdigit() else "")


def csv(grades: Grades) -> Table:
    """Return the columns of nbgrader's own `CsvExportPlugin` (nbgrader/plugins/export.py).

    As there, a student who handed nothing in has 0.
    """
    head = [
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
        "raw_score", "late_submission_penalty", "score", "max_score",
    ]  # fmt: skip
    return head, [
        [lesson.name, lesson.duedate, found and found.timestamp, student.id,
         student.last_name, student.first_name, student.email,
         found.score if found else 0.0, (found and found.late_submission_penalty) or 0.0,
         _counts(found) or 0.0, lesson.max_score]
        for number, lesson in enumerate(grades.lessons)
        for student, handed_in in grades.students
        for found in [handed_in[number]]
    ]  # fmt: skip


def canvas(grades: Grades) -> Table:
    """Return the table that Canvas imports in its gradebook.

    Canvas wants Student, ID, optionally SIS User ID and SIS Login ID, and Section first, then a
    column for each assignment, called by title or by title and id as in `Values (1234)`; a
    row that begins with "Points Possible" comes before the students. It looks a student up by ID,
    then by the SIS ids, then by name (canvas-lms, lib/gradebook_importer.rb).

    ID is the gradebook's `lms_user_id`, or else the student's id if it is all digits:
    `autograde.lms.collect` takes such ids from Canvas's downloads.
    """
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    titles = [grades.titles.get(lesson.name, lesson.name) for lesson in grades.lessons]
    points: list[Cell] = ["    Points Possible", "", "", "", ""]
    rows = [[*points, *(lesson.max_score for lesson in grades.lessons)]]
    for student, found in grades.students:
        name = ", ".join(filter(None, (student.last_name, student.first_name))) or student.id
        rows.append([name, _number_there(student), "", student.id, "", *map(_counts, found)])
    return [*head, *titles], rows


def moodle(grades: Grades) -> Table:
    """Return the offline grading worksheet of an assignment in Moodle.

    Moodle wants Identifier ("Participant 1234"), Grade and Last modified (grade), and takes the
    other columns as they come (moodle, mod/assign/feedback/offline/importgradeslib.php,
    mod/assign/lang/en/assign.php). The number is the one that the student had when this lesson was
    collected: Moodle has others in other assignments. If no number is known in this lesson, it is
    found as for Canvas. There is no column "Feedback comments": an empty one would delete the
    comments that are in Moodle (mod/assign/feedback/offline/locallib.php).
    """
    if len(grades.lessons) > 1:
        raise CourseError("Moodle's worksheet is of one assignment: name one lesson")
    (lesson,) = grades.lessons
    head = [
        "Identifier", "Full name", "ID number", "Email address", "Status", "Grade",
        "Maximum Grade", "Grade can be changed", "Last modified (submission)",
        "Last modified (grade)",
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    numbers = read_numbers(grades.root, lesson.name)
    lost = []
    for student, (found,) in grades.students:
        full = " ".join(filter(None, (student.first_name, student.last_name))) or student.id
        own = numbers.get(student.id, "") if numbers else _number_there(student)
        if found and not own:
            lost.append(printable(student.id))
        rows.append([
            own and f"Participant {own}", full, student.id, student.email,
            "Graded" if found else "No submission",
            _counts(found), lesson.max_score, "Yes", found and found.timestamp, "",
        ])  # fmt: skip
    if lost:
        _warn(
            f"No participant's number in {lesson.name} for {', '.join(lost)}: Moodle will skip "
            "these rows, and their grades. Collect the lesson with its grading worksheet beside "
            "the download"
        )
    return head, rows


FORMATS: dict[str, Callable[[Grades], Table]] = {"csv": csv, "canvas": canvas, "moodle": moodle}
"""By the name that `autograde export --format` takes."""
FILES = {"csv": "grades.csv", "canvas": "grades-canvas.csv", "moodle": "grades-moodle.csv"}
