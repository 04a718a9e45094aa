"""The grader's own test: every right variant passes, every wrong one fails by a wide margin.

Tolerances are measured, not guessed: the reference in float32 and in float64 and every right
variant show, over many seeds, how far apart right answers lie.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from math import floor, inf, log10, prod, sqrt
from typing import TypeVar

import torch

from autograde.authoring import expected
from autograde.authoring.variants import Variant, Variants, read_variants
from autograde.course import Exercise, Lesson
from autograde.grading.running.reference import (
    Lines,
    Measured,
    Program,
    load,
    must_fit,
    right_key,
    right_recording,
)
from autograde.rubric.judge import judge
from autograde.rubric.key import Key
from autograde.rubric.kinds import KINDS, Checked, outcomes_of, wrong_cases
from autograde.rubric.recording import Line, Outcome, Recording
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.dispatch import cast_like, float_types
from autograde.values.packing import pack

T = TypeVar("T")

MEASURED_SEEDS = range(1000, 1050)
CHECKED_SEEDS = (PRACTICE_SEED, 1, 2, 3)
FLOOR = 2e-6
"""The smallest tolerance: some ten roundings of float32."""
FLOOR_DOUBLE = 1e-10
"""The same for results in float64, far below a rounding of float32."""
SAFETY = 10
"""Tolerance over measured spread, and the least margin of a wrong variant over the tolerance."""
CHECK_MARGIN = 2
"""The least margin on a line of a check, whose limit is already six standard errors."""
FEWEST_RIGHT, FEWEST_WRONG = 2, 4
"""The fewest variants that an exercise needs before release. A draft builds with fewer."""
GUESSED = 0.1
"""Outcomes that are guessed right more often than this could be said without computing them."""
ALL_GUESSED = (
    "every line could be guessed, so none counts in grading: give one more cases, or inputs on "
    "which more results are possible, then run autograde check --measure"
)
WIDEST = 1e-3
"""Right answers further apart than this do not agree."""
MOST_EARNED = 0.5
"""The share of the points that an answer may earn at most when it misses the idea."""


@dataclass(frozen=True)
class Result:
    """The findings on one exercise; `faults` is empty when all is well.

    `earned` says which wrong variants earn something, the most first.
    """

    exercise: str
    points: float
    lines: int
    right: int
    wrong: int
    margin: float
    earned: str
    faults: tuple[str, ...]


def measure(lesson: Lesson) -> dict[str, Lines]:
    """Measure every line of a lesson and write `tolerances.json` beside it."""
    measured = _for_each_exercise(_measure, lesson)
    tolerances = dict(zip((e.name for e in lesson.exercises), measured, strict=True))
    text = json.dumps(tolerances, indent=2, ensure_ascii=False)
    lesson.tolerance_file.write_text(text + "\n", encoding="utf-8")
    return tolerances


def check(lesson: Lesson) -> list[Result]:
    """Judge every variant of a lesson on several seeds."""
    return _for_each_exercise(check_exercise, lesson)


def _for_each_exercise(find: Callable[[Lesson, Exercise], T], lesson: Lesson) -> list[T]:
    """Return a function's result for each exercise, computed with one process a core."""
    with ProcessPoolExecutor(initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(find, repeat(lesson), lesson.exercises))


def _measure(lesson: Lesson, exercise: Exercise) -> Lines:
    reference = load(lesson)
    variants = read_variants(lesson, exercise)
    first = right_recording(reference, exercise, PRACTICE_SEED)
    must_fit(first)
    spread = {line.name: 0.0 for line in first.lines}
    outcomes: dict[str, list[list[bytes]]] = {line.name: [] for line in first.lines}
    for seed in MEASURED_SEEDS:
        wanted = right_recording(reference, exercise, seed)
        for line in wanted.lines:
            outcomes[line.name].append([_packed(case.outcome) for case in line.cases])
        for name, distance in _spread(reference, exercise, variants, seed, wanted).items():
            spread[name] = max(spread[name], distance)
    return {
        line.name: Measured(
            tolerance=_tolerance(line, spread[line.name]),
            claim=KINDS[line.kind].claim or _can_be_guessed(line, outcomes[line.name]),
        )
        for line in first.lines
    }


