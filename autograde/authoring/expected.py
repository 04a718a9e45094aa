"""The key of an exercise: run the reference on a seed, and known mistakes on the practice seed."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from math import inf

from autograde.authoring.variants import Variant, read_variants
from autograde.course.built import made_from
from autograde.course.lesson_files import read_measured, text_of
from autograde.course.lessons import CourseError, Exercise, Lesson
from autograde.grading.running.reference import (
    ENDLESS_SECONDS,
    Lines,
    Program,
    load,
    right_key,
    room_of_a_kernel,
)
from autograde.rubric.key import Key, Mistake
from autograde.rubric.misconceptions import failed_lines
from autograde.rubric.recording import Recording, unpack_recording
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.base import BadData
from autograde.values.packing import pack

OWN = "the lesson's own answer"


def practice_keys(lesson: Lesson, named: tuple[Exercise, ...] = ()) -> dict[str, Key]:
    """Return the keys of a lesson, or of some of its exercises, on the practice seed.

    They come by exercise, with hints and mistakes.

    Raises:
        CourseError: an exercise has no variants or no measured tolerances, or its reference
            fails; the message names them all.
    """
    today = made_from(lesson, text_of(lesson))
    return _practice_keys(lesson, named or lesson.exercises, today)


@lru_cache(maxsize=2)
def _practice_keys(lesson: Lesson, exercises: tuple[Exercise, ...], _today: str) -> dict[str, Key]:
    reference, measured = load(lesson), read_measured(lesson)
    keys, faults = {}, []
    for exercise in exercises:
        try:
            lines = measured.get(exercise.name, {})
            keys[exercise.name] = practice_key(reference, exercise, lines)
        except CourseError as error:
            faults.append(str(error))
    if faults:
        raise CourseError("\n".join(faults))
    return keys


def practice_key(reference: Program, exercise: Exercise, measured: Lines) -> Key:
    """Return the key of one exercise on the practice seed, with hints and known mistakes."""
    variants = read_variants(reference.lesson, exercise)
    key = right_key(reference, exercise, PRACTICE_SEED, measured)
    must_fit(key.expected)
    mistakes = [
        Mistake(
            variant.name,
            variant.misconception,
            variant.hint,
            failed_lines(record(reference, exercise, [variant], PRACTICE_SEED), key),
        )
        for variant in variants.wrong
    ]
    return replace(key, hints=variants.hints, mistakes=tuple(m for m in mistakes if m.belief))


def must_fit(recording: Recording) -> None:
    """Raises CourseError when what a rubric records of the reference is too large to be read."""
    try:
        unpack_recording(pack(recording))
    except BadData as error:
        raise CourseError(
            f"{recording.exercise}: what its rubric records is too large ({error}): draw smaller "
            "inputs, or let the answer return less"
        ) from error


def right_answers(lesson: Lesson, exercise: Exercise) -> Iterator[tuple[str, list[Variant]]]:
    """Yield in words every right answer besides the lesson's own, and the variants it is made of.

    The lesson's own answer is one too beside right variants of the exercises that it needs: what is
    near enough there may be too far here.
    """
    for variant in read_variants(lesson, exercise).right:
        yield f"the right variant {variant.name}", [variant]
    needed = []
    for name in exercise.needs:
        with suppress(CourseError):  # which is said where that exercise is checked
            needed.append(read_variants(lesson, lesson.exercise(name)).right)
    for ways in zip_longest(*needed):
        beside = [variant for variant in ways if variant]
        named = " and ".join(f"{variant.name} of {variant.exercise}" for variant in beside)
        yield f"{OWN}, beside {named},", beside


def record(
    reference: Program, exercise: Exercise, variants: Sequence[Variant], seed: int
) -> Recording:
    """Return what the rubric of an exercise records when variants replace the lesson's answers.

    A variant may be an endless loop that fills a list, so its memory is limited as in grading, and
    the processor time of a wrong one.

    Raises:
        CourseError: the code of one fails before anything is called.
    """
    for variant in variants:
        try:
            reference = reference.with_answer(variant.code)
        except Exception as error:
            raise CourseError(
                f"the variant {variant.name} of {variant.exercise} fails: "
                f"{type(error).__name__}: {error}"
            ) from error
    with room_of_a_kernel(reference.lesson):
        wrong = any(variant.heading != "right" for variant in variants)
        return reference.record(exercise.name, seed, cpu_seconds=ENDLESS_SECONDS if wrong else inf)
