"""The key of an exercise: run the reference on a seed, and known mistakes on the practice seed."""

import hashlib
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from autograde import __version__
from autograde.authoring import program
from autograde.authoring.variants import Variant, read_variants
from autograde.course import CURRICULUM, CourseError, Exercise, Lesson
from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS, Checked
from autograde.rubric.misconceptions import failed_lines
from autograde.rubric.recording import Line, Outcome, Recording
from autograde.rubric.session import PRACTICE_SEED


class Measured(TypedDict):
    """One rubric line as `autograde check --measure` found it."""

    tolerance: float
    constant: bool


Lines = dict[str, Measured]


def tolerance_file(lesson: Lesson) -> Path:
    return lesson.folder / "tolerances.json"


def read_tolerances(lesson: Lesson) -> dict[str, Lines]:
    """Return what was measured of each line, by exercise and line; see `autograde check`."""
    path = tolerance_file(lesson)
    if not path.is_file():
        return {}
    measured: dict[str, Lines] = json.loads(path.read_text(encoding="utf-8"))
    return measured


def digest(lesson: Lesson) -> str:
    """Return a digest of all that a lesson's keys are made from: text, variants, tolerances."""
    files = [
        lesson.root / CURRICULUM,
        *sorted(lesson.folder.glob("*.py")),
        *sorted(lesson.folder.glob("variants/*.md")),
        *sorted(lesson.folder.glob("*.json")),
    ]
    parts = [__version__.encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def practice_keys(lesson: Lesson) -> dict[str, Key]:
    """Return the keys of a lesson on the practice seed, by exercise, with hints and mistakes.

    Raises:
        CourseError: an exercise has no variants or no measured tolerances, or its reference
            fails; the message names them all.
    """
    return _practice_keys(lesson, digest(lesson))


@lru_cache(maxsize=2)
def _practice_keys(lesson: Lesson, _digest: str) -> dict[str, Key]:
    reference, measured = program.load(lesson), read_tolerances(lesson)
    keys, faults = {}, []
    for exercise in lesson.exercises:
        try:
            lines = measured.get(exercise.name, {})
            keys[exercise.name] = practice_key(reference, exercise, lines)
        except CourseError as error:
            faults.append(str(error))
    if faults:
        raise CourseError("\n".join(faults))
    return keys


def practice_key(reference: program.Program, exercise: Exercise, measured: Lines) -> Key:
    """Return the key of one exercise on the practice seed, with hints and known mistakes."""
    variants = read_variants(reference.lesson, exercise)
    key = right_key(reference, exercise, PRACTICE_SEED, measured)
    mistakes = [
        Mistake(
            variant.name,
            variant.misconception,
            variant.hint,
            failed_lines(record(reference, variant, PRACTICE_SEED), key),
        )
        for variant in variants.wrong
    ]
    return replace(key, hints=variants.hints, mistakes=tuple(m for m in mistakes if m.belief))


def right_key(reference: program.Program, exercise: Exercise, seed: int, measured: Lines) -> Key:
    """Return the key of one exercise for one seed, from one run of the reference alone.

    Raises:
        CourseError: the reference fails, or a line was not measured.
    """
    expected = reference.record(exercise.name, seed)
    if expected.stopped:
        raise CourseError(
            f"the reference of {exercise.name} fails: {expected.stopped.error}: "
            f"{expected.stopped.message}"
        )
    missing = [line.name for line in expected.lines if line.name not in measured]
    if missing:
        raise CourseError(
            f"no tolerance was measured for {exercise.name}: {', '.join(missing)}. "
            f"Run: autograde check --measure {reference.lesson.name}"
        )
    return Key(
        exercise=exercise.name,
        points=exercise.points,
        needs=exercise.needs,
        hints=(),
        expected=replace(expected, lines=tuple(map(_without_examples, expected.lines))),
        tolerances=tuple(measured[line.name]["tolerance"] for line in expected.lines),
        claims=tuple(
            measured[line.name]["constant"] or KINDS[line.kind].claims(line.cases)
            for line in expected.lines
        ),
    )


def _without_examples(line: Line) -> Line:
    """Leave out the reference's own result where several are right: it would give one away."""
    if not isinstance(KINDS[line.kind], Checked):
        return line
    return replace(line, cases=tuple(replace(case, outcome=Outcome()) for case in line.cases))


def record(reference: program.Program, variant: Variant, seed: int) -> Recording:
    """Return what the rubric records of a variant.

    Raises:
        CourseError: its code fails before anything is called.
    """
    try:
        answered = reference.with_answer(variant.code)
    except Exception as error:
        raise CourseError(
            f"the variant {variant.name} of {variant.exercise} fails: "
            f"{type(error).__name__}: {error}"
        ) from error
    return answered.record(variant.exercise, seed)
