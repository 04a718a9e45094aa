"""A class report's advice to the teacher: topics to teach again, and students to talk to."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from autograde.course.lesson_files import read_built
from autograde.course.lessons import Lesson
from autograde.grading.feedback import page_of
from autograde.report.classdata import WRONG, ClassData, GradedSubmission, line_state
from autograde.rubric.judge import Verdict

MOST_TOPICS = 3
FALLEN = 0.25
"""A student this far below their own earlier lessons, as a share of the points, fell behind."""


@dataclass(frozen=True)
class Topic:
    """A misconception or a rubric line, how many students have it, and the points they lost.

    `hint` is empty for a line. `part` is the heading that the exercise stands under.
    """

    exercise: str
    what: str
    hint: str
    students: int
    points: float
    part: str


def teach_again(data: ClassData) -> list[Topic]:
    """Return the misconceptions and rubric lines that cost the class most, costliest first.

    A line that a misconception explains counts for the misconception. An exercise that builds on
    one that is wrong does not count: its own lines may be right.
    """
    lost: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for submission in data.submissions:
        for verdict in _own_mistakes(data.lesson, submission):
            for what, hint, points in _costs(verdict):
                lost[verdict.exercise, what, hint].append(points)
    dearest = sorted(lost.items(), key=lambda item: -sum(item[1]))[:MOST_TOPICS]
    parts = parts_of(data.lesson)
    return [
        Topic(exercise, what, hint, len(points), sum(points), parts.get(exercise, ""))
        for (exercise, what, hint), points in dearest
    ]


def _own_mistakes(lesson: Lesson, submission: GradedSubmission) -> Iterator[Verdict]:
    verdicts = submission.verdicts
    wrong = {name for name, verdict in verdicts.items() if not verdict.passed}
    for exercise in lesson.exercises:
        if exercise.name in wrong and wrong.isdisjoint(exercise.needs):
            yield verdicts[exercise.name]


def _costs(verdict: Verdict) -> Iterator[tuple[str, str, float]]:
    """Yield each misconception and each unexplained wrong line: words, hint, points lost."""
    wrong = {line.name: line.worth for line in verdict.lines if line_state(verdict, line) == WRONG}
    for belief in verdict.beliefs:
        yield belief.belief, belief.hint, sum(wrong.pop(name, 0.0) for name in belief.lines)
    for name, worth in wrong.items():
        yield name, "", worth


def parts_of(lesson: Lesson) -> dict[str, str]:
    """Return the heading above each exercise in the notebook that students have."""
    page = page_of(read_built(lesson.released_notebook))
    return {item.name: item.part.title for item in page.graded if item.part}


def talk_to(data: ClassData) -> dict[str, list[tuple[str, str]]]:
    """Return what students did, and who did it, each with a reason where there is more to say."""
    stopped = [each for each in data.submissions if each.problem]
    found = [(each, _behind(data, each)) for each in data.submissions if not each.broken]
    return {
        "without a submission here": [(student, "") for student in data.absent],
        "submitted a broken file": [(s.student, s.problem) for s in stopped if s.broken],
        "have a notebook that could not be graded whole": [
            (s.student, s.problem) for s in stopped if not s.broken
        ],
        "fell behind": [(each.student, reason) for each, reason in found if reason],
        "handed in the same file as others": _same_files(data),
    }


def _same_files(data: ClassData) -> list[tuple[str, str]]:
    """Return who handed in a file in which something was tried, and others who did; by file."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for submission in data.judged:
        if submission.file:
            by_file[submission.file].append(submission.student)
    return [
        (student, "as " + ", ".join(data.name_of(each) for each in students if each != student))
        for students in by_file.values()
        if len(students) > 1
        for student in students
    ]


def _behind(data: ClassData, submission: GradedSubmission) -> str:
    """Return the reason that a student counts as behind, or ""."""
    verdicts = submission.verdicts
    tried = sum(verdict.judged for verdict in verdicts.values())
    share = data.share(submission)
    reasons = []
    if verdicts and tried <= len(verdicts) / 2:
        reasons.append(f"tried {tried} of {len(verdicts)} exercises")
    if share is not None and submission.before is not None and share <= submission.before - FALLEN:
        reasons.append(f"{share:.0%} of the points, {submission.before:.0%} in earlier lessons")
    return "; ".join(reasons)
