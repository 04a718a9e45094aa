"""The kinds of rubric lines: how each reads what was recorded, compares it, and recognises it.

The names in `KINDS` are what a recorded line carries. A claim is a line that code in the student's
process could get right without computing anything. Of some kinds every line is one; of the others
`autograde check --measure` finds those whose outcomes can be guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from autograde.rubric.recording import REFUSAL, REFUSAL_BY, RETURNED, Case, Line, Outcome, Recording
from autograde.values.base import SAME, Difference, Plain, differs, shorten
from autograde.values.dispatch import apart, module_named, says_much

NOT_REACHED = "NotReached"
"""The error of a line that the rubric did not reach."""


class Kind:
    """What is peculiar to a kind of line. Another kind is a subclass with an entry in `KINDS`."""

    weight = 2.0
    tolerance: float | None = None
    """How far a right outcome may be from the expected one; None: measured for each line."""
    claim = False
    """Whether every line of this kind is a claim."""
    watched = False
    """Whether code of the rubric watches how the answer works, which a student's can hide."""
    looks_back = False
    """Whether it is about the calls of the lines before: it is right of an unwritten answer too."""
    bans = False
    """Whether a wrong line takes the points of all the others."""

    def kept(self, recorded: Outcome) -> Outcome:
        """Return what a key keeps of what was recorded of the reference."""
        return recorded

    def read(self, got: Outcome, expected: Case) -> Outcome:
        """Return the outcome as `compare` and `alike` understand it."""
        return got

    def compare(self, got: Outcome, expected: Case) -> Difference:
        """Return how far an outcome is from what a case expects; any two refusals are alike."""
        if got.error == NOT_REACHED:
            return differs("")
        if expected.outcome.refused:
            if got.refused:
                return SAME
            if got.not_attempted:
                return differs(describe_error(got))
            result = "None" if got.value is None else "a result"
            did = describe_error(got) if got.error is not None else f"returns {result}"
            return differs(f"{did}, expected {REFUSAL}")
        if got.error is not None:
            return differs(describe_error(got))
        return self.compare_values(got.value, expected.outcome.value)

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        """Return how far a value is from the expected one."""
        found = apart(got, expected)
        if got is None and found.distance:
            return replace(found, note="Does it `return` its result?")
        return found

    def alike(self, got: Outcome, known: Outcome, tolerance: float) -> bool:
        """Return whether two wrong outcomes are the same mistake."""
        if got.error is not None or known.error is not None:
            return same_error(got, known)
        return apart(got.value, known.value).distance <= max(tolerance, 1e-6)

    def telling(self, outcome: Outcome) -> bool:
        """Return whether an outcome is so specific that two alike ones share a cause."""
        return outcome.error is None and says_much(outcome.value)


class Call(Kind):
    """What a call returns, compared with what the reference's returns."""


class AnyColumnOrder(Call):
    """A DataFrame whose columns may stand in any order."""

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        in_order = module_named("frames").columns_sorted
        return super().compare_values(in_order(got), in_order(expected))


class Watched(Call):
    """A result that counts only if the student's process saw nothing amiss on the way to it."""

    watched = True


class Gradient(Kind):
    """Gradients, each named by what it belongs to."""

    weight = 1.0

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        if not isinstance(got, dict) or len(got) != len(expected):
            return differs("has a record of gradients that cannot be read")
        largest, of = SAME, ""
        pairs = zip(expected.items(), got.values(), strict=True)
        for (name, right), value in pairs:
            if value is None and right is not None:
                return differs("", f"No gradient reaches {name}.")
            found = apart(value, right)
            if found.distance > largest.distance:
                largest, of = found, name
        if largest is SAME:
            return SAME

        def worded(_got: Plain, _expected: Plain, near: float) -> tuple[str, str, str]:
            said = largest.in_words(near)
            return "", "", f"{of}.grad{said.at} {said.symptom}. {said.note}".strip()

        return Difference(largest.distance, worded=worded)


class Claim(Kind):
    """Something said of an answer in words: it is right or wrong, and never nearly right."""

    weight = 1.0
    tolerance: float | None = 0.0
    claim = True

    def telling(self, outcome: Outcome) -> bool:
        return False


class Refuses(Claim):
    """Bad arguments that must raise a ValueError, or the error that the rubric names."""

    def read(self, got: Outcome, expected: Case) -> Outcome:
        readable = got.error is not None or isinstance(got.value, str)
        return got if readable else Outcome(value="does something that cannot be read")

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        named = isinstance(expected, str) and expected.startswith(REFUSAL_BY)
        due = expected if named else REFUSAL
        error = expected.removeprefix(REFUSAL_BY) if named else "ValueError"
        article = "an" if error[0] in "AEIO" else "a"
        return SAME if got == due else differs(f"{got}, expected {article} {error}")

    def alike(self, got: Outcome, known: Outcome, tolerance: float) -> bool:
        return got.error == known.error and _manner(got.value) == _manner(known.value)


