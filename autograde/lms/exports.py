"""Grades for elsewhere, as nbgrader's export plug-ins: CSV, Canvas, Moodle, Gradescope.

What counts is the score less what lateness costs, never below 0. In the files for other systems
who handed nothing in has an empty cell, which is not a 0.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, MissingEntry, Student, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from traitlets import Dict

from autograde.course import CourseError
from autograde.course_config import course_config
from autograde.grading.gradebook import open_gradebook
from autograde.lms.spreadsheet import Cell, safe, write_table
from autograde.words import printable

Table = tuple[list[str], list[list[Cell]]]


@dataclass(frozen=True)
class Score:
    """What a student has for one lesson."""

    raw: float
    penalty: float
    handed_in: datetime | None
    late: float
    waiting: bool

    @property
    def counts(self) -> float:
        return round(max(0.0, self.raw - self.penalty), 4)


class GradeExporter(ExportPlugin):
    """What the exporters share: which lessons and students, and a table that is safe to open."""

    file = "grades.csv"

    titles = Dict({}, help="What a lesson is called in the other system, as {lesson: title}.").tag(
        config=True
    )

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to the file that `--to` names, or to the exporter's own.

        Raises:
            CourseError: the gradebook does not know one of the lessons.
        """
        students = self.students(gradebook)
        for student in students:
            if safe(student.id) != student.id:
                self.log.warning("%r reads like a formula: it is written with a '", student.id)
        head, rows = self.table(gradebook, self.lessons(gradebook), students)
        write_table(Path(self.to or self.file), head, rows)
        self.log.info("Exported %d rows to %s", len(rows), self.to or self.file)

    def table(
        self, gradebook: Gradebook, lessons: list[Assignment], students: list[Student]
    ) -> Table:
        raise NotImplementedError

    def lessons(self, gradebook: Gradebook) -> list[Assignment]:
        """The chosen lessons, or all that somebody has handed in."""
        known = {assignment.name: assignment for assignment in gradebook.assignments}
        wanted = [str(name) for name in self.assignment]
        for name in wanted:
            if name not in known:
                raise CourseError(
                    f"the gradebook does not know {name!r}; it knows: {', '.join(known) or 'none'}"
                )
        if wanted:
            return [known[name] for name in wanted]
        return [each for each in known.values() if each.num_submissions]

    def students(self, gradebook: Gradebook) -> list[Student]:
        wanted = {str(name) for name in self.student}
        everybody = sorted(gradebook.students, key=lambda student: str(student.id))
        return [each for each in everybody if not wanted or each.id in wanted]

    def title(self, lesson: Assignment) -> str:
        return str(self.titles.get(lesson.name, lesson.name))

    def score(self, gradebook: Gradebook, lesson: Assignment, student: Student) -> Score | None:
        """What the student has for the lesson, or None where nothing was handed in."""
        try:
            found = gradebook.find_submission(lesson.name, student.id)
        except MissingEntry:
            return None
        score = _score(found)
        if score.waiting:
            self.log.warning(
                "%s of %s waits for points given by hand", lesson.name, printable(student.id)
            )
        return score


def _score(found: SubmittedAssignment) -> Score:
    return Score(
        raw=found.score,
        penalty=found.late_submission_penalty or 0.0,
        handed_in=found.timestamp,
        late=found.total_seconds_late,
        waiting=found.needs_manual_grade,
    )


def _counts(score: Score | None) -> float | None:
    return score.counts if score else None


def _name(student: Student) -> str:
    """Last name, first name; the id where the gradebook has no name."""
    return ", ".join(filter(None, (student.last_name, student.first_name))) or student.id


def _number_there(student: Student) -> str:
    """The student's number in the other system, as far as it is known."""
    return student.lms_user_id or (student.id if student.id.isdigit() else "")


class CsvExporter(GradeExporter):
    """The columns of nbgrader's own `CsvExportPlugin` (nbgrader/plugins/export.py), quoted.

    As there, who handed nothing in has 0.
    """

    def table(
        self, gradebook: Gradebook, lessons: list[Assignment], students: list[Student]
    ) -> Table:
        head = [
            "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
            "raw_score", "late_submission_penalty", "score", "max_score",
        ]  # fmt: skip
        return head, [
            self._row(lesson, student, self.score(gradebook, lesson, student))
            for lesson in lessons
            for student in students
        ]

    def _row(self, lesson: Assignment, student: Student, score: Score | None) -> list[Cell]:
        found = score or Score(0.0, 0.0, None, 0.0, False)
        return [
            lesson.name, _text(lesson.duedate), _text(found.handed_in), student.id,
            student.last_name, student.first_name, student.email,
            found.raw, found.penalty, found.counts, lesson.max_score,
        ]  # fmt: skip


class CanvasExporter(GradeExporter):
    """The file that Canvas imports in its gradebook.

    Canvas wants Student, ID, optionally SIS User ID and SIS Login ID, and Section first, then a
    column for each assignment, called by title or by title and id as in `Self-attention (1234)`; a
    row that begins with "Points Possible" comes before the students. It looks a student up by ID,
    then by the SIS ids, then by name (canvas-lms, lib/gradebook_importer.rb).

    ID is the gradebook's `lms_user_id`, or else a student's id of digits alone, which is what
    `autograde.lms.collect` takes from Canvas's downloads.
    """

    file = "grades-canvas.csv"

    def table(
        self, gradebook: Gradebook, lessons: list[Assignment], students: list[Student]
    ) -> Table:
        head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        points: list[Cell] = ["    Points Possible", "", "", "", ""]
        rows = [[*points, *(lesson.max_score for lesson in lessons)]]
        for student in students:
            scores = [_counts(self.score(gradebook, lesson, student)) for lesson in lessons]
            rows.append(
                [
                    _name(student),
                    _number_there(student),
                    "",
                    student.id,
                    "",
                    *scores,
                ]
            )
        return [*head, *map(self.title, lessons)], rows


