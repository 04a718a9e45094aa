"""A made-up class for the report: nothing is graded, each student solves some lines."""

import random

from autograde.course.lessons import Lesson
from autograde.report.classdata import SCORED, WAITING, ClassData, Row, Student, rows_of
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief

LINES = 8
NAMES = tuple(
    f"the line {i}, which is a sentence of the contract of this exercise" for i in range(LINES)
)
BELIEF = Belief("last", "The heads are joined at the end.", "Look at `view`.", NAMES[-1:])


def made_up(lesson: Lesson, students: int) -> ClassData:
    """A class: most submitted, some a broken file, some nothing."""
    rng = random.Random(7)  # noqa: S311 (a sample, no secret)
    handed_in = [_submission(lesson, f"s{i:05}", rng) for i in range(students)]
    rows = tuple(row for _, found in handed_in for row in found)
    absent = tuple(f"absent{i}" for i in range(students // 20))
    return ClassData(lesson, tuple(student for student, _ in handed_in), rows, absent=absent)


def _submission(lesson: Lesson, student: str, rng: random.Random) -> tuple[Student, list[Row]]:
    broken, able = rng.random() < 0.02, rng.betavariate(4, 2)
    verdicts = {}
    for exercise in lesson.exercises:
        worth = exercise.points / LINES
        tried = not broken and rng.random() < 0.5 + able
        passed = [tried and rng.random() < able for _ in range(LINES)]
        lines = tuple(
            LineVerdict(name, ok, worth * ok, worth, Failure("wrong") if tried and not ok else None)
            for name, ok in zip(NAMES, passed, strict=True)
        )
        beliefs = (BELIEF,) if tried and not passed[-1] and rng.random() < 0.5 else ()
        points = sum(line.points for line in lines)
        verdicts[exercise.name] = Verdict(
            exercise.name, points, exercise.points, lines, beliefs, attempted=tried
        )
    rows = list(rows_of(student, verdicts.values()))
    for each in lesson.written:
        state = WAITING if rng.random() < 0.3 else SCORED
        points = float(rng.randint(0, 2)) if state == SCORED else 0.0
        rows.append(Row(student, each.name, "", state, points, each.points))
    waiting = sum(row.worth for row in rows if row.state == WAITING)
    score = sum(row.points for row in rows)
    problem = "The file is not JSON, so it is not a notebook." if broken else ""
    share = None if broken else score / (lesson.points - waiting)
    about = Student(student, score, share, by_hand=waiting, problem=problem, broken=broken)
    return about, rows
