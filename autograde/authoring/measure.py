"""Measure how far apart right answers lie, line by line: the tolerances that grading uses.

They are not guessed. The reference in float32 and in float64 and every right variant show, over
many seeds, how far apart right answers lie, and whether a line can be guessed.

Code and inputs decide them, words and points do not: two lessons with the same fingerprint of an
exercise measure the same, line by line.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import repeat
from math import floor, log10, prod, sqrt
from typing import Any, TypeVar

from autograde.authoring import expected
from autograde.authoring.variants import read_variants
from autograde.course.cells import grade_id
from autograde.course.lesson_files import read_measured, read_text
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
from autograde.rubric.names import names_of
from autograde.rubric.probes.calls import tensors_in
from autograde.rubric.recording import Line, Recording
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.base import float_types
from autograde.values.dispatch import cast_like
from autograde.values.loaded_torch import compute_on_one_thread
from autograde.values.packing import pack
from autograde.values.text import digest

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
HOW_MEASURED = (FLOOR, FLOOR_DOUBLE, SAFETY, GUESSED)
WIDEST = 1e-3
"""Right answers further apart than this do not agree."""
MEASURED_FROM = "measured from"
"""In the tolerances of a lesson: the fingerprint of each exercise. No exercise has such a name."""


def measure(
    lesson: Lesson, named: tuple[Exercise, ...] = (), seeds: Sequence[int] = MEASURED_SEEDS
) -> list[str]:
    """Write each line's tolerance to the lesson's `tolerances.json`; return what was measured.

    The named exercises are measured. If none is named, those are whose code has changed since.
    """
    measure_one = partial(_measure, seeds=seeds, always=bool(named))
    found = dict(for_each_exercise(measure_one, lesson, named or lesson.exercises))
    before = read_measured(lesson)
    prints = before.get(MEASURED_FROM, {}) | {name: new for name, (new, _, _) in found.items()}
    lines = before | {name: new for name, (_, new, _) in found.items()}
    names = [each.name for each in lesson.exercises if each.name in lines]
    tolerances: dict[str, Any] = {name: lines[name] for name in names}
    tolerances[MEASURED_FROM] = {name: prints[name] for name in names if name in prints}
    text = json.dumps(tolerances, indent=2, ensure_ascii=False) + "\n"
    path = lesson.tolerance_file
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path.resolve(), text.encode())
    return [name for name, (_, _, measured) in found.items() if measured]


def for_each_exercise(
    find: Callable[[Lesson, Exercise], T], lesson: Lesson, exercises: tuple[Exercise, ...]
) -> list[T]:
    """Return a function's result for each exercise, computed with one process a core."""
    with ProcessPoolExecutor(initializer=compute_on_one_thread) as pool:
        return list(pool.map(find, repeat(lesson), exercises))


def _measure(
    lesson: Lesson, exercise: Exercise, seeds: Sequence[int], *, always: bool
) -> tuple[str, tuple[str, Lines, bool]]:
    """Return the exercise, its fingerprint and its lines, and whether these were measured now.

    Where only words have changed, a line keeps what was measured of the line in its place.
    """
    reference = load(lesson)
    first = right_recording(reference, exercise, PRACTICE_SEED)
    expected.must_fit(first)
    made_from = fingerprint(reference, exercise, first, (seeds, *HOW_MEASURED))
    measured = read_measured(lesson)
    before = [*measured.get(exercise.name, {}).values()]
    unchanged = measured.get(MEASURED_FROM, {}).get(exercise.name) == made_from
    if unchanged and not always and len(before) == len(first.lines):
        lines = dict(zip((line.name for line in first.lines), before, strict=True))
        return exercise.name, (made_from, lines, False)
    return exercise.name, (made_from, _measure_lines(reference, exercise, first, seeds), True)


def _measure_lines(
    reference: Program, exercise: Exercise, first: Recording, seeds: Sequence[int]
) -> Lines:
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


def fingerprint(reference: Program, exercise: Exercise, first: Recording, how: object) -> str:
    """Return a digest of the code that is run to measure an exercise, and of the files it names.

    Args:
        first: what the reference records on one seed.
        how: the numbers by which it is measured.
    """
    words = {line.name for line in first.lines}
    variants = read_variants(reference.lesson, exercise).right
    needed = _needed(reference.lesson, exercise)
    facts: list[Any] = [
        [_code(text, words) for text in needed],
        sorted(_code(variant.code) for variant in variants),
        [_shape(line) for line in first.lines],
        repr(how),
        *(
            content.hex()
            for name, content in reference.files
            if any(name in text for text in needed)
        ),
    ]
    return digest(json.dumps(facts))[:16]


def _needed(lesson: Lesson, exercise: Exercise) -> list[str]:
    """Return the named code cells that an exercise needs, itself and its rubric among them."""
    cells = {
        name: cell.source
        for cell in read_text(lesson).cells
        if cell.cell_type == "code" and (name := grade_id(cell))
    }
    rubrics = {each.rubric_cell for each in lesson.exercises}
    found = {exercise.name, exercise.rubric_cell} & cells.keys()
    wanted = frozenset[str]()
    while True:
        wanted = wanted.union(*(names_of(cells[name]).used for name in found))
        binding = {n for n in cells.keys() - rubrics - found if names_of(cells[n]).bound & wanted}
        if not binding:
            return [cells[name] for name in cells if name in found]
        found |= binding


class _WithoutWords(ast.NodeTransformer):
    """Blanks the sentences of a rubric and takes docstrings away."""

    def __init__(self, words: AbstractSet[str]) -> None:
        self.words = words

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if node.value in self.words else node


def _code(text: str, words: AbstractSet[str] = frozenset()) -> str:
    """Return what Python reads in a cell, without comments, docstrings and these words."""
    return ast.unparse(_WithoutWords(words).visit(ast.parse(text)))


def _shape(line: Line) -> list[object]:
    """Return the kind of a line, and the types and sizes of its inputs."""
    return [
        line.kind,
        [[(str(t.dtype), [*t.shape]) for t in tensors_in(case.before)] for case in line.cases],
    ]
