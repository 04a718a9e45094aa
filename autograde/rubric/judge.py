"""From a recording and a key to a verdict. Pure: the same for practice and for grading."""

import ast
from dataclasses import dataclass, replace

from autograde.rubric.key import Key
from autograde.rubric.kinds import (
    KINDS,
    NOT_REACHED,
    Gradient,
    is_given,
    outcomes_of,
    wrong_cases,
)
from autograde.rubric.misconceptions import Belief, beliefs
from autograde.rubric.recording import REFUSAL, Case, Line, Outcome, Recording, Stop
from autograde.values.base import (
    NEAR,
    Difference,
    Plain,
    Structure,
    Table,
    float_types,
    unrecordable,
)
from autograde.values.dispatch import apart, in_full, side_by_side
from autograde.values.text import short, visible

SAME_INPUTS = 1e-6
"""How far recorded arguments may be from the reference's, relative to their size."""

NEARLY = 0.01
"""A wrong number with a relative error of at most this is told how near it has to be."""

MOST_SAID = 2_000
"""The most characters of a sentence or note; exception messages in them may be any length."""

NOT_WRITTEN = (
    "Not written yet: `raise NotImplementedError()` still runs, here or in an answer that it calls."
)
OTHER_INPUTS = (
    "The inputs of the line “{}” are not those that the reference was run on. The answer itself is "
    "not at fault: something else in this notebook, perhaps a setting of a library, changes them. "
    "Restart the kernel, run all cells from the top, and look for it."
)
BANNED = "The answer uses a function that the exercise forbids, so no line earns points."
GPU_STOPPED = (
    "The GPU has stopped: a call did what it cannot do, such as reading outside a tensor or "
    "drawing by a negative probability. Restart the kernel and run the cells above again. On the "
    "CPU (without AUTOGRADE_DEVICE) the same call says what is wrong."
)
INCOMPLETE = (
    "The rubric did not record every line. If the notebook and its practice data are of different "
    "versions, fetch both again."
)
GUESSED = "counts only if a line that computes something is right too"


@dataclass(frozen=True)
class Input:
    """An argument of a call, by its name in the call's text."""

    name: str
    table: Table


@dataclass(frozen=True)
class Failure:
    """The first failing case of a line: what was called, what came back, what was expected.

    `inputs` are the call's arguments, as far as they are small. A failure is `simplest` if it is in
    the line's first case and in plain numbers, not in gradients or in another type of floats than
    the first line has. It says most about the cause, so the panel shows the first of these.
    """

    sentence: str
    call: str = ""
    got: Table | None = None
    expected: Table | None = None
    inputs: tuple[Input, ...] = ()
    simplest: bool = True


@dataclass(frozen=True)
class LineVerdict:
    """One rubric line: passed or not, the points it earned of those it is worth, how it failed."""

    name: str
    passed: bool
    points: float
    worth: float
    failure: Failure | None = None


@dataclass(frozen=True)
class Verdict:
    """One exercise judged. `note` says what kept it from being judged line by line."""

    exercise: str
    points: float
    max_points: float
    lines: tuple[LineVerdict, ...]
    beliefs: tuple[Belief, ...] = ()
    note: str = ""
    attempted: bool = True

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)

    @property
    def leading(self) -> LineVerdict | None:
        """The wrong line that is shown first; None if none has anything to show."""
        said = [each for each in self.lines if each.failure and each.failure.sentence]
        simplest = (each for each in said if (f := each.failure) and f.simplest and f.call)
        return next(simplest, said[0] if said else None)

    @property
    def judged(self) -> bool:
        """True when the lines were judged one by one, not all refused for one reason."""
        return self.attempted and any(line.passed or line.failure for line in self.lines)

    @property
    def called(self) -> bool:
        """False when `note` is all there is to say: a name is missing, and no line was reached."""
        right = any(line.passed for line in self.lines)
        return self.judged and bool(right or self.leading or not self.note)


def judge(recording: Recording, key: Key, *, trusted: bool = False) -> Verdict:
    """Return the verdict on one exercise.

    Args:
        recording: what the rubric cell recorded; untrusted in grading.
        key: the expected outcomes for the same seed.
        trusted: nobody has a reason to forge it (practice), so claims count by themselves.
    """
    if why := _not_comparable(recording, key):
        return failed(key, why)
    outcomes = outcomes_of(recording, key.expected)
    if _not_attempted(key, outcomes):
        return replace(failed(key, NOT_WRITTEN), attempted=False)
    failures = _failures(key, outcomes)
    vouched = trusted or _is_vouched(key, failures)
    failures = _but_withdrawn(key, failures)
    if not any(failures):
        return Verdict(key.exercise, key.points, key.points, _with_points(key, failures))
    behind = beliefs(outcomes, failures, key) if key.mistakes else ()
    banned = _is_banned(key, failures)
    if not vouched:
        failures = _but_withdrawn(key, [each or Failure(GUESSED) for each in failures])
    lines = _with_points(key, failures, banned=banned)
    stopped = stop_in_words(recording.stopped, here=trusted)
    return Verdict(
        key.exercise,
        points=round(sum(line.points for line in lines), 4),
        max_points=key.points,
        lines=lines,
        beliefs=behind,
        note=_readable(BANNED if banned else stopped or _incomplete(outcomes)),
    )


