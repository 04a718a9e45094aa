"""Grades for elsewhere, as nbgrader's export plug-ins: CSV, Canvas, Moodle.

The score that counts is the raw score minus the penalty for lateness, never below 0. In the files
for other systems a student of whom nothing was graded has an empty cell, which is not a 0.
"""

import logging
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExportPlugin
from traitlets import Dict

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, pick
from autograde.grading.gradebook import open_gradebook
from autograde.lms.people import read_numbers
from autograde.lms.spreadsheet import Cell, safe, write_table
from autograde.student_text import named, printable

Table = tuple[list[str], list[list[Cell]]]
Class = list[tuple[Student, list[SubmittedAssignment | None]]]
"""Every student, with a submission of each lesson, or None where nothing was graded."""


class GradeExporter(ExportPlugin):
    """The lessons, students and scores of an export, in a table that is safe to open."""

    file = "grades.csv"

    titles = Dict({}, help="What a lesson is called in the other system, as {lesson: title}.").tag(
        config=True
    )

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to the file that `--to` names, or to the exporter's own.

        Raises:
            CourseError: nothing is graded, or the gradebook has no lesson of a name.
        """
        lessons, students = self.lessons(gradebook), self.students(gradebook)
        for student in students:
            if safe(student.id) != student.id:
                self.log.warning("%r reads like a formula: it is written with a '", student.id)
        graded = {
            lesson.name: {s.student_id: s for s in lesson.submissions if _has_scores(s)}
            for lesson in lessons
        }
        if not any(graded.values()):
            raise CourseError("nothing is graded yet. Run: autograde grade")
        submissions: Class = [
            (student, [graded[lesson.name].get(student.id) for lesson in lessons])
            for student in students
        ]
        for lesson in lessons:
            scored = graded[lesson.name]
            waiting = {who for who, s in scored.items() if s.needs_manual_grade}
            folders = self._root.glob(f"submitted/*/{lesson.name}")
            not_graded = {path.parent.name for path in folders} - scored.keys()
            for what, who in (
                ("to be graded by hand", waiting),
                ("handed in and not graded, so without a score", not_graded),
            ):
                if who:
                    names = printable(named(sorted(who)))
                    self.log.warning("%s: %s: %d (%s)", lesson.name, what, len(who), names)
        head, rows = self.table(lessons, submissions)
        write_table(Path(self.to or self.file), head, rows)
        self.log.info("Exported %d rows to %s", len(rows), self.to or self.file)

    @property
    def _root(self) -> Path:
        return Path(CourseDirectory(config=self.config).root)

    def table(self, lessons: list[Assignment], submissions: Class) -> Table:
        raise NotImplementedError

    def lessons(self, gradebook: Gradebook) -> list[Assignment]:
        """Return the chosen lessons, or all that somebody has handed in."""
        known = {assignment.name: assignment for assignment in gradebook.assignments}
        if self.assignment:
            return [pick("gradebook entry", str(name), known) for name in self.assignment]
        return [each for each in known.values() if each.num_submissions]

    def students(self, gradebook: Gradebook) -> list[Student]:
        wanted = {str(name) for name in self.student}
        everybody = sorted(gradebook.students, key=lambda student: str(student.id))
        return [each for each in everybody if not wanted or each.id in wanted]

    def title(self, lesson: Assignment) -> str:
        return str(self.titles.get(lesson.name, lesson.name))


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


def _name(student: Student) -> str:
    """Return last name, first name; the id where the gradebook has no name."""
    return ", ".join(filter(None, (student.last_name, student.first_name))) or student.id


def _number_there(student: Student) -> str:
    """Return the student's number in the other system, or "" if it is not known."""
    return student.lms_user_id or (student.id if student.id.isdigit() else "")


class CsvExporter(GradeExporter):
    """The columns of nbgrader's own `CsvExportPlugin` (nbgrader/plugins/export.py), quoted.

    As there, a student who handed nothing in has 0.
    """

    def table(self, lessons: list[Assignment], submissions: Class) -> Table:
        head = [
            "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
            "raw_score", "late_submission_penalty", "score", "max_score",
        ]  # fmt: skip
        return head, [
            [lesson.name, lesson.duedate, found and found.timestamp, student.id,
             student.last_name, student.first_name, student.email,
             found.score if found else 0.0, (found and found.late_submission_penalty) or 0.0,
             _counts(found) or 0.0, lesson.max_score]
            for number, lesson in enumerate(lessons)
            for student, handed_in in submissions
            for found in [handed_in[number]]
        ]  # fmt: skip


