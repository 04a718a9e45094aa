"""The grader's own test: every right variant passes, every wrong one fails by a wide margin.

Tolerances are measured, not guessed: the reference in float32 and in float64 and every right
variant, over many seeds, say how far right answers lie apart.
"""

import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import floor, inf, isinf, log10
from typing import Any

from torch import Tensor

from autograde.authoring import expected, program
from autograde.authoring.variants import Variant, Variants, read_variants
from autograde.course import Exercise, Lesson
from autograde.rubric.judge import judge
from autograde.rubric.key import Key, Wrong
from autograde.rubric.lines import difference_of, is_claim
from autograde.rubric.packing import Plain
from autograde.rubric.recording import Line, Outcome
from autograde.rubric.session import PRACTICE_SEED

MEASURED_SEEDS = range(1000, 1050)
CHECKED_SEEDS = (PRACTICE_SEED, 1, 2, 3)
FLOOR = 2e-6
"""The smallest tolerance: some ten roundings of float32."""
SAFETY = 10
"""Tolerance over measured spread, and the least margin of a wrong variant over the tolerance."""
CHECK_MARGIN = 2
"""The least margin on a `check` line, whose limit is already six standard errors."""
FEWEST_RIGHT, FEWEST_WRONG = 2, 4
"""So many variants an exercise needs before it is given to students; a draft builds with fewer."""
WIDEST = 1e-3
"""Right answers further apart than this do not agree."""


@dataclass(frozen=True)
class Checked:
    """What `check` found for one exercise; `faults` is empty when all is well."""

    exercise: str
    points: float
    lines: int
    right: int
    wrong: int
    margin: float
    milliseconds: float
    faults: tuple[str, ...]


def measure(lesson: Lesson) -> dict[str, dict[str, float]]:
    """Measure the tolerance of every line and write `tolerances.json` beside the lesson."""
    with ProcessPoolExecutor() as pool:
        measured = pool.map(_measure, [(lesson, exercise) for exercise in lesson.exercises])
        tolerances = dict(zip((e.name for e in lesson.exercises), measured, strict=True))
    text = json.dumps(tolerances, indent=2, ensure_ascii=False)
    expected.tolerance_file(lesson).write_text(text + "\n", encoding="utf-8")
    return tolerances


