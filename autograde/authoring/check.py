"""The grader's own test: every right variant passes, every wrong one fails by a wide margin.

`autograde build` refuses what `autograde check` names, as far as the practice inputs show it. Only
a build runs the cells without a name as well.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from nbformat import NotebookNode
from rich.console import Console
from rich.table import Table

from autograde.authoring import expected, lint
from autograde.authoring.marks import students_version
from autograde.authoring.measure import MEASURED_SEEDS, SAFETY, WIDEST, for_each_exercise
from autograde.authoring.sources import source_notebook
from autograde.authoring.variants import Variant, read_variants
from autograde.course.data_files import misplaced
from autograde.course.lesson_files import read_measured
from autograde.course.lessons import CourseError, Exercise, Lesson
from autograde.grading.running.reference import Lines, Program, load, right_key
from autograde.rubric.checks import Checked
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.key import Key
from autograde.rubric.kinds import KINDS, Call, outcomes_of, wrong_cases
from autograde.rubric.recording import Recording
from autograde.rubric.session import PRACTICE_SEED

CHECKED_SEEDS = (PRACTICE_SEED, 1, 2, 3)
CHECK_MARGIN = 2
"""The least margin on a line that a check judges: the check's own limits are wide already."""
FAR = 1000
"""A margin above this is shown as such."""
FEWEST_RIGHT, FEWEST_WRONG = 2, 4
"""The fewest variants that an exercise needs before release. With fewer it is a draft: `check` and
`build` say so, and go on."""
ALL_GUESSED = (
    "every line could be guessed, so none counts in grading: draw more cases with `r.rng`, or from "
    "more inputs. A result that is the same on every seed is guessed with certainty, one of four "
    "results 1 time in 4; of yes and no draw the order, of six cases or more, half of them yes. "
    "Then run autograde check --measure"
)
NOTHING_RETURNED = (
    "every call returns None, so nothing is compared: call a helper that returns what the answer "
    "prints or changes"
)
MOST_EARNED = 0.5
"""The share of the points that an answer may earn at most when it misses the idea. A near miss made
from the lesson's own answer has the idea, and earns at least that."""
DIFFERED = SAFETY * WIDEST
"""The widest tolerance that is measured: it says that right answers do not agree."""
MOST_WATCHED = 0.2
"""The share of the points that lines may carry at most of which only the student's process saw how
they came about. The others have to show it by their results."""

Failures = dict[str, dict[str, list[str]]]
"""Why right answers fail lines: by answer, then by line, a sentence for each seed."""


@dataclass(frozen=True)
class Missed:
    """A wrong variant on one seed.

    `margin` is the distance, in tolerances, on the line that it misses most clearly, `needed` the
    least that is allowed there, `share` its share of the points.
    """

    margin: float
    needed: float
    share: float


@dataclass(frozen=True)
class Result:
    """The findings on one exercise; `faults` is empty when all is well.

    `earned` says which wrong variants and near misses earn something, the most first.
    """

    exercise: str
    points: float
    lines: int
    right: int
    wrong: int
    margin: float
    earned: str
    faults: tuple[str, ...]

    @property
    def least(self) -> str:
        """The margin as an author reads it: beyond some point a number says nothing more."""
        if not self.wrong:
            return "-"
        return f"{self.margin:.0f}" if self.margin <= FAR else f"over {FAR}"


def review(
    lesson: Lesson,
    nb: NotebookNode,
    judged: Callable[[Lesson], list[Result]],
    named: tuple[Exercise, ...] = (),
) -> tuple[list[Result], list[str]]:
    """Return what was found of each exercise, and every fault of the lesson once.

    Faults of the files or the text come alone, because what follows needs a faultless text. Where
    exercises are named, the variants of the others are not looked at.
    """
    if faults := [*misplaced(lesson), *lint.lint_source(lesson, nb)]:
        return [], faults
    try:
        expected.practice_keys(lesson, named)
        results = judged(lesson)
        student = students_version(nb)
    except CourseError as error:
        return [], re.split(r"\n(?! )", str(error))
    faults = [*lint.lint_variants(lesson, named), *lint.lint_stubs(lesson, nb, named)]
    faults += lint.lint_student(nb, student)
    faults += [f"{each.exercise}: {fault}" for each in results for fault in each.faults]
    return results, faults


def check_and_show(lesson: Lesson, named: tuple[Exercise, ...]) -> bool:
    """Print what was found of a lesson, or of some of its exercises; return whether all is well."""
    results, faults = review(lesson, source_notebook(lesson), partial(check, named=named), named)
    if results:
        heads = ["exercise", "points", "lines", "right", "wrong", "margin"]
        table = Table(*heads, title=lesson.name)
        for r in results:
            numbers = [f"{r.points:g}", r.lines, r.right, r.wrong, r.least]
            table.add_row(r.exercise, *map(str, numbers))
        Console().print(table)
    for result in results:
        if result.earned:
            print(f"{result.exercise}: partly right: {result.earned}")
    if faults:
        print("\n".join([f"{lesson.name} has faults:", *(f"- {fault}" for fault in faults)]))
    else:
        for draft in drafts(lesson, named):
            print(f"{lesson.name}: {draft}")
    return not faults


