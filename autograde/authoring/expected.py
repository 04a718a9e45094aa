"""Answer keys: run the reference and the known wrong answers on one seed."""

import hashlib
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from autograde import __version__
from autograde.authoring import program
from autograde.authoring.variants import Variant, read_variants
from autograde.course import CURRICULUM, CourseError, Exercise, Lesson
from autograde.rubric.key import Key, Wrong, pack_wrong
from autograde.rubric.lines import outcomes_of
from autograde.rubric.recording import Recording


def tolerance_file(lesson: Lesson) -> Path:
    return lesson.folder / "tolerances.json"


def read_tolerances(lesson: Lesson) -> dict[str, dict[str, float]]:
    """The measured tolerance of each line, by exercise and line; see `autograde check`."""
    path = tolerance_file(lesson)
    if not path.is_file():
        return {}
    tolerances: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return tolerances


def digest(lesson: Lesson) -> str:
    """Changes with anything that changes a lesson's keys: its text, variants, tolerances."""
    files = [
        lesson.root / CURRICULUM,
        *sorted(lesson.folder.rglob("*.py")),
        *sorted(lesson.folder.glob("*.json")),
    ]
    parts = [__version__.encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make_keys(lesson: Lesson, seed: int) -> dict[str, Key]:
    """The answer keys of a lesson for one seed, by exercise.

    Raises:
        CourseError: an exercise has no variants or no measured tolerances, or its reference
            fails; the message names them all.
    """
    return _make_keys(lesson, seed, digest(lesson))


@lru_cache(maxsize=2)
def _make_keys(lesson: Lesson, seed: int, _digest: str) -> dict[str, Key]:
    reference, tolerances = program.load(lesson), read_tolerances(lesson)
    keys, faults = {}, []
    for exercise in lesson.exercises:
        known = tolerances.get(exercise.name, {})
        try:
            keys[exercise.name] = make_key(reference, exercise, seed, known)
        except CourseError as error:
            faults.append(str(error))
    if faults:
        raise CourseError("\n".join(faults))
    return keys


def make_key(
    reference: program.Program, exercise: Exercise, seed: int, tolerances: dict[str, float]
) -> Key:
    """The answer key of one exercise for one seed, with hints and known wrong answers."""
    variants = read_variants(reference.lesson, exercise)
    key = replace(right_key(reference, exercise, seed, tolerances), hints=variants.hints)
    wrong = tuple(
        _wrong(variant, record(reference, variant, seed), key) for variant in variants.wrong
    )
    return replace(key, known=pack_wrong(wrong))


def right_key(
    reference: program.Program, exercise: Exercise, seed: int, tolerances: dict[str, float]
) -> Key:
    """The answer key of one exercise for one seed, from one run of the reference alone.

    Raises:
        CourseError: the reference fails, or a tolerance was not measured.
    """
    expected = reference.record(exercise.name, seed)
    if expected.stopped:
        raise CourseError(f"the reference of {exercise.name} fails: {expected.stopped}")
    missing = [line.name for line in expected.lines if line.name not in tolerances]
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
        expected=expected,
        tolerances=tuple(tolerances[line.name] for line in expected.lines),
        known=pack_wrong(()),
    )


def record(reference: program.Program, variant: Variant, seed: int) -> Recording:
    """What the rubric records of a variant.

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


def _wrong(variant: Variant, recording: Recording, key: Key) -> Wrong:
    outcomes = tuple(outcomes_of(recording, key))
    return Wrong(variant.name, variant.misconception, variant.hint, outcomes)
