"""All that the report counts over the rows of a class."""

from collections import Counter, defaultdict
from statistics import fmean
from typing import NamedTuple

from autograde.course.lesson_files import read_built
from autograde.course.lessons import Lesson
from autograde.grading.feedback import page_of
from autograde.report.classdata import BLANK, RIGHT, SCORED, WRONG, ClassData, Row

MOST_TOPICS = 3
SOLVED, PARTLY, NO_POINTS, NOT_TRIED = "solved", "partly", "no points", "not tried"
OUTCOMES = (SOLVED, PARTLY, NO_POINTS, NOT_TRIED)


def answers(data: ClassData) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each exercise or question and student; a broken file has no exercises."""
    broken = {student.name for student in data.students if student.broken}
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in data.rows:
        if not (row.line and row.student in broken):
            found[row.exercise, row.student].append(row)
    return found


def count(data: ClassData) -> Counter[tuple[str, str, str]]:
    """Count outcomes of exercises, states of written answers, and states of lines.

    Each is counted by exercise, line and outcome or state; only lines have a line. Lines are
    counted over the students who have them and whose answers were judged.
    """
    outcomes = ((name, "", _outcome(rows)) for (name, _), rows in answers(data).items())
    lines = (row for row in data.rows if row.line and row.student in data.judged)
    return Counter(outcomes) + Counter((row.exercise, row.line, row.state) for row in lines)


def _outcome(rows: list[Row]) -> str:
    states = {row.state for row in rows}
    if not rows[0].line:
        return rows[0].state
    if states == {RIGHT}:
        return SOLVED
    if states == {BLANK}:
        return NOT_TRIED
    return PARTLY if any(row.points for row in rows) else NO_POINTS


def means(data: ClassData) -> dict[str, float]:
    """Return the mean share of the points, by exercise, and by question over what is scored."""
    shares: dict[str, list[float]] = defaultdict(list)
    for (name, _), rows in answers(data).items():
        if rows[0].line or rows[0].state == SCORED:
            shares[name].append(sum(row.points for row in rows) / sum(row.worth for row in rows))
    return {name: fmean(found) for name, found in shares.items()}


def scores_given(data: ClassData) -> dict[str, list[tuple[float, int]]]:
    """Count the written answers with each score, by question, the highest score first."""
    found: dict[str, Counter[float]] = defaultdict(Counter)
    for row in data.rows:
        if row.state == SCORED:
            found[row.exercise][row.points] += 1
    return {name: sorted(counts.items(), reverse=True) for name, counts in found.items()}


class Topic(NamedTuple):
    """A misconception, or a rubric line, which has no `hint`."""

    exercise: str
    what: str
    hint: str


def misconceptions(data: ClassData) -> list[tuple[Topic, int]]:
    """Return each recognised misconception and how many students have it, the commonest first."""
    found = {
        (row.student, Topic(row.exercise, each.belief, each.hint)): None
        for row in data.rows
        for each in row.beliefs
    }
    return Counter(topic for _, topic in found).most_common()


def teach_again(data: ClassData) -> list[tuple[Topic, list[Row]]]:
    """Return the misconceptions and rubric lines that cost the class most, with the wrong lines.

    A line that a misconception explains counts for the misconception. An exercise that builds on
    one that is wrong does not count: its own lines may be right.
    """
    needs = {exercise.name: exercise.needs for exercise in data.lesson.exercises}
    not_right = {(row.student, row.exercise) for row in data.rows if row.state != RIGHT}
    lost: dict[Topic, list[Row]] = defaultdict(list)
    for row in data.rows:
        built_on = {(row.student, name) for name in needs.get(row.exercise, ())}
        if row.state == WRONG and not_right.isdisjoint(built_on):
            what = (row.beliefs[0].belief, row.beliefs[0].hint) if row.beliefs else (row.line, "")
            lost[Topic(row.exercise, *what)].append(row)
    return sorted(lost.items(), key=lambda item: -sum(row.worth for row in item[1]))[:MOST_TOPICS]


def parts_of(lesson: Lesson) -> dict[str, str]:
    """Return the heading above each exercise in the notebook that students have."""
    page = page_of(read_built(lesson.released_notebook))
    return {item.name: item.part.title for item in page.graded if item.part}


def talk_to(data: ClassData) -> dict[str, list[tuple[str, str]]]:
    """Return what happened, and to whom, each with a reason where there is more to say."""
    stopped = [each for each in data.students if each.problem]
    return {
        "without a submission here": [(student, "") for student in data.absent],
        "submitted a broken file": [(s.name, s.problem) for s in stopped if s.broken],
        "have a notebook that could not be graded whole": [
            (s.name, s.problem) for s in stopped if not s.broken
        ],
    }