class CanvasExporter(GradeExporter):
    """The file that Canvas imports in its gradebook.

    Canvas wants Student, ID, optionally SIS User ID and SIS Login ID, and Section first, then a
    column for each assignment, called by title or by title and id as in `Values (1234)`; a
    row that begins with "Points Possible" comes before the students. It looks a student up by ID,
    then by the SIS ids, then by name (canvas-lms, lib/gradebook_importer.rb).

    ID is the gradebook's `lms_user_id`, or else the student's id if it is all digits:
    `autograde.lms.collect` takes such ids from Canvas's downloads.
    """

    file = "grades-canvas.csv"

    def table(self, lessons: list[Assignment], submissions: Class) -> Table:
        head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        points: list[Cell] = ["    Points Possible", "", "", "", ""]
        return [*head, *map(self.title, lessons)], [
            [*points, *(lesson.max_score for lesson in lessons)],
            *(
                [_name(student), _number_there(student), "", student.id, "", *map(_counts, found)]
                for student, found in submissions
            ),
        ]


class MoodleExporter(GradeExporter):
    """The file that Moodle imports.

    One lesson gives the offline grading worksheet of an assignment: Moodle wants Identifier
    ("Participant 1234"), Grade and Last modified (grade), and takes the other columns as they come
    (moodle, mod/assign/feedback/offline/importgradeslib.php, mod/assign/lang/en/assign.php). The
    number is the one that the student had when this lesson was collected: Moodle has others in
    other assignments. If no number is known in this lesson, it is found as for Canvas. There is no
    column "Feedback comments": an empty one would delete the comments that are in Moodle
    (mod/assign/feedback/offline/locallib.php).

    Several lessons give a file for Grades, Import, CSV file, where ID number, username or email
    address is mapped to the students and each other column to an activity. A row whose mapped
    column is empty goes to the student of the row before it
    (moodle, grade/import/csv/classes/load_data.php).
    """

    file = "grades-moodle.csv"

    def table(self, lessons: list[Assignment], submissions: Class) -> Table:
        if len(lessons) == 1:
            return self._worksheet(lessons[0], submissions)
        if without := [student.id for student, _ in submissions if not student.email]:
            self.log.warning(
                "No email address for %s: in Moodle, map Username and not Email address, or "
                "their grades go to the student of the row before",
                ", ".join(map(printable, without)),
            )
        head = ["First name", "Last name", "Username", "Email address", *map(self.title, lessons)]
        return head, [
            [student.first_name, student.last_name, student.id, student.email,
             *map(_counts, found)]
            for student, found in submissions
        ]  # fmt: skip

    def _worksheet(self, lesson: Assignment, submissions: Class) -> Table:
        head = [
            "Identifier", "Full name", "ID number", "Email address", "Status", "Grade",
            "Maximum Grade", "Grade can be changed", "Last modified (submission)",
            "Last modified (grade)",
        ]  # fmt: skip
        rows: list[list[Cell]] = []
        numbers = read_numbers(self._root, lesson.name)
        lost = []
        for student, (found,) in submissions:
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
            self.log.warning(
                "No participant's number in %s for %s: Moodle will skip these rows, and their "
                "grades. Collect the lesson with its grading worksheet beside the download",
                lesson.name, ", ".join(lost),
            )  # fmt: skip
        return head, rows


EXPORTERS: dict[str, type[GradeExporter]] = {
    "csv": CsvExporter,
    "canvas": CanvasExporter,
    "moodle": MoodleExporter,
}
"""By the name that `autograde export --format` takes."""


def export_grades(root: Path, form: str, lessons: tuple[str, ...], file: Path | None) -> Path:
    """Export the grades of a course, as `nbgrader export` does; returns the file."""
    config = course_config(root)
    terminal = logging.Logger("export", logging.WARNING)  # nbgrader's command brings its own
    terminal.addHandler(logging.StreamHandler())
    exporter = EXPORTERS[form](config=config, log=terminal)
    exporter.to = str(file or root / exporter.file)
    exporter.assignment = list(lessons)
    with open_gradebook(config) as gradebook:
        exporter.export(gradebook)
    return Path(exporter.to)
