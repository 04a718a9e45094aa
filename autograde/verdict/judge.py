"""From a recording and a key to a verdict. Pure: the same for practice and for grading."""

from dataclasses import astuple, dataclass, replace
from math import inf

from torch import Tensor

from autograde.verdict.checks import CHECKS, Reading, Unreadable, difference
from autograde.verdict.compare import SAME, Difference, compare, compare_values, describe_error
from autograde.verdict.key import Key, Wrong
from autograde.verdict.packing import Plain
from autograde.verdict.recording import Line, Outcome, Recording
from autograde.verdict.sources import forbidden_uses

SAME_INPUTS = 1e-6
"""How far recorded arguments may be from the reference's, relative to their size."""

BANNED = "The exercise is to do without what it forbids; with it, no line gives points."


@dataclass(frozen=True)
class LineVerdict:
    """One rubric line: passed or not, its share of the points, and why it failed."""

    name: str
    passed: bool
    points: float
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """One exercise judged. `note` says what kept it from being judged line by line."""

    exercise: str
    points: float
    max_points: float
    lines: tuple[LineVerdict, ...]
    misconception: Wrong | None = None
    note: str = ""
    attempted: bool = True

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)


def judge(recording: Recording, key: Key, source: str | None = None) -> Verdict:
    """The verdict on one exercise.

    Args:
        recording: what the rubric cell recorded; untrusted in grading.
        key: the expected outcomes for the same seed.
        source: the submitted answer's text, which replaces what the kernel said of it.
    """
    recorded = {line.name: line for line in recording.lines}
    if len(recorded) < len(recording.lines):
        return failed(key, "The rubric recorded a line twice; nothing of it counts.")
    if other := _other_inputs(recorded, key):
        return failed(key, other)
    outcomes = outcomes_of(recording, key, source)
    if all(o.not_attempted for o in _answers(key, outcomes)):
        return replace(failed(key, "Not attempted yet."), attempted=False)
    differences = [
        difference_of(line, outcome)
        for line, outcome in zip(key.expected.lines, outcomes, strict=True)
    ]
    passed = [
        found.distance <= tolerance
        for found, tolerance in zip(differences, key.tolerances, strict=True)
    ]
    vouched = any(
        ok and not is_claim(line) for line, ok in zip(key.expected.lines, passed, strict=True)
    )
    banned = any(
        line.kind == "forbids" and outcome.error is None and outcome.value
        for line, outcome in zip(key.expected.lines, outcomes, strict=True)
    )
    share = 0.0 if banned else key.points / len(passed)
    lines = []
    for line, found, ok in zip(key.expected.lines, differences, passed, strict=True):
        counts = ok and (vouched or not is_claim(line))
        reason = found.symptom if not ok else "" if counts else "counts once another line is right"
        lines.append(LineVerdict(line.name, counts, share if counts else 0.0, reason))
    if all(line.passed for line in lines):
        return Verdict(key.exercise, key.points, key.points, tuple(lines))
    return Verdict(
        key.exercise,
        points=round(sum(line.points for line in lines), 4),
        max_points=key.points,
        lines=tuple(lines),
        misconception=recognise(outcomes, key),
        note=BANNED if banned else _stopped(recording),
    )


def failed(key: Key, note: str) -> Verdict:
    """No points, for one reason that concerns every line."""
    lines = tuple(LineVerdict(line.name, False, 0.0, "") for line in key.expected.lines)
    return Verdict(key.exercise, 0.0, key.points, lines, note=note)


def is_claim(line: Line) -> bool:
    """Whether a line rests on the word of the student's process alone.

    Refusals, yes or no, small whole numbers, forbidden names and unchanged arguments could be
    forged without computing anything; they count only beside a line of values that is right.
    """
    if line.kind in ("forbids", "arguments") or line.outcome.refused:
        return True
    return line.kind != "check" and not _holds_numbers(line.outcome.value)


def _holds_numbers(value: Plain) -> bool:
    match value:
        case None | bool() | int() | str():
            return False
        case list() | tuple():
            return any(_holds_numbers(item) for item in value)
        case dict():
            return any(_holds_numbers(item) for item in value.values())
    return True


