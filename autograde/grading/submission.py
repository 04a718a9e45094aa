"""A submission as plain data: the files handed in, its marks.

This is what travels between the coordinator and a worker.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from autograde.course.lessons import CourseError, Lesson, pick

TIMESTAMP = "timestamp.txt"
"""nbgrader's file for the time at which something was handed in."""

ADDRESS = (TIMESTAMP, "submission_secret.txt")
"""nbgrader's files beside a page of feedback: whose it is. No other file of a student's lies there:
a browser would run a page or a drawing on the page's own site."""

NO_ANSWER = "No response."
"""nbgrader's own comment on an untouched answer."""

GRADED, UNCHANGED, FAILED = OUTCOMES = ("graded", "unchanged", "not graded")


class Place(NamedTuple):
    """A student and a lesson."""

    student: str
    lesson: Lesson


@dataclass(frozen=True)
class Problem:
    """The reason that a submission was not graded in full.

    The words may quote the student. The cause never does.
    """

    cause: str
    words: str


class Disturbed(CourseError):
    """A run may have ended as it did because of what ran beside it: run it again, alone."""


@dataclass(frozen=True)
class Submission:
    """One submission: its files by name, and a remark on them.

    The notebook is stored under the name of the lesson's notebook. If there is a `problem`, there
    is no notebook to read, and the problem's words stand in its place.
    """

    place: Place
    files: dict[str, bytes]
    remark: str = ""
    problem: Problem | None = None


@dataclass(frozen=True)
class Marks:
    """The scores and comments of one submission, by the names of its cells.

    `automatic` and `comments` are the grader's own; a score is None where a person has to grade.
    `written` has digests of the written answers, from the grader alone. `by_hand` has the scores
    and extra credits, `comments_by_hand` the comments that people gave, from the gradebook alone.
    `waits` are the cells that a person still has to look at. `student` is the name on the page.
    """

    automatic: dict[str, float | None] = field(default_factory=dict)
    by_hand: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str | None] = field(default_factory=dict)
    comments_by_hand: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict, compare=False)
    waits: list[str] = field(default_factory=list, compare=False)
    penalty: float | None = None
    extension: str = "None"
    student: str = ""

    def score(self, name: str) -> float | None:
        """Return the score of a cell; None while it waits for a person."""
        by_hand, extra = self.by_hand.get(name, (None, None))
        score = self.automatic[name] if by_hand is None else by_hand
        return None if score is None else score + (extra or 0.0)

    def total(self) -> float:
        """Return the score of the notebook, lateness taken off."""
        return sum(self.score(name) or 0.0 for name in self.automatic) - (self.penalty or 0.0)

    def share(self) -> float | None:
        """Return the total as a share of the points that are marked; None where none are."""
        return share_of(self.total(), sum(self.points.values()), self.waiting(), self.held())

    def waiting(self) -> float:
        """Return the points of the cells that a person still has to look at."""
        return sum(self.points[name] for name in self.waits)

    def held(self) -> float:
        """Return the points that these cells have already, from before they changed."""
        return sum(self.score(name) or 0.0 for name in self.waits)

    def unmarked(self) -> list[str]:
        """Return the cells that nobody has given a score yet."""
        return [name for name in self.automatic if self.score(name) is None]

    def again(self) -> list[str]:
        """Return the cells that were marked by hand and have to be looked at again."""
        return [name for name in self.waits if name in self.by_hand]

    def comment(self, name: str) -> str | None:
        return self.comments_by_hand.get(name) or self.comments.get(name)


def share_of(score: float, points: float, waiting: float, held: float) -> float | None:
    """Return a score as a share of the points that are marked; None where none are.

    Of the `points`, those `waiting` for a person are not marked, though the score has `held` of
    them. The means on the terminal and in the class report are of these shares; a broken file has
    none.
    """
    marked = points - waiting
    return max(0.0, score - held) / marked if marked > 0 else None


@dataclass(frozen=True)
class Task:
    """One submission to grade.

    `marks` holds its marks in the gradebook, `ran` the result of its last run, if there was one.
    `secret` is the course's, which a student's copy lacks. `alone` says that no other submission is
    graded meanwhile. A worker refuses it if its own grader is not the `grader`.
    """

    submission: Submission
    wall: bool
    secret: bytes = b""
    marks: Marks = field(default_factory=Marks)
    ran: bytes = b""
    alone: bool = False
    grader: str = ""


@dataclass(frozen=True)
class Entry:
    """The facts on which a submission was graded, and the outcome.

    `graded` is a digest of all that decided its scores and its page. `earlier`: the rubrics of an
    earlier version of the lesson judged it. `broken`: a problem kept every exercise from being
    judged. Other versions of the grader may not have kept all of it.
    """

    graded: str = ""
    problem: str = ""
    seconds: float = 0.0
    earlier: bool = False
    broken: bool = False


@dataclass(frozen=True)
class Graded:
    """One submission graded: its notebook, its new `marks`, and its page, which shows them.

    `entry` is still without what the coordinator knows. `ran` is empty where nothing could be run.
    `fault` is the traceback of a judge that failed.
    """

    notebook: bytes
    entry: Entry
    marks: Marks = field(default_factory=Marks)
    page: bytes = b""
    ran: bytes = b""
    fault: str = ""


@dataclass(frozen=True)
class Done:
    """The outcome of one submission. `problem` is what a teacher should know.

    FAILED: it has no score. UNCHANGED: it was graded before, by the same rules.
    """

    place: Place
    outcome: str
    problem: str = ""
    earlier: bool = False


def submissions(root: Path, lessons: list[Lesson], student: str | None) -> list[Place]:
    """Return the student and lesson of every folder submitted/STUDENT/LESSON, in order.

    Raises:
        CourseError: no such student handed anything in, or nobody did.
    """
    folder = root / "submitted"
    students = {path.name: path.name for path in sorted(folder.glob("*")) if path.is_dir()}
    chosen = students if student is None else [pick("student", student, students)]
    found = [
        Place(s, lesson)
        for lesson in lessons
        for s in chosen
        if (folder / s / lesson.name).is_dir()
    ]
    if not found:
        names = ", ".join(lesson.name for lesson in lessons)
        raise CourseError(
            f"nothing to grade: no folder {folder}/STUDENT/LESSON for {names}. Collect it first: "
            "autograde collect LESSON DOWNLOAD.zip"
        )
    return found


@contextmanager
def graded_notebook(place: Place) -> Iterator[Any]:
    """Read a graded notebook as plain data; None where there is none.

    Raises:
        CourseError: it lacks what the block looks for, so grading has not written it.
    """
    student, lesson = place
    path = lesson.root / "autograded" / student / lesson.name / f"{lesson.notebook}.ipynb"
    try:
        yield json.loads(path.read_bytes()) if path.is_file() else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            f"{path} is not a notebook that `autograde grade` wrote ({error!r}). Grade it again: "
            f"autograde grade {lesson.name} --student {student} --regrade"
        ) from error