def failed(key: Key, note: str) -> Verdict:
    """Return a verdict without points, for one reason that concerns every line."""
    rows = zip(key.expected.lines, _worth(key), strict=True)
    lines = tuple(LineVerdict(line.name, False, 0.0, worth) for line, worth in rows)
    return Verdict(key.exercise, 0.0, key.points, lines, note=_readable(note))


def _not_comparable(recording: Recording, key: Key) -> str:
    """Return why a recording cannot be held against a key, or ""."""
    if len({line.name for line in recording.lines}) < len(recording.lines):
        return "The rubric recorded a line twice, so none of it counts."
    line = with_other_inputs(recording, key)
    return OTHER_INPUTS.format(line) if line else ""


def with_other_inputs(recording: Recording, key: Key) -> str:
    """Return the first line whose inputs are not those of the key; "" if there is none."""
    recorded = {line.name: line for line in recording.lines}
    for expected in key.expected.lines:
        line = recorded.get(expected.name)
        for mine, case in zip(line.cases if line else (), expected.cases, strict=False):
            if unrecordable(case.before):  # by the grader that made the key
                continue
            if apart(mine.before, case.before).distance > SAME_INPUTS:
                return expected.name
    return ""


def _not_attempted(key: Key, outcomes: list[list[Outcome]]) -> bool:
    return all(
        outcome.not_attempted
        for line, found in zip(key.expected.lines, outcomes, strict=True)
        if not KINDS[line.kind].looks_back
        for outcome in found
    )


def _failures(key: Key, outcomes: list[list[Outcome]]) -> list[Failure | None]:
    """Return how each line fails; None for one that is right."""
    floats = _floats(key)
    rows = zip(key.expected.lines, outcomes, key.tolerances, strict=True)
    return [_judge_line(*row, floats) for row in rows]


def _floats(key: Key) -> set[str]:
    """Return the types of floats in the first line that has any."""
    each = (float_types(line.cases[0].before) for line in key.expected.lines if line.cases)
    return next(filter(None, each), set())


def _judge_line(
    line: Line, outcomes: list[Outcome], tolerance: float, floats: set[str]
) -> Failure | None:
    """Return the first failing case, the smallest; None when the line is right.

    A line on other floats than the first asks for their type, one on gradients for those; what is
    wrong with the numbers shows best in the others.
    """
    first = next(wrong_cases(line, outcomes, tolerance), None)
    if first is None:
        return None
    case, outcome, found = first
    of_numbers = not isinstance(KINDS[line.kind], Gradient) and float_types(case.before) <= floats
    near = max(NEAR, tolerance)
    found = found.in_words(near)
    if KINDS[line.kind].tolerance is None and found.distance <= NEARLY:
        said = f"The largest relative error is {found.distance:.2g}; up to {tolerance:g} is right."
        found = replace(found, note=f"{found.note} {said}".strip())
    return _failure(case, outcome, found, near, simplest=of_numbers and case is line.cases[0])


def _is_vouched(key: Key, failures: list[Failure | None]) -> bool:
    """Return whether claims count: a line that vouches is right, or all such are withdrawn."""
    rows = zip(key.expected.lines, failures, _vouching(key), strict=True)
    vouching = {line.name: failure for line, failure, vouches in rows if vouches}
    return vouching.keys() <= {*key.withdrawn} or None in vouching.values()


def _vouching(key: Key) -> list[bool]:
    """Return for each line whether it makes claims count: nobody gets it right without computing.

    Where no line asks for more than an argument handed back, that is what the exercise is about.
    """
    no_claims = [not claim for claim in key.claims]
    computed = [
        no_claim and not all(map(is_given, line.cases))
        for line, no_claim in zip(key.expected.lines, no_claims, strict=True)
    ]
    return computed if any(computed) else no_claims


def _but_withdrawn(key: Key, failures: list[Failure | None]) -> list[Failure | None]:
    rows = zip(key.expected.lines, failures, strict=True)
    return [None if line.name in key.withdrawn else failure for line, failure in rows]


def _is_banned(key: Key, failures: list[Failure | None]) -> bool:
    rows = zip(key.expected.lines, failures, strict=True)
    return any(KINDS[line.kind].bans and failure is not None for line, failure in rows)


def _with_points(
    key: Key, failures: list[Failure | None], *, banned: bool = False
) -> tuple[LineVerdict, ...]:
    rows = zip(key.expected.lines, failures, _worth(key), strict=True)
    return tuple(
        LineVerdict(line.name, f is None, 0.0 if banned or f is not None else worth, worth, f)
        for line, f, worth in rows
    )