def _answers(key: Key, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes of the lines that call the answer."""
    pairs = zip(key.expected.lines, outcomes, strict=True)
    return [outcome for line, outcome in pairs if line.kind not in ("arguments", "forbids")]


def outcomes_of(recording: Recording, key: Key, source: str | None = None) -> list[Outcome]:
    """What was recorded for each line of the key, in its order, read where a line needs reading.

    A `check` line becomes its readings, a `forbids` line the forbidden uses found, an `arguments`
    line the names of the lines that changed an argument.
    """
    recorded = {line.name: line for line in recording.lines}
    reason = _stopped(recording) or "this line was not recorded"
    missing = Outcome(error="ContractBroken", message=reason)
    outcomes = []
    for expected in key.expected.lines:
        line = recorded.get(expected.name)
        if line is None:
            outcomes.append(missing)
        elif expected.kind == "arguments":
            outcomes.append(Outcome(value=_changed(recording)))
        elif line.outcome.error is not None:
            outcomes.append(line.outcome)
        elif expected.kind == "forbids":
            outcomes.append(Outcome(value=_uses(line.outcome.value, expected, source)))
        elif expected.kind == "check":
            outcomes.append(_read(line.outcome.value, expected))
        else:
            outcomes.append(line.outcome)
    return outcomes


def _stopped(recording: Recording) -> str:
    if recording.stopped is None:
        return ""
    return f"The rubric was stopped by {recording.stopped}"


def _changed(recording: Recording) -> list[str]:
    return [line.name for line in recording.lines if _apart(line.after, line.before).distance > 0]


def _uses(value: Plain, expected: Line, source: str | None) -> list[str]:
    if source is not None and isinstance(value, dict):
        value = {**value, "source": source}
    return forbidden_uses(value, expected.before)


def _read(value: Plain, expected: Line) -> Outcome:
    try:
        readings = CHECKS[expected.check or ""](value, expected.before)
    except Unreadable as error:
        return Outcome(error="ContractBroken", message=str(error))
    return Outcome(value=[list(astuple(reading)) for reading in readings])


def _apart(got: Plain, expected: Plain) -> Difference:
    try:
        return compare_values(got, expected)
    except TypeError:
        return Difference(inf, "not comparable")


def _other_inputs(recorded: dict[str, Line], key: Key) -> str:
    for expected in key.expected.lines:
        line = recorded.get(expected.name)
        if line is not None and _apart(line.before, expected.before).distance > SAME_INPUTS:
            return (
                f"The inputs of the line “{line.name}” are not those the reference was run on. "
                "That is no fault of the answer: something in this environment draws other numbers."
            )
    return ""


def difference_of(expected: Line, got: Outcome) -> Difference:
    """How far an outcome is from what a line expects."""
    match expected.kind:
        case "forbids" if got.error is None:
            return Difference(inf, f"uses {', '.join(got.value)}") if got.value else SAME
        case "arguments" if got.error is None:
            where = ", ".join(f"“{name}”" for name in got.value)
            return Difference(inf, f"changes its arguments (in {where})") if got.value else SAME
        case "refuses" if got.error is None:
            return _refusals(expected, got.value)
        case "check" if got.error is None:
            return difference([Reading(*reading) for reading in got.value])
    if got.error is not None and not expected.outcome.refused:
        return Difference(inf, describe_error(got))
    return compare(got, expected.outcome)


def _refusals(expected: Line, got: Plain) -> Difference:
    wanted = expected.outcome.value
    if not isinstance(got, list) or len(got) != len(wanted):
        return Difference(inf, "the record of refusals is unreadable")
    for case, found, right in zip(expected.before, got, wanted, strict=True):
        if found != right:
            given = ", ".join(_brief(argument) for argument in case)
            if right == "refused":
                found = f"{found}, should be refused with a ValueError"
            return Difference(inf, f"({given}) is {found}")
    return SAME


def _brief(argument: Plain) -> str:
    if isinstance(argument, Tensor):
        return f"a tensor of shape {tuple(argument.shape)}"
    return repr(argument)


def recognise(outcomes: list[Outcome], key: Key) -> Wrong | None:
    """The known wrong answer whose outcomes these are, if there is one."""
    for wrong in key.wrong:
        if all(
            _alike(line, got, known, tolerance)
            for line, got, known, tolerance in zip(
                key.expected.lines, outcomes, wrong.outcomes, key.tolerances, strict=True
            )
        ):
            return wrong
    return None


def _alike(line: Line, got: Outcome, known: Outcome, tolerance: float) -> bool:
    if got.error is not None or known.error is not None:
        return got.error == known.error and got.message == known.message
    match line.kind:
        case "forbids" | "arguments":
            return bool(got.value) == bool(known.value)
        case "refuses":
            return bool(got.value == known.value)
        case "check":
            return len(got.value) == len(known.value) and all(
                abs(a - b) <= limit
                for (_, a, _, limit, _), (_, b, _, _, _) in zip(got.value, known.value, strict=True)
            )
    return _apart(got.value, known.value).distance <= tolerance
