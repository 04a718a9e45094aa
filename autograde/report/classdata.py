"""Read a graded class into two tables: a row for each student, and one for each of their lines."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nbgrader.api import Gradebook

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, Lesson
from autograde.grading.gradebook import (
    as_recorded,
    marks_of_class,
    names_of_students,
    open_gradebook,
)
from autograde.grading.record import is_broken, read_record
from autograde.grading.state import read_entry
from autograde.grading.submission import Marks, Place, graded_notebook, share_of
from autograde.rubric.judge import Verdict
from autograde.rubric.misconceptions import Belief
from autograde.values.text import well_formed

RIGHT, BLANK, WRONG = "right", "not judged", "wrong"
STATES = (RIGHT, BLANK, WRONG)
"""The states of a line. It is not judged where nothing was tried, or the notebook did not get far
enough."""

SCORED, WAITING, EMPTY = "scored", "waiting", "no answer"
ANSWER_STATES = (SCORED, WAITING, EMPTY)
"""The states of a written answer: it has a score; it waits for one; nothing was answered.

An answer that changed after it was scored waits again; its old score counts until then.
"""

Line = tuple[str, str]
"""A rubric line: its exercise and its name."""


class NothingGraded(CourseError):
    """No submission of the lesson has been graded."""


@dataclass(frozen=True)
class Student:
    """A student whose submission is graded. `score` counts, less the penalty for lateness.

    `share` is the score as a share of the points that are marked; a broken file has none.
    `by_hand` are the points that wait for a person. The words of a problem may quote the student;
    its `cause` never does. `earlier`: the submission was made from an earlier version of the
    lesson, and graded by that one.
    """

    name: str
    score: float
    share: float | None = None
    penalty: float = 0.0
    by_hand: float = 0.0
    problem: str = ""
    cause: str = ""
    broken: bool = False
    version: str = "unknown"
    walled: bool = True
    earlier: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Row:
    """What a student has on one line of a rubric, or on a question, which has no `line`.

    `beliefs` are the misconceptions that explain why the line is wrong.
    """

    student: str
    exercise: str
    line: str
    state: str
    points: float
    worth: float
    beliefs: tuple[Belief, ...] = ()


@dataclass(frozen=True)
class ClassData:
    """A lesson's graded class: a row for each student, and one for each student and line.

    `not_graded` are students who handed in and were not graded, `absent` those whom the gradebook
    knows and of whom nothing is here. `names` are all students' names, as feedback shows them.
    """

    lesson: Lesson
    students: tuple[Student, ...]
    rows: tuple[Row, ...] = ()
    not_graded: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, student: str) -> str:
        """Return a student's name and id, or the id alone."""
        return self.names.get(student, student)

    @cached_property
    def judged(self) -> frozenset[str]:
        """The students whose answers were judged: the notebook ran, and something was tried."""
        return frozenset(row.student for row in self.rows if row.state in (RIGHT, WRONG))

    @cached_property
    def lines(self) -> list[Line]:
        """Every rubric line, exercises in the lesson's order."""
        order = {exercise.name: i for i, exercise in enumerate(self.lesson.exercises)}
        found = dict.fromkeys((row.exercise, row.line) for row in self.rows if row.line)
        return sorted(found, key=lambda line: order.get(line[0], len(order)))

    @cached_property
    def row_of(self) -> dict[tuple[str, str, str], Row]:
        """The rows by student, exercise and line."""
        return {(row.student, row.exercise, row.line): row for row in self.rows}

    def state(self, student: str, line: Line) -> str:
        """Return the state of a student's line; that of another version may lack it."""
        row = self.row_of.get((student, *line))
        return row.state if row else BLANK


def without_names(data: ClassData) -> ClassData:
    """Return the class with students numbered by score, and each problem replaced by its cause."""
    ranked = sorted(data.students, key=lambda each: -each.score)
    number = {each.name: f"student {n}" for n, each in enumerate(ranked, start=1)}
    return ClassData(
        data.lesson,
        tuple(
            replace(each, name=number[each.name], problem=each.problem and each.cause)
            for each in ranked
        ),
        tuple(replace(row, student=number[row.student]) for row in data.rows),
        tuple(f"submission {n}" for n, _ in enumerate(data.not_graded, start=1)),
        tuple(f"absent {n}" for n, _ in enumerate(data.absent, start=1)),
    )


def read_class(lesson: Lesson) -> ClassData:
    """Read a lesson's class from the gradebook and the graded notebooks.

    Raises:
        CourseError: a graded notebook or the gradebook is broken.
        NothingGraded: nobody's submission of this lesson is graded.
    """
    with open_gradebook(course_config(lesson.root)) as gradebook:
        lesson = as_recorded(gradebook, lesson)
        graded = list(_graded(lesson, gradebook))
        known = names_of_students(gradebook)
    if not graded:
        raise NothingGraded(
            f"no submission of {lesson.name} is graded. Run: autograde grade {lesson.name}"
        )
    here = {student.name for student, _ in graded}
    folders = sorted((lesson.root / "submitted").glob(f"*/{lesson.name}"))
    handed_in = (well_formed(path.parent.name) for path in folders)  # a name may be no text
    not_graded = tuple(student for student in handed_in if student not in here)
    return ClassData(
        lesson,
        tuple(student for student, _ in graded),
        tuple(row for _, rows in graded for row in rows),
        not_graded,
        tuple(sorted(known.keys() - here - {*not_graded})),
        known,
    )


def _graded(lesson: Lesson, gradebook: Gradebook) -> Iterator[tuple[Student, list[Row]]]:
    for name, marks in marks_of_class(gradebook, lesson).items():
        place = Place(name, lesson)
        with graded_notebook(place) as notebook:
            record = read_record(notebook) if notebook is not None else None
        if record is None:
            continue
        entry = read_entry(place)
        broken = is_broken(record.problem, record.verdicts)
        score, waiting = max(0.0, marks.total()), marks.waiting()
        student = Student(
            name,
            score,
            share=None if broken else share_of(score, lesson.points, waiting, marks.held()),
            penalty=marks.penalty or 0.0,
            by_hand=waiting,
            problem=record.problem.words if record.problem else "",
            cause=record.problem.cause if record.problem else "",
            broken=broken,
            version=record.grader,
            walled=record.walled is not False,
            earlier=record.earlier,
            seconds=entry.seconds if entry else None,
        )
        yield student, [*rows_of(name, record.verdicts.values()), *_written(name, lesson, marks)]


def rows_of(student: str, verdicts: Iterable[Verdict]) -> Iterator[Row]:
    """Yield a row for each line of each exercise."""
    for verdict in verdicts:
        for line in verdict.lines:
            state = (RIGHT if line.passed else WRONG) if verdict.judged else BLANK
            behind = tuple(belief for belief in verdict.beliefs if line.name in belief.lines)
            yield Row(student, verdict.exercise, line.name, state, line.points, line.worth, behind)


def _written(student: str, lesson: Lesson, marks: Marks) -> Iterator[Row]:
    for question in lesson.written:
        if (name := question.name) in marks.points:
            by_hand, _ = marks.by_hand.get(name, (None, None))
            state = WAITING if name in marks.waits else EMPTY if by_hand is None else SCORED
            points = marks.score(name) or 0.0
            yield Row(student, name, "", state, points, question.points)