def _packed(outcome: Outcome) -> bytes:
    """Return bytes that are the same for equal outcomes."""
    return pack([outcome.error, outcome.value])


def _can_be_guessed(line: Line, outcomes: list[list[bytes]]) -> bool:
    """Return whether a line's expected outcomes could be said without computing them.

    Args:
        outcomes: for each seed the outcome of each case.
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
    reference: Program,
    exercise: Exercise,
    variants: Variants,
    seed: int,
    wanted: Recording,
) -> dict[str, float]:
    """Return for each measured line the largest distance of a right answer from the reference."""
    others = [reference.record(exercise.name, seed, double=True)]
    others += [expected.record(reference, variant, seed) for variant in variants.right]
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


def check_exercise(lesson: Lesson, exercise: Exercise) -> Result:
    """Judge every variant of one exercise on several seeds."""
    reference, variants = load(lesson), read_variants(lesson, exercise)
    measured = expected.read_tolerances(lesson).get(exercise.name, {})
    right, wrong = len(variants.right), len(variants.wrong)
    faults = []
    if right < FEWEST_RIGHT or wrong < FEWEST_WRONG:
        faults.append(
            f"{right} right and {wrong} wrong variants; before it is released it needs "
            f"{FEWEST_RIGHT} and {FEWEST_WRONG}"
        )
    margins: list[float] = [inf]
    earned = dict.fromkeys((variant.name for variant in variants.wrong), 0.0)
    for seed in CHECKED_SEEDS:
        key = right_key(reference, exercise, seed, measured)
        for variant in variants.right:
            faults += _failed_right(reference, variant, seed, key)
        for variant in variants.wrong:
            recording = expected.record(reference, variant, seed)
            margin, least = _margin(recording, key)
            margins.append(margin)
            share = judge(recording, key, trusted=True).points / exercise.points
            earned[variant.name] = max(share, earned[variant.name])
            if margin < least:
                faults.append(
                    f"wrong variant {variant.name} misses by {margin:.1f} tolerances, {least:g} "
                    f"are needed: draw larger or less friendly inputs (seed {seed})"
                )
    faults += [ALL_GUESSED] * all(key.claims)
    faults += [
        f"wrong variant {variant.name} earns {earned[variant.name]:.0%} of the points; an answer "
        f"that misses the idea earns at most {MOST_EARNED:.0%}, a near miss is marked as one"
        for variant in variants.wrong
        if variant.kind == "wrong" and earned[variant.name] > MOST_EARNED
    ]
    shares = sorted(earned.items(), key=lambda item: -item[1])
    return Result(
        exercise=exercise.name,
        points=exercise.points,
        lines=len(key.expected.lines),
        right=right,
        wrong=wrong,
        margin=min(margins),
        earned=", ".join(f"{share:.0%} {name}" for name, share in shares if share > 0),
        faults=tuple(faults),
    )


def _failed_right(reference: Program, variant: Variant, seed: int, key: Key) -> list[str]:
    guessed = all(key.claims)  # which is said once
    verdict = judge(expected.record(reference, variant, seed), key, trusted=guessed)
    return [
        f"right variant {variant.name} fails “{line.name}”: "
        f"{line.failure.sentence if line.failure else verdict.note} (seed {seed})"
        for line in verdict.lines
        if not line.passed
    ]


def _margin(recording: Recording, key: Key) -> tuple[float, float]:
    """Return a wrong variant's margin, and the least margin allowed.

    The margin is the distance, in tolerances, on the line that it misses most clearly.
    """
    margin, least = 0.0, float(SAFETY)
    outcomes = outcomes_of(recording, key.expected)
    for line, found, tolerance in zip(key.expected.lines, outcomes, key.tolerances, strict=True):
        distances = [each.distance for _, _, each in wrong_cases(line, found, tolerance)]
        times = max(distances, default=0) / max(tolerance, 1e-12)
        if times > margin:
            margin = times
            least = float(CHECK_MARGIN if isinstance(KINDS[line.kind], Checked) else SAFETY)
    return margin, least
