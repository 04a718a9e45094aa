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
from typing import Any, TypeVar

from autograde.authoring import expected
from autograde.authoring.fingerprint import fingerprint
from autograde.authoring.variants import Variants, read_variants
from autograde.course import Exercise, Lesson
from autograde.grading.running.reference import (
    Lines,
    Measured,
    Program,
    load,
    must_fit,
    right_recording,
)
from autograde.rubric.kinds import KINDS, Checked
from autograde.rubric.recording import Line, Outcome, Recording
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.dispatch import cast_like, float_types
from autograde.values.loaded import compute_on_one_thread
from autograde.values.packing import pack

T = TypeVar("T")

MEASURED_SEEDS = range(1000, 1050)
FLOOR = 2e-6
"""The smallest tolerance: some ten roundings of float32."""
FLOOR_DOUBLE = 1e-10
"""The same for results in float64, far below a rounding of float32."""
SAFETY = 10
"""Tolerance over measured spread, and the least margin of a wrong variant over the tolerance."""
GUESSED = 0.1
"""Outcomes that are guessed right more often than this could be said without computing them."""
HOW_MEASURED = (MEASURED_SEEDS, FLOOR, FLOOR_DOUBLE, SAFETY, GUESSED)
WIDEST = 1e-3
"""Right answers further apart than this do not agree."""


def measure(lesson: Lesson, named: tuple[Exercise, ...] = ()) -> list[str]:
    """Write each line's tolerance to the lesson's `tolerances.json`; return what was measured.

    The named exercises are measured. If none is named, those are whose code has changed since.
    """
    measure_one = partial(_measure, always=bool(named))
    found = dict(for_each_exercise(measure_one, lesson, named or lesson.exercises))
    before, prints = expected.read_tolerances(lesson), expected.read_fingerprints(lesson)
    tolerances: dict[str, Any] = {}
    for exercise in lesson.exercises:
        name = exercise.name
        if name in found:
            prints[name], tolerances[name], _ = found[name]
        elif name in before:
            tolerances[name] = before[name]
    kept = {name: prints[name] for name in tolerances if name in prints}
    tolerances[expected.MEASURED_FROM] = kept
    text = json.dumps(tolerances, indent=2, ensure_ascii=False) + "\n"
    path = lesson.tolerance_file
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return [name for name, (_, _, measured) in found.items() if measured]


def for_each_exercise(
    find: Callable[[Lesson, Exercise], T], lesson: Lesson, exercises: tuple[Exercise, ...]
) -> list[T]:
    """Return a function's result for each exercise, computed with one process a core."""
    with ProcessPoolExecutor(initializer=compute_on_one_thread) as pool:
        return list(pool.map(find, repeat(lesson), exercises))


def _measure(
    lesson: Lesson, exercise: Exercise, *, always: bool
) -> tuple[str, tuple[str, Lines, bool]]:
    """Return the exercise, its fingerprint and its lines, and whether these were measured now.

    Where only words have changed, a line keeps what was measured of the line in its place.
    """
    reference = load(lesson)
    first = right_recording(reference, exercise, PRACTICE_SEED)
    must_fit(first)
    made_from = fingerprint(reference, exercise, first, HOW_MEASURED)
    before = [*expected.read_tolerances(lesson).get(exercise.name, {}).values()]
    unchanged = expected.read_fingerprints(lesson).get(exercise.name) == made_from
    if unchanged and not always and len(before) == len(first.lines):
        lines = dict(zip((line.name for line in first.lines), before, strict=True))
        return exercise.name, (made_from, lines, False)
    return exercise.name, (made_from, _measure_lines(reference, exercise, first), True)


def _measure_lines(reference: Program, exercise: Exercise, first: Recording) -> Lines:
    variants = read_variants(reference.lesson, exercise)
    spread = {line.name: 0.0 for line in first.lines}
    outcomes: dict[str, list[list[bytes]]] = {line.name: [] for line in first.lines}
    for seed in MEASURED_SEEDS:
        wanted = right_recording(reference, exercise, seed)
        for line in wanted.lines:
            kept = KINDS[line.kind].kept
            outcomes[line.name].append([_packed(kept(case.outcome)) for case in line.cases])
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