class Unchanged(Claim):
    """Arguments that no call may change."""

    looks_back = True

    def read(self, got: Outcome, expected: Case) -> Outcome:
        changes = got.value if isinstance(got.value, list) else [got.value]
        if all(isinstance(one, list) and list(map(type, one)) == [str, str] for one in changes):
            return got
        return Outcome(value=[["the record of changes", "cannot be read"]])

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        if not got:
            return SAME
        call, change = got[0]
        return differs("", f"`{call}` {change}.")

    def alike(self, got: Outcome, known: Outcome, tolerance: float) -> bool:
        return {change for _, change in got.value} == {change for _, change in known.value}


class Forbids(Claim):
    """Functions that the answer must not use."""

    looks_back = True
    bans = True

    def read(self, got: Outcome, expected: Case) -> Outcome:
        uses = got.value if isinstance(got.value, list) else [got.value]
        readable = all(isinstance(name, str) for name in uses)
        return got if readable else Outcome(value=["something that cannot be read"])

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        return differs(f"uses {', '.join(got)}") if got else SAME

    def alike(self, got: Outcome, known: Outcome, tolerance: float) -> bool:
        return bool(got.value) == bool(known.value)


def describe_error(got: Outcome) -> str:
    """Return a predicate for an exception: one line, with the student's line, never a traceback."""
    if got.not_attempted:
        return "is not written yet"
    if got.breaks_contract:
        return f"breaks the contract: {got.message}"
    said = f": {shorten(got.message)}" if got.message else ""
    return f"raises {got.error}{said}" + (f" (in {shorten(got.at, 90)})" if got.at else "")


def same_error(got: Outcome, known: Outcome) -> bool:
    """Return whether two calls raised alike.

    Each answer words its refusal in its own way, and each Python a division by zero. What PyTorch
    says names the operands in the order in which they were written; since 2.15 it begins with the
    operation's name, one word more than in practice data made with an earlier release.
    """
    if got.refused and known.refused:
        return True
    words, known_words = Counter(got.message.split()), Counter(known.message.split())
    other = (words - known_words).total() + (known_words - words).total()
    return got.error == known.error and (other <= 1 or got.error == ZeroDivisionError.__name__)


def _manner(value: Plain) -> Plain:
    """Return how a call failed to refuse: of what it raised the name, of a result what kind of."""
    if not isinstance(value, str) or not value.startswith("returns "):
        return value.partition(":")[0] if isinstance(value, str) else value
    if value.startswith(("returns '", 'returns "')):
        return "returns a text"
    telling = (RETURNED, "returns None", "returns True", "returns False")
    return value if value in telling else "returns a result"


def is_given(case: Case) -> bool:
    """Return whether nobody has to compute what is expected, even where it depends on the inputs.

    It is an argument handed back, nothing, or one number at every place. A result of a single
    number, such as a loss, has to be computed.
    """
    value = case.outcome.value
    if not hasattr(value, "flatten"):  # neither a tensor nor an array
        return case.outcome.refused
    arguments = case.before if isinstance(case.before, list | tuple) else [case.before]
    handed_back = any(apart(value, each).distance == 0 for each in arguments)
    entries = value.flatten()
    return handed_back or (len(entries) != 1 and bool((entries == entries[:1]).all()))


class Kinds(dict[str, Kind]):
    """The kinds of lines by name; `checks` adds each check that is imported."""

    def __missing__(self, name: str) -> Kind:
        raise LookupError(
            f"no check is called {name}: the lesson has to import the module that defines it, "
            "or the course's package, which does"
        )


KINDS = Kinds(
    call=Call(),
    call_any_column_order=AnyColumnOrder(),
    watched=Watched(),
    gradient=Gradient(),
    refuses=Refuses(),
    unchanged=Unchanged(),
    forbids=Forbids(),
)


def outcomes_of(recording: Recording, expected: Recording) -> list[list[Outcome]]:
    """Return the outcomes of every case of every line, in order, as the line's kind reads them."""
    recorded = {line.name: line for line in recording.lines}
    found = []
    for line in expected.lines:
        kind, got = KINDS[line.kind], recorded.get(line.name)
        if got is None or len(got.cases) != len(line.cases):
            found.append([Outcome(error=NOT_REACHED)] * len(line.cases))
        else:
            pairs = zip(got.cases, line.cases, strict=True)
            found.append([kind.read(own.outcome, case) for own, case in pairs])
    return found


def wrong_cases(
    line: Line, outcomes: Sequence[Outcome], tolerance: float
) -> Iterator[tuple[Case, Outcome, Difference]]:
    """Yield the cases of a line that are wrong, each with its outcome and how that differs."""
    for case, outcome in zip(line.cases, outcomes, strict=True):
        found = KINDS[line.kind].compare(outcome, case)
        if found.distance > tolerance:
            yield case, outcome, found
