"""Read a graded class: every submission's verdicts, scores and problems."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import takewhile
from statistics import fmean

from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, Lesson, lessons
from autograde.course.versions import notebook_of, versions
from autograde.grading.gradebook import (
    as_recorded,
    marks_of_class,
    names_of_students,
    open_gradebook,
)
from autograde.grading.reading.handed_in import read_submission
from autograde.grading.record import is_broken, read_record
from autograde.grading.state import read_entry
from autograde.grading.submission import Marks, Place, graded_notebook, share_of
from autograde.rubric.judge import LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief
from autograde.values.text import well_formed

Line = tuple[str, str]
"""A rubric line: its exercise and its name."""

RIGHT, BLANK, WRONG = "right", "not judged", "wrong"
STATES = (RIGHT, BLANK, WRONG)

SCORED, WAITING, EMPTY = "scored", "waiting", "no answer"
ANSWER_STATES = (SCORED, WAITING, EMPTY)
"""The states of a written answer: it has a score; it waits for one; nothing was answered.

An answer that changed after it was scored waits again; its old score counts until then.
"""


class NothingGraded(CourseError):
    """No submission of the lesson has been graded."""


@dataclass(frozen=True)
class GradedSubmission:
    """One graded submission. `score` is the score that counts, less the penalty for lateness.

    The words of a problem may quote the student; its `cause` never does.
    `by_hand` are the points that wait for a person, `held` those of them already in the score.
    `before` is the share of the points in earlier lessons, None if there were none.
    `written` has the score of each written answer, or the state of one that has none.
    `earlier`: it was made from an earlier version of the lesson, and graded by that one.
    `file` is a digest of the notebook that was graded, as handed in, "" where there is none.
    """

    student: str
    score: float
    penalty: float = 0.0
    by_hand: float = 0.0
    held: float = 0.0
    before: float | None = None
    problem: str = ""
    cause: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    written: dict[str, float | str] = field(default_factory=dict)
    version: str = "unknown"
    walled: bool = True
    earlier: bool = False
    seconds: float | None = None
    file: str = ""

    @property
    def judged(self) -> bool:
        """True when the answers were judged: the notebook ran, and something was tried in it."""
        return any(verdict.judged for verdict in self.verdicts.values())

    @property
    def untouched(self) -> bool:
        """True when it was handed in, could be run, and no exercise was tried."""
        return bool(self.verdicts) and not self.problem and not self.judged

    @property
    def broken(self) -> bool:
        """True when a problem kept every exercise from being judged."""
        return is_broken(self.problem, self.verdicts)

    @cached_property
    def _states(self) -> dict[Line, str]:
        return {
            (verdict.exercise, line.name): line_state(verdict, line)
            for verdict in self.verdicts.values()
            for line in verdict.lines
        }

    def state(self, line: Line) -> str:
        return self._states.get(line, BLANK)

    def has(self, line: Line) -> bool:
        """Return whether its rubric has this line; that of another version may not."""
        return line in self._states or line[0] not in self.verdicts


@dataclass(frozen=True)
class ClassData:
    """A lesson's graded submissions, and the students whose submissions were not graded.

    `absent` are students whom the gradebook knows and of whom nothing is here. `names` are their
    and the others' names, as feedback shows them.
    """

    lesson: Lesson
    submissions: tuple[GradedSubmission, ...]
    not_graded: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, student: str) -> str:
        """Return a student's name and id, or the id alone."""
        return self.names.get(student, student)

    def share(self, submission: GradedSubmission) -> float | None:
        """Return the score as a share of the points that are marked; None for a broken file."""
        if submission.broken:
            return None
        points, waiting = self.lesson.points, submission.by_hand
        return share_of(submission.score, points, waiting, submission.held)

    @property
    def judged(self) -> tuple[GradedSubmission, ...]:
        return tuple(each for each in self.submissions if each.judged)

    @cached_property
    def lines(self) -> dict[Line, float]:
        """Every rubric line and its points, exercises in the lesson's order."""
        order = {exercise.name: i for i, exercise in enumerate(self.lesson.exercises)}
        found = {
            (verdict.exercise, line.name): line.worth
            for submission in self.submissions
            for verdict in submission.verdicts.values()
            for line in verdict.lines
        }
        return dict(sorted(found.items(), key=lambda item: order.get(item[0][0], len(order))))


def line_state(verdict: Verdict, line: LineVerdict) -> str:
    """Return a line's state; BLANK where nothing was tried or the notebook did not get that far."""
    if not verdict.judged:
        return BLANK
    return RIGHT if line.passed else WRONG