def check(lesson: Lesson, named: tuple[Exercise, ...] = ()) -> list[Result]:
    """Judge every variant of a lesson, or of some of its exercises, on several seeds."""
    return for_each_exercise(judge_variants, lesson, named or lesson.exercises)


def check_once(lesson: Lesson) -> list[Result]:
    """Judge every variant on the practice inputs alone, for a build.

    It starts no process: in Formgrader it runs beside other threads.
    """
    return [judge_variants(lesson, each, CHECKED_SEEDS[:1]) for each in lesson.exercises]


def drafts(lesson: Lesson, named: tuple[Exercise, ...] = ()) -> Iterator[str]:
    """Yield a sentence for each exercise that has too few variants for students."""
    for exercise in named or lesson.exercises:
        found = read_variants(lesson, exercise)
        right, wrong = len(found.right), len(found.wrong)
        if right < FEWEST_RIGHT or wrong < FEWEST_WRONG:
            yield (
                f"{exercise.name} is a draft: {right} right and {wrong} wrong variants; write "
                f"at least {FEWEST_RIGHT} and {FEWEST_WRONG} before students get it"
            )


def judge_variants(lesson: Lesson, exercise: Exercise, seeds: Sequence[int] = ()) -> Result:
    """Judge every variant of one exercise on these seeds; name each fault once.

    Without seeds it takes those that `check` uses. Claims are judged by themselves: whether they
    count in grading says nothing about the answer.
    """
    reference, variants = load(lesson), read_variants(lesson, exercise)
    measured = read_measured(lesson).get(exercise.name, {})
    seeds = seeds or _seeds(measured)
    keys, broken = dict[int, Key](), dict[str, str]()
    for seed in seeds:
        try:
            keys[seed] = right_key(reference, exercise, seed, measured)
        except CourseError as error:
            broken["reference"] = str(error)
    failed: Failures = defaultdict(lambda: defaultdict(list))
    for seed, key in keys.items():
        broken |= _judge_right(reference, exercise, seed, key, failed)
    missed = {each: _judge_wrong(reference, exercise, each, keys) for each in variants.wrong}
    missed = {variant: found for variant, found in missed.items() if found}
    earned = {variant.name: _most(found).share for variant, found in missed.items()}
    shares = sorted(earned.items(), key=lambda item: -item[1])
    lines, of_lines = 0, list[str]()
    if keys:
        *_, key = keys.values()
        lines, of_lines = len(key.expected.lines), _guessed(key) + _too_much_watched(key)
    return Result(
        exercise=exercise.name,
        points=exercise.points,
        lines=lines,
        right=len(variants.right),
        wrong=len(variants.wrong),
        margin=min((_least(found).margin for found in missed.values()), default=inf),
        earned=", ".join(f"{share:.0%} {name}" for name, share in shares if share > 0),
        faults=(
            *broken.values(),
            *of_lines,
            *_in_words(failed, len(seeds), exercise.name, measured),
            *(fault for variant, found in missed.items() for fault in _of_wrong(variant, found)),
        ),
    )


def _judge_right(
    reference: Program, exercise: Exercise, seed: int, key: Key, failed: Failures
) -> dict[str, str]:
    """Note the lines that right answers fail on a seed; return why others cannot be judged."""
    broken = dict[str, str]()
    verdict = judge(reference.record(exercise.name, seed), key, trusted=True)
    own = _note(failed[expected.OWN], verdict)
    for who, made_of in expected.right_answers(reference.lesson, exercise):
        try:
            recording = expected.record(reference, exercise, made_of, seed)
        except CourseError as error:
            broken[who] = str(error)
        else:
            _note(failed[who], judge(recording, key, trusted=True), own)
    return broken


def _judge_wrong(
    reference: Program, exercise: Exercise, variant: Variant, keys: Mapping[int, Key]
) -> list[Missed]:
    """Return how clearly a wrong variant fails on each seed; one without end is run on one seed."""
    found = []
    for seed, key in keys.items():
        recording = expected.record(reference, exercise, [variant], seed)
        verdict = judge(recording, key, trusted=True)
        found.append(Missed(*_margin(recording, key), share=verdict.points / key.points))
        if recording.stopped and recording.stopped.error == "KeyboardInterrupt":
            break  # it would take as long again
    return found


def _of_wrong(variant: Variant, found: Sequence[Missed]) -> Iterator[str]:
    """Yield what to do about a wrong variant that is too near, or earns too much or too little."""
    if near := _too_near(variant.name, found):
        yield near
    most = _most(found)
    if variant.heading == "wrong" and MOST_EARNED < most.share < 1:
        yield (
            f"the wrong variant {variant.name} earns {most.share:.0%} of the points; at most "
            f"{MOST_EARNED:.0%} are allowed. Put `.idea` before lines that it misses and before no "
            "others, or call it a near miss"
        )
    if variant.made and most.share < MOST_EARNED:
        yield (
            f"the near miss {variant.name} that is made from the lesson's own answer earns "
            f"{most.share:.0%} of the points; at least {MOST_EARNED:.0%} are expected, since it "
            "has the idea. Leave it out, or write it"
        )


