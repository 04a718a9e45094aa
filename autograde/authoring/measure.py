"""Measure how far apart right answers lie, line by line: the tolerances that grading uses.

They are not guessed. The reference in float32 and in float64 and every right variant show, over
many seeds, how far apart right answers lie, and whether a line can be guessed.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import repeat
from math import floor, log10, prod, sqrt
from typing import TypeVar

from autograde.authoring import expected
from autograde.course.lesson_files import read_measured
from autograde.course.lessons import CourseError, Exercise, Lesson
from autograde.files import write_whole
from autograde.grading.running.reference import (
    Lines,
    Measured,
    Program,
    load,
    right_recording,
)
from autograde.rubric.checks import Checked
from autograde.rubric.judge import stop_in_words
from autograde.rubric.kinds import KINDS
from autograde.rubric.recording import Line, Recording
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.base import float_types
from autograde.values.dispatch import cast_like
from autograde.values.loaded_torch import compute_on_one_thread
from autograde.values.packing import pack

T = TypeVar("T")

MEASURED_SEEDS = range(1000, 1050)
FLOOR = 2e-6
"""The smallest tolerance: some ten roundings of float32."""
FLOOR_DOUBLE = 1e-10
"""The smallest tolerance for results in float64, far below a rounding of float32."""
SAFETY = 10
"""A tolerance is this many times the measured spread; a wrong variant is off by this many
tolerances."""
GUESSED = 0.1
"""Outcomes that are guessed right more often than this could be said without computing them."""
WIDEST = 1e-3
"""Right answers further apart than this do not agree."""


def measure(
    lesson: Lesson, named: tuple[Exercise, ...] = (), seeds: Sequence[int] = MEASURED_SEEDS
) -> None:
    """Write the tolerance of each line of a lesson, or of some of its exercises, to its file."""
    exercises = named or lesson.exercises
    found = for_each_exercise(partial(_measure, seeds=seeds), lesson, exercises)
    lines = read_measured(lesson) | {
        exercise.name: of_lines for exercise, of_lines in zip(exercises, found, strict=True)
    }
    tolerances = {each.name: lines[each.name] for each in lesson.exercises if each.name in lines}
    text = json.dumps(tolerances, indent=2, ensure_ascii=False) + "\n"
    write_whole(lesson.tolerance_file.resolve(), text.encode())


def for_each_exercise(
    find: Callable[[Lesson, Exercise], T], lesson: Lesson, exercises: tuple[Exercise, ...]
) -> list[T]:
    """Return a function's result for each exercise, computed with one process a core."""
    with ProcessPoolExecutor(initializer=compute_on_one_thread) as pool:
        return list(pool.map(find, repeat(lesson), exercises))


def _measure(lesson: Lesson, exercise: Exercise, seeds: Sequence[int]) -> Lines:
    reference = load(lesson)
    first = right_recording(reference, exercise, PRACTICE_SEED)
    expected.must_fit(first)
    spread = {line.name: 0.0 for line in first.lines}
    outcomes: dict[str, list[list[bytes]]] = {line.name: [] for line in first.lines}
    for seed in seeds:
        wanted = right_recording(reference, exercise, seed)
        for line in wanted.lines:
            kept = [KINDS[line.kind].kept(case.outcome) for case in line.cases]
            outcomes[line.name].append([pack([each.error, each.value]) for each in kept])
        for name, distance in _spread(reference, exercise, seed, wanted).items():
            spread[name] = max(spread[name], distance)
    return {
        line.name: Measured(
            tolerance=_tolerance(line, spread[line.name]),
            claim=KINDS[line.kind].claim or _can_be_guessed(line, outcomes[line.name]),
        )
        for line in first.lines
    }


def _can_be_guessed(line: Line, outcomes: list[list[bytes]]) -> bool:
    """Return whether a line's expected outcomes could be said without computing them.

    Args:
        outcomes: for each seed the outcome of each case, as bytes that are the same for equal ones.
    """
    if isinstance(KINDS[line.kind], Checked):
        return False  # many results are right; the check itself says whether it is a claim
    return prod(_chance(of_case) for of_case in zip(*outcomes, strict=True)) > GUESSED


def _chance(outcomes: Sequence[bytes]) -> float:
    """Return the chance to say a case's outcome without computing it.

    This is the share of seeds with the commonest outcome. Where several seem to be equally common,
    as yes and no do, each has an equal share; the commonest among few seeds is so by luck.
    """
    counts = Counter(outcomes)
    equal, share = 1 / len(counts), max(counts.values()) / len(outcomes)
    by_luck = 2.5 * sqrt(equal * (1 - equal) / len(outcomes))
    return equal if share <= equal + by_luck else share


def _tolerance(line: Line, spread: float) -> float:
    fixed = KINDS[line.kind].tolerance
    if fixed is not None:
        return fixed
    floats = set[str]().union(*(float_types(case.outcome.value) for case in line.cases))
    least = FLOOR_DOUBLE if floats == {"float64"} else FLOOR
    return _round_up(max(SAFETY * min(spread, WIDEST), least))


def _round_up(number: float) -> float:
    """Return the next of 1, 2, 5, 10, ... so that another machine measures the same."""
    unit = 10.0 ** floor(log10(number))
    step = next(step for step in (1, 2, 5, 10) if number <= step * unit * (1 + 1e-9))
    return float(f"{step * unit:.0e}")


def _spread(
    reference: Program, exercise: Exercise, seed: int, wanted: Recording
) -> dict[str, float]:
    """Return for each measured line the largest distance of a right answer from the reference."""
    others = [reference.record(exercise.name, seed, double=True)]
    for who, made_of in expected.right_answers(reference.lesson, exercise):
        others.append(recording := expected.record(reference, exercise, made_of, seed))
        if recording.stopped:
            why = stop_in_words(recording.stopped)
            raise CourseError(f"{exercise.name}: {who} fails. {why}")
    spread: dict[str, float] = {}
    for other in others:
        for line, same in zip(wanted.lines, other.lines, strict=True):
            kind = KINDS[line.kind]
            if kind.tolerance is not None:
                continue
            for case, mine in zip(line.cases, same.cases, strict=True):
                value = cast_like(mine.outcome.value, case.outcome.value)
                found = kind.compare(replace(mine.outcome, value=value), case).distance
                spread[line.name] = max(spread.get(line.name, 0.0), found)
    return spread