def misconceptions(data: ClassData) -> list[tuple[str, Belief, int]]:
    """Return each recognised misconception with its exercise and count, the commonest first.

    Variants with the same words are one misconception, which has the names of all of them.
    """
    found: dict[tuple[str, str, str], list[Belief]] = defaultdict(list)
    for submission in data.submissions:
        for verdict in submission.verdicts.values():
            for belief in verdict.beliefs:
                found[verdict.exercise, belief.belief, belief.hint].append(belief)
    commonest = sorted(found.items(), key=lambda item: -len(item[1]))
    return [
        (exercise, replace(each[0], name=", ".join(sorted({b.name for b in each}))), len(each))
        for (exercise, *_), each in commonest
    ]


def without_names(data: ClassData) -> ClassData:
    """Return the class with students numbered by score, and each problem replaced by its cause."""
    ranked = sorted(data.submissions, key=lambda each: -each.score)
    numbered = tuple(
        replace(each, student=f"student {number}", problem=each.problem and each.cause)
        for number, each in enumerate(ranked, start=1)
    )
    missing = tuple(f"submission {n}" for n, _ in enumerate(data.not_graded, start=1))
    absent = tuple(f"absent {n}" for n, _ in enumerate(data.absent, start=1))
    return ClassData(data.lesson, numbered, missing, absent)


def read_class(lesson: Lesson) -> ClassData:
    """Read a lesson's class from the gradebook and the graded notebooks.

    Raises:
        CourseError: a graded notebook or the gradebook is broken.
        NothingGraded: nobody's submission of this lesson is graded.
    """
    with open_gradebook(course_config(lesson.root)) as gradebook:
        lesson = as_recorded(gradebook, lesson)
        found = tuple(_submissions(lesson, gradebook))
        known = names_of_students(gradebook)
    graded = {submission.student for submission in found}
    folders = sorted((lesson.root / "submitted").glob(f"*/{lesson.name}"))
    handed_in = (well_formed(path.parent.name) for path in folders)  # a name may be no text
    not_graded = tuple(student for student in handed_in if student not in graded)
    if not found:
        raise NothingGraded(
            f"no submission of {lesson.name} is graded. Run: autograde grade {lesson.name}"
        )
    absent = tuple(sorted(known.keys() - graded - {*not_graded}))
    return ClassData(lesson, found, not_graded, absent, known)


def _submissions(lesson: Lesson, gradebook: Gradebook) -> Iterator[GradedSubmission]:
    before = _before(lesson, gradebook)
    names = {written.name for written in lesson.written}
    handed_out = [notebook_of(version) for version in versions(lesson)]
    for student, marks in marks_of_class(gradebook, lesson).items():
        place = Place(student, lesson)
        entry = read_entry(place)
        with graded_notebook(place) as notebook:
            record = read_record(notebook) if notebook is not None else None
        if record is None:
            continue
        yield GradedSubmission(
            student=student,
            score=max(0.0, marks.total()),
            penalty=marks.penalty or 0.0,
            by_hand=marks.waiting(),
            held=marks.held(),
            before=before.get(student),
            problem=record.problem.words if record.problem else "",
            cause=record.problem.cause if record.problem else "",
            verdicts=record.verdicts,
            written={name: _answer(marks, name) for name in marks.points if name in names},
            version=record.grader,
            walled=record.walled is not False,
            earlier=record.earlier,
            seconds=entry.seconds if entry else None,
            file=_file(place, handed_out),
        )


def _file(place: Place, handed_out: list[NotebookNode]) -> str:
    """Return a digest of the notebook that is graded of those handed in; "" where there is none."""
    handed_in = read_submission(place, ["*"], handed_out)  # without the lesson's data files
    if handed_in.problem:
        return ""
    return sha256(handed_in.files[f"{place.lesson.notebook}.ipynb"]).hexdigest()


def _before(lesson: Lesson, gradebook: Gradebook) -> dict[str, float]:
    """Return the mean share of the points in earlier lessons, by student.

    A lesson without any points does not count: the file may have been broken.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    earlier = takewhile(lambda each: each.name != lesson.name, lessons(lesson.root).values())
    for each in earlier:
        for student, marks in marks_of_class(gradebook, each).items():
            marked = [name for name in marks.points if name not in marks.waits]
            if earned := sum(marks.score(name) or 0.0 for name in marked):
                shares[student].append(earned / sum(marks.points[name] for name in marked))
    return {student: fmean(found) for student, found in shares.items()}


def _answer(marks: Marks, name: str) -> float | str:
    if name in marks.waits:
        return WAITING
    by_hand, _ = marks.by_hand.get(name, (None, None))
    return EMPTY if by_hand is None else marks.score(name) or 0.0