def check(lesson: Lesson) -> list[Checked]:
    """Judge every variant of a lesson on several seeds."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(check_exercise, [(lesson, exercise) for exercise in lesson.exercises]))


def _measure(job: tuple[Lesson, Exercise]) -> dict[str, float]:
    lesson, exercise = job
    reference = program.load(lesson)
    variants = read_variants(lesson, exercise)
    lines = reference.record(exercise.name, PRACTICE_SEED).lines
    spread = {line.name: 0.0 for line in lines}
    if any(_is_measured(line) for line in lines):
        for seed in MEASURED_SEEDS:
            for name, distance in _spread(reference, exercise, variants, seed).items():
                spread[name] = max(spread[name], distance)
    return {line.name: _tolerance(line, spread[line.name]) for line in lines}


def _is_measured(line: Line) -> bool:
    return line.kind in ("call", "gradient") and not is_claim(line)


def _tolerance(line: Line, spread: float) -> float:
    if line.kind == "check":
        return 1.0
    if not _is_measured(line):
        return 0.0
    return _round_up(max(SAFETY * min(spread, WIDEST), FLOOR))


def _round_up(number: float) -> float:
    """The next of 1, 2, 5, 10, ... so that another machine measures the same."""
    unit = 10.0 ** floor(log10(number))
    step = next(step for step in (1, 2, 5, 10) if number <= step * unit * (1 + 1e-9))
    return float(f"{step * unit:.0e}")


def _spread(
    reference: program.Program, exercise: Exercise, variants: Variants, seed: int
) -> dict[str, float]:
    wanted = reference.record(exercise.name, seed)
    others = [reference.record(exercise.name, seed, double=True)]
    others += [expected.record(reference, variant, seed) for variant in variants.right]
    spread: dict[str, float] = {}
    for other in others:
        for line, same in zip(wanted.lines, other.lines, strict=True):
            if _is_measured(line):
                distance = difference_of(line, _as(same.outcome, line.outcome)).distance
                spread[line.name] = max(spread.get(line.name, 0.0), distance)
    return spread


def _as(outcome: Outcome, like: Outcome) -> Outcome:
    return Outcome(_cast(outcome.value, like.value), outcome.error, outcome.message)


def _cast(value: Plain, like: Plain) -> Plain:
    if isinstance(value, Tensor) and isinstance(like, Tensor):
        return value.to(like.dtype)
    if isinstance(value, list | tuple) and isinstance(like, list | tuple):
        return [_cast(v, w) for v, w in zip(value, like, strict=True)]
    return value


def check_exercise(job: tuple[Lesson, Exercise]) -> Checked:
    """Judge every variant of one exercise on several seeds."""
    lesson, exercise = job
    reference = program.load(lesson)
    variants = read_variants(lesson, exercise)
    tolerances = expected.read_tolerances(lesson).get(exercise.name, {})
    faults: list[str] = []
    margins: list[float] = [inf]
    caught: set[str] = set()
    if len(variants.right) < FEWEST_RIGHT or len(variants.wrong) < FEWEST_WRONG:
        faults.append(
            f"{len(variants.right)} right and {len(variants.wrong)} wrong variants; before it is "
            f"released it needs {FEWEST_RIGHT} and {FEWEST_WRONG}"
        )
    lines: set[str] = set()
    for seed in CHECKED_SEEDS:
        key = expected.make_key(reference, exercise, seed, tolerances)
        lines |= {line.name for line in key.expected.lines}
        for variant in variants.right:
            faults += _failed_right(reference, variant, seed, key)
        for wrong in key.wrong:
            failed, margin, least = _margin(wrong, key)
            caught |= failed
            margins.append(margin)
            if margin < least:
                faults.append(f"wrong variant {wrong.name} {_misses(margin, least)} (seed {seed})")
    faults += [f"no wrong variant fails the line “{line}”" for line in sorted(lines - caught)]
    return Checked(
        exercise=exercise.name,
        points=exercise.points,
        lines=len(lines),
        right=len(variants.right),
        wrong=len(variants.wrong),
        margin=min(margins),
        milliseconds=_milliseconds(reference, exercise),
        faults=tuple(faults),
    )


def _failed_right(reference: program.Program, variant: Variant, seed: int, key: Key) -> list[str]:
    verdict = judge(expected.record(reference, variant, seed), key)
    return [
        f"right variant {variant.name} fails “{line.name}”: {line.reason} (seed {seed})"
        for line in verdict.lines
        if not line.passed
    ]


def _margin(wrong: Wrong, key: Key) -> tuple[set[str], float, float]:
    """The lines a wrong variant fails; by how many tolerances it misses the clearest one; and
    the least that this may be."""
    failed, margin, least = set(), 0.0, float(SAFETY)
    for line, outcome, tolerance in zip(
        key.expected.lines, wrong.outcomes, key.tolerances, strict=True
    ):
        distance = difference_of(line, outcome).distance
        if distance <= tolerance:
            continue
        failed.add(line.name)
        times = inf if isinf(distance) else distance / max(tolerance, 1e-12)
        if times > margin:
            margin, least = times, float(CHECK_MARGIN if line.kind == "check" else SAFETY)
    return failed, margin, least


def _misses(margin: float, least: float) -> str:
    if not margin:
        return "passes every line"
    return (
        f"misses by {margin:.1f} tolerances, {least:g} are needed: draw larger or less friendly "
        "inputs"
    )


def _milliseconds(reference: program.Program, exercise: Exercise) -> float:
    start = time.perf_counter()
    reference.record(exercise.name, PRACTICE_SEED)
    return 1000 * (time.perf_counter() - start)


def table_rows(results: list[Checked]) -> list[list[Any]]:
    """The results as rows of a table."""
    return [
        [
            r.exercise,
            f"{r.points:g}",
            r.lines,
            r.right,
            r.wrong,
            "all" if isinf(r.margin) else f"{r.margin:.0f}",
            f"{r.milliseconds:.0f}",
            len(r.faults),
        ]
        for r in results
    ]
