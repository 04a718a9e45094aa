"""What travels between the coordinator and a worker: plain data, and the calls by name.

The coordinator imports neither torch nor what renders pages, so the calls import late.
"""

from dataclasses import dataclass, field, replace

from autograde import __version__
from autograde.course import CourseError
from autograde.grading.handed_in import HandedIn
from autograde.grading.versions import Version
from autograde.sandbox import template
from autograde.sandbox.wall import missing


@dataclass(frozen=True)
class Marks:
    """What the gradebook holds of one submission, as plain values by the names of its cells.

    `by_hand` has scores and extra credits, `comments` what the grader said by itself, `student`
    the name that the feedback page shows.
    """

    automatic: dict[str, float | None] = field(default_factory=dict)
    by_hand: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str | None] = field(default_factory=dict)
    comments_by_hand: dict[str, str | None] = field(default_factory=dict)
    penalty: float | None = None
    extension: str = "None"
    student: str = ""

    def score(self, name: str) -> float | None:
        """The score of a cell; None while it waits for a person."""
        by_hand, extra = self.by_hand[name]
        score = self.automatic[name] if by_hand is None else by_hand
        return None if score is None else score + (extra or 0.0)

    def total(self) -> float:
        """The score of the notebook, lateness taken off."""
        return sum(self.score(name) or 0.0 for name in self.automatic) - (self.penalty or 0.0)

    def comment(self, name: str) -> str | None:
        by_hand = self.comments_by_hand[name]
        return self.comments[name] if by_hand is None else by_hand

    def graded_again(self, scores: "Scores") -> "Marks":
        """These marks once other automatic scores and comments are saved."""
        return replace(
            self,
            automatic=scores.automatic,
            by_hand={name: self.by_hand.get(name, (None, None)) for name in scores.automatic},
            points=scores.points,
            comments=scores.comments,
            comments_by_hand={name: self.comments_by_hand.get(name) for name in scores.comments},
        )


@dataclass(frozen=True)
class Scores:
    """What grading says of one notebook, by the names of its cells.

    An automatic score is None where a person is to grade. `written` are digests of the answers in
    words.
    """

    automatic: dict[str, float | None]
    points: dict[str, float]
    written: dict[str, str]
    comments: dict[str, str | None]


@dataclass(frozen=True)
class Task:
    """One submission to grade.

    `marks` is what the gradebook holds of it already, `ran` what its last run gave, if there was
    one.
    """

    handed_in: HandedIn
    secret: bytes
    wall: bool
    marks: Marks = field(default_factory=Marks)
    ran: bytes = b""
    package: str = __version__


@dataclass(frozen=True)
class Graded:
    """One submission graded: its notebook, its scores, and its page, which shows these `marks`.

    `ran` is empty where nothing could be run.
    """

    notebook: bytes
    scores: Scores
    marks: Marks
    page: bytes
    ran: bytes
    problem: str
    seconds: float


@dataclass(frozen=True)
class Done:
    """What became of one submission. `problem` is what a teacher should know; `failed`: no score.

    `unchanged`: it was graded before, by the same rules, and nothing was done.
    """

    student: str
    lesson: str
    problem: str = ""
    failed: bool = False
    unchanged: bool = False


def grade(task: Task, versions: tuple[Version, ...]) -> Graded:
    """Grade a submission, made from one of these versions of its lesson.

    Raises:
        CourseError: it cannot be graded, or this process may not grade it.
    """
    require_same(task.package, task.wall)
    warm(task.wall)
    from autograde.grading import pipeline

    return pipeline.grade(task, versions)


def page(notebook: bytes, name: str, marks: Marks) -> bytes:
    """Make the page of a graded notebook anew."""
    from autograde.grading import feedback

    return feedback.page(notebook, name, marks)


def warm(wall: bool) -> None:
    """Start the template of the kernels, which takes longest, then import what grading needs."""
    if wall:
        template.current()
    from autograde.grading import pipeline  # noqa: F401


def require_same(package: str, wall: bool) -> None:
    """Raises CourseError when this process would grade by other rules than the coordinator."""
    if package != __version__:
        raise CourseError(
            f"this worker has version {__version__} of attention-notebooks, the coordinator "
            f"{package}; give all of them the same"
        )
    if wall and (problem := missing()):
        raise CourseError(f"this worker has no wall: {problem}")