def _seeds(measured: Lines) -> Sequence[int]:
    """Return the seeds to judge on, also those of the measurement if right answers differed there.

    One of these names the answer that differs.
    """
    differed = any(line["tolerance"] >= DIFFERED for line in measured.values())
    return [*CHECKED_SEEDS, *(MEASURED_SEEDS if differed else ())]


def _guessed(key: Key) -> list[str]:
    """Return what to do if no line counts by itself in grading."""
    if not all(key.claims):
        return []
    calls = [line for line in key.expected.lines if isinstance(KINDS[line.kind], Call)]
    values = [case.outcome.value for line in calls for case in line.cases if not case.outcome.error]
    nothing = bool(values) and all(value is None for value in values)
    return [NOTHING_RETURNED if nothing else ALL_GUESSED]


def _too_much_watched(key: Key) -> list[str]:
    lines = key.expected.lines
    watched = (line.weight for line in lines if KINDS[line.kind].watched)
    share = sum(watched) / sum(line.weight for line in lines)
    if share <= MOST_WATCHED:
        return []
    return [
        f"lines that watch how an answer works carry {share:.0%} of the points; at most "
        f"{MOST_WATCHED:.0%} are allowed, since a student's code can hide that. Put `.idea` before "
        "a line whose result shows it, not before these"
    ]


def _least(found: Sequence[Missed]) -> Missed:
    """Return the seed on which the margin is the smallest part of what is needed."""
    return min(found, key=lambda each: each.margin / each.needed)


def _most(found: Sequence[Missed]) -> Missed:
    """Return the first seed on which it earns the most."""
    return max(found, key=lambda each: each.share)


def _too_near(name: str, found: Sequence[Missed]) -> str:
    """Return what to do about a wrong variant that is not told apart on every seed, or ""."""
    least = _least(found)
    if least.margin >= least.needed:
        return ""
    passed = sum(each.margin <= 1 for each in found)
    if 0 < passed < len(found):
        return (
            f"the wrong variant {name} passes every line on {passed} of {len(found)} seeds: draw "
            "inputs that always show what it gets wrong, or add a case that is not drawn"
        )
    if passed:
        return (
            f"the wrong variant {name} passes every line. Add a line that it fails, or correct "
            "what it is meant to get wrong"
        )
    return (
        f"the wrong variant {name} misses by {least.margin:.1f} tolerances, {least.needed:g} are "
        "needed: draw larger or less friendly inputs"
    )


def _note(lines: dict[str, list[str]], verdict: Verdict, known: Collection[str] = ()) -> set[str]:
    """Note the lines that an answer fails, with why, and return them; `known` are left out."""
    wrong = [line for line in verdict.lines if not line.passed and line.name not in known]
    for line in wrong:
        said = line.failure.sentence if line.failure else ""
        lines[line.name].append(said or verdict.note)
    return {line.name for line in wrong}


def _in_words(failed: Failures, seeds: int, exercise: str, measured: Lines) -> Iterator[str]:
    """Yield a fault for each answer that fails: its first line with why, then the other lines."""
    for who, lines in failed.items():
        if not lines:
            continue
        (first, said), *others = lines.items()
        times = "" if len(said) == seeds else f" on {len(said)} of {seeds} seeds"
        more = f" It also fails {', '.join(f'“{name}”' for name, _ in others)}."
        if who == expected.OWN:
            todo = "Correct it, or leave the line out"
        elif first in measured and measured[first]["tolerance"] >= DIFFERED:
            todo = (
                "Correct it; if it is right, compare only what right answers share: call a helper "
                "that returns it, or for random draws a check. Where 0 and 0.0 are both right, "
                "have the lesson's own answer return 0.0. If the expected number is 0 apart "
                "from rounding, draw inputs that lead to another, or have the answer round"
            )
        else:
            todo = (
                "Correct it; if it is right and differs by rounding alone, run: "
                f"autograde check --measure {exercise}"
            )
        why = said[0].rstrip(".") + "." + (more if others else "")
        yield f"{who} fails “{first}”{times}: {why} {todo}"


def _margin(recording: Recording, key: Key) -> tuple[float, float]:
    """Return a wrong variant's margin, and the least margin needed."""
    margin, least = 0.0, float(SAFETY)
    outcomes = outcomes_of(recording, key.expected)
    for line, found, tolerance in zip(key.expected.lines, outcomes, key.tolerances, strict=True):
        distances = [each.distance for _, _, each in wrong_cases(line, found, tolerance)]
        times = max(distances, default=0) / max(tolerance, 1e-12)
        if times > margin:
            margin = times
            least = float(CHECK_MARGIN if isinstance(KINDS[line.kind], Checked) else SAFETY)
    return margin, least
