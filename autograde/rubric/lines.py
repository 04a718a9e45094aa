"""What one rubric line says: what was recorded for it, and how far that is from what is right."""

from dataclasses import astuple
from math import inf, isnan

from torch import Tensor

from autograde.rubric.checks import CHECKS
from autograde.rubric.compare import SAME, Difference, compare, compare_values, describe_error
from autograde.rubric.forbidden import forbidden_uses
from autograde.rubric.key import Key
from autograde.rubric.packing import Plain
from autograde.rubric.readings import Reading, Unreadable, difference
from autograde.rubric.recording import Line, Outcome, Recording


def is_claim(line: Line) -> bool:
    """Whether a line rests on the word of the student's process alone.

    Refusals, yes or no, small whole numbers, zeros, forbidden names and unchanged arguments could
    be forged without computing anything; they count only beside a line of values that is right.
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
        case Tensor():
            return bool(value.count_nonzero())
    return True


def outcomes_of(recording: Recording, key: Key, source: str | None = None) -> list[Outcome]:
    """What was recorded for each line of the key, in its order, read where a line needs reading.

    A `check` line becomes its readings, a `forbids` line the forbidden uses found, an `arguments`
    line the names of the lines that changed an argument.
    """
    recorded = {line.name: line for line in recording.lines}
    missing = Outcome(error="ContractBroken", message="not reached")
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


def _changed(recording: Recording) -> list[str]:
    return [line.name for line in recording.lines if apart(line.after, line.before).distance > 0]


def _uses(value: Plain, expected: Line, source: str | None) -> list[str]:
    if source is not None and isinstance(value, dict):
        value = {**value, "source": source}
    return forbidden_uses(value, expected.before)


def _read(value: Plain, expected: Line) -> Outcome:
    try:
        check = CHECKS[expected.check or ""]
        readings = check(value, expected.before)
    except Unreadable as error:
        return Outcome(error="ContractBroken", message=str(error))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # in grading the value may be anything: what a check cannot read is not right
        return Outcome(error="ContractBroken", message=f"the result cannot be read: {error}")
    return Outcome(value=[list(astuple(reading)) for reading in readings])


def apart(got: Plain, expected: Plain) -> Difference:
    """The difference of two plain values, infinite when they cannot be compared."""
    try:
        return compare_values(got, expected)
    except TypeError:
        return Difference(inf, "not comparable")


def difference_of(expected: Line, got: Outcome) -> Difference:
    """How far an outcome is from what a line expects."""
    if expected.kind == "gradient" and got.error is None:
        return _gradients(expected, got)
    match expected.kind:
        case "forbids" if got.error is None:
            return Difference(inf, f"uses {', '.join(got.value)}") if got.value else SAME
        case "arguments" if got.error is None:
            return Difference(inf, _where_changed(got.value)) if got.value else SAME
        case "refuses" if got.error is None:
            return _refusals(expected, got.value)
        case "check" if got.error is None:
            return difference([Reading(*reading) for reading in got.value])
    if got.error is not None and not expected.outcome.refused:
        return Difference(inf, describe_error(got))
    return compare(got, expected.outcome)


def _gradients(expected: Line, got: Outcome) -> Difference:
    """Like any list of tensors, but each named by what it is the gradient of."""
    worst = SAME
    names = _float_names(expected.before)
    values = got.value if isinstance(got.value, list) else []
    if len(values) != len(expected.outcome.value):
        return Difference(inf, "the record of gradients is unreadable")
    for name, value, right in zip(names, values, expected.outcome.value, strict=True):
        if value is None and right is not None:
            return Difference(inf, f"no gradient reaches {name}")
        found = apart(value, right)
        if found.distance > worst.distance:
            worst = Difference(found.distance, f"the gradient of {name}: {found.symptom}")
    return worst


def _float_names(before: Plain) -> list[str]:
    """A name for each float tensor among the arguments, in the order of the gradients."""
    first, second = before
    if isinstance(first, dict):  # a module's weights and its input
        return [*first, "the input"]
    numbered = [(f"argument {number}", value) for number, value in enumerate(first, start=1)]
    return [
        name
        for name, value in [*numbered, *second.items()]
        if isinstance(value, Tensor) and value.is_floating_point()
    ]


def _where_changed(lines: list[str]) -> str:
    shown = ", ".join(f"“{name}”" for name in lines[:2])
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
    return f"changes its arguments (in {shown}{more})"


def _refusals(expected: Line, got: Plain) -> Difference:
    wanted = expected.outcome.value
    if not isinstance(got, list) or len(got) != len(wanted):
        return Difference(inf, "the record of refusals is unreadable")
    for case, found, right in zip(expected.before, got, wanted, strict=True):
        if found != right:
            given = ", ".join(_brief(argument) for argument in case)
            found = found if found.startswith("raised") else f"is {found}"
            if right == "refused":
                found = f"{found}, should be refused with a ValueError"
            return Difference(inf, f"({given}) {found}")
    return SAME


def _brief(argument: Plain) -> str:
    if isinstance(argument, Tensor):
        return f"a tensor of shape {tuple(argument.shape)}"
    return repr(argument)


def alike(line: Line, got: Outcome, known: Outcome, tolerance: float) -> bool:
    """Whether two outcomes of a line are the same mistake."""
    if got.error is not None or known.error is not None:
        return got.error == known.error and got.message == known.message
    match line.kind:
        case "forbids" | "arguments":
            return bool(got.value) == bool(known.value)
        case "refuses":
            return bool(got.value == known.value)
        case "check":
            return len(got.value) == len(known.value) and all(
                a == b or abs(a - b) <= limit or (isnan(a) and isnan(b))
                for (_, a, _, limit, _), (_, b, _, _, _) in zip(got.value, known.value, strict=True)
            )
    return apart(got.value, known.value).distance <= tolerance