class MoodleExporter(GradeExporter):
    """The file that Moodle imports.

    One lesson gives the offline grading worksheet of an assignment: Moodle wants Identifier
    ("Participant 1234"), Grade and Last modified (grade), and takes the other columns as they come
    (moodle, mod/assign/feedback/offline/importgradeslib.php, mod/assign/lang/en/assign.php). The
    number is found as for Canvas. There is no column "Feedback comments": an empty one would
    delete the comments that are in Moodle (mod/assign/feedback/offline/locallib.php).

    Several lessons give a file for Grades, Import, CSV file, where ID number, username or email
    address is mapped to the students and each other column to an activity. A row whose mapped
    column is empty goes to the student of the row before it
    (moodle, grade/import/csv/classes/load_data.php).
    """

    file = "grades-moodle.csv"

    def table(
        self, gradebook: Gradebook, lessons: list[Assignment], students: list[Student]
    ) -> Table:
        if len(lessons) == 1:
            return self._worksheet(gradebook, lessons[0], students)
        if without := [student.id for student in students if not student.email]:
            self.log.warning(
                "No email address for %s: in Moodle, map Username and not Email address, or "
                "their grades go to the student of the row before",
                ", ".join(map(printable, without)),
            )
        head = ["First name", "Last name", "Username", "Email address", *map(self.title, lessons)]
        return head, [
            [student.first_name, student.last_name, student.id, student.email,
             *(_counts(self.score(gradebook, lesson, student)) for lesson in lessons)]
            for student in students
        ]  # fmt: skip

    def _worksheet(
        self, gradebook: Gradebook, lesson: Assignment, students: list[Student]
    ) -> Table:
        head = [
            "Identifier", "Full name", "ID number", "Email address", "Status", "Grade",
            "Maximum Grade", "Grade can be changed", "Last modified (submission)",
            "Last modified (grade)",
        ]  # fmt: skip
        return head, [
            self._line(lesson, student, self.score(gradebook, lesson, student))
            for student in students
        ]

    def _line(self, lesson: Assignment, student: Student, score: Score | None) -> list[Cell]:
        full = " ".join(filter(None, (student.first_name, student.last_name))) or student.id
        own = _number_there(student)
        return [
            own and f"Participant {own}", full, student.id, student.email,
            "Graded" if score else "No submission",
            _counts(score), lesson.max_score, "Yes",
            _text(score.handed_in) if score else "", "",
        ]  # fmt: skip


class GradescopeExporter(GradeExporter):
    """The layout of Gradescope's own "Download Grades".

    Gradescope takes no grades from a file: it is there for whoever keeps them in that layout. First
    Name, Last Name, SID, Email and Sections name a student, each lesson has four columns: the
    score, "Max Points", "Submission Time" and "Lateness (H:M:S)", and "Total Lateness (H:M:S)" is
    the last one (as read by public tools, gradelib and nemogb among them, of which some fail where
    the last one is missing; Gradescope's help describes the roster's columns, not these).
    """

    file = "grades-gradescope.csv"

    def table(
        self, gradebook: Gradebook, lessons: list[Assignment], students: list[Student]
    ) -> Table:
        head = ["First Name", "Last Name", "SID", "Email", "Sections"]
        for lesson in lessons:
            title = self.title(lesson)
            more = ("Max Points", "Submission Time", "Lateness (H:M:S)")
            head += [title, *(f"{title} - {each}" for each in more)]
        head.append("Total Lateness (H:M:S)")
        rows: list[list[Cell]] = []
        for student in students:
            scores = [self.score(gradebook, lesson, student) for lesson in lessons]
            row: list[Cell] = [student.first_name, student.last_name, student.id, student.email, ""]
            for lesson, score in zip(lessons, scores, strict=True):
                row += _four(lesson, score)
            rows.append([*row, _hours(sum(score.late for score in scores if score))])
        return head, rows


def _four(lesson: Assignment, score: Score | None) -> Iterator[Cell]:
    yield _counts(score)
    yield lesson.max_score
    yield _text(score.handed_in) if score else ""
    yield _hours(score.late) if score else ""


def _hours(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


EXPORTERS: dict[str, type[GradeExporter]] = {
    "csv": CsvExporter,
    "canvas": CanvasExporter,
    "moodle": MoodleExporter,
    "gradescope": GradescopeExporter,
}


def export_grades(root: Path, kind: str, lessons: tuple[str, ...], file: Path | None) -> Path:
    """Export the grades of a course, as `nbgrader export` does; returns the file.

    Raises:
        CourseError: the gradebook does not know a lesson, or cannot be read.
        OSError: the file cannot be written.
    """
    config = course_config(root)
    terminal = logging.Logger("export", logging.WARNING)  # nbgrader's command brings its own
    terminal.addHandler(logging.StreamHandler())
    exporter = EXPORTERS[kind](config=config, log=terminal)
    exporter.to = str(file or root / exporter.file)
    exporter.assignment = list(lessons)
    with open_gradebook(config) as gradebook:
        exporter.export(gradebook)
    return Path(exporter.to)