def _worth(key: Key) -> list[float]:
    """Return the points that each line is worth: its share by weight."""
    whole = sum(line.weight for line in key.expected.lines)
    return [key.points * line.weight / whole for line in key.expected.lines]


def _incomplete(outcomes: list[list[Outcome]]) -> str:
    missing = any(outcome.error == NOT_REACHED for found in outcomes for outcome in found)
    return INCOMPLETE if missing else ""


def stop_in_words(stopped: Stop | None, *, here: bool = False) -> str:
    """Return a sentence on what ended a rubric early, or "".

    `here` says that its reader is in the notebook and can run a cell; grading has run all of them.
    """
    if stopped is None:
        return ""
    if stopped.missing:
        missing = f"Not checked: `{stopped.missing}` is not defined"
        if stopped.near:
            return f"{missing}, but `{stopped.near}` is. The name has to be `{stopped.missing}`."
        if here:
            return f"{missing} yet. Run the cell that defines it, under exactly this name."
        return f"{missing}. No cell that ran before this one defines it under exactly this name."
    if stopped.error == "KeyboardInterrupt":
        return f"The rubric was interrupted: {stopped.message or 'a call did not end'}."
    if stopped.error == "AcceleratorError":  # every later call on the GPU fails, right or wrong
        return GPU_STOPPED
    return f"The rubric was stopped by {stopped.error}: {stopped.message}"


def _failure(
    case: Case, outcome: Outcome, found: Difference, near: float, *, simplest: bool
) -> Failure:
    if outcome.error == NOT_REACHED:
        return Failure("")
    *made, call = case.call.split("\n")
    named = _named_arguments(case)
    inputs = _inputs(named)
    shown = {each.name for each in inputs}
    large = {name: value for name, value in named.items() if name not in shown}
    if found.symptom:
        symptom = found.symptom.removesuffix(".").replace(repr(REFUSAL), REFUSAL)
        sentence = f"`{call}`{found.at} {symptom}."
    else:
        sentence = f"`{call}`:" if call else ""
    here = f"Here {' and '.join(f'`{line}`' for line in made)}." if made else ""
    unseen = _shapes(large or ({} if named else case.before)) if outcome.error is not None else ""
    sentence = " ".join(text for text in (sentence, found.note, here, unseen) if text)
    tables = side_by_side(*found.pair, found.pair_at, near) if found.pair else (None, None)
    return Failure(_readable(sentence), call, *tables, inputs, simplest)


def as_failure(case: Case, line: LineVerdict, note: str) -> Failure:
    """Return a case of a line that is right, or was not judged, in the form of a failing one."""
    call, value = case.call.split("\n")[-1], in_full(case.outcome.value)
    said = "is right." if line.passed else f"was not judged. {note}"
    got, inputs = value if line.passed else None, _inputs(_named_arguments(case))
    return Failure(_readable(f"`{call}` {said}"), call, got, value, inputs)


def _inputs(named: dict[str, Plain]) -> tuple[Input, ...]:
    return tuple(Input(name, table) for name, v in named.items() if (table := in_full(v)))


def _named_arguments(case: Case) -> dict[str, Plain]:
    """Return the tensors, arrays and containers that a call was given, by their names in its text.

    A call's last arguments are the last of those recorded; weights of a layer stand before them.
    """
    *made, call = case.call.split("\n")
    try:
        typed = ast.parse(call, mode="eval").body
    except SyntaxError:
        return {}
    while isinstance(typed, ast.Subscript | ast.Attribute):
        typed = typed.value
    if not isinstance(typed, ast.Call) or not isinstance(case.before, list | tuple):
        return {}
    earlier = {line.partition(" = ")[0] for line in made}
    pairs = zip(reversed(typed.args), reversed(case.before), strict=False)
    named = [(each.id, value) for each, value in pairs if isinstance(each, ast.Name)]
    large = (list, tuple, dict, Structure)
    return {
        name: value
        for name, value in reversed(named)
        if name not in earlier and (hasattr(value, "shape") or isinstance(value, large))
    }


def _shapes(before: Plain) -> str:
    """Return a sentence on the shapes of what a call was given, by names if it has them, or ""."""
    if isinstance(before, dict):
        named = [(name, value.shape) for name, value in before.items() if hasattr(value, "shape")]
        shapes = " and ".join(f"`{name}` has the shape {tuple(shape)}" for name, shape in named)
        return f"{shapes}." if shapes else ""
    given = [value.shape for value in before if hasattr(value, "shape")] if before else []
    shapes = " and ".join(str(tuple(shape)) for shape in given)
    if len(given) > 1:
        return f"Its inputs have the shapes {shapes}."
    return f"Its input has the shape {shapes}." if shapes else ""


def _readable(text: str) -> str:
    return visible(short(text, MOST_SAID))
