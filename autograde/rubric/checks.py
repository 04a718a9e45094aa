"""Checks of outcomes that can be right in many ways.

Each is a pure function from a recorded outcome to readings: a number measured, the number wanted,
and the limit of their difference. The same functions serve practice and grading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from math import inf, isclose, isfinite, isnan, prod, sqrt
from typing import TYPE_CHECKING

from autograde.rubric.kinds import KINDS, Kind, same_error
from autograde.rubric.recording import Case, Outcome
from autograde.values.base import Difference, Plain, differs, shorten

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


ALIKE_READINGS = 1e-3
"""The relative tolerance of two readings of one mistake: last bits differ by processor."""


@dataclass(frozen=True)
class Reading:
    """One number read off an outcome; it is right within `limit` of `wanted`.

    If it is wrong, a student sees `symptom`, or the two numbers where there is none.
    """

    what: str
    value: float
    wanted: float
    limit: float
    symptom: str = ""

    @property
    def distance(self) -> float:
        off = abs(self.value - self.wanted)
        if not isfinite(off) or not self.limit:
            return inf if off else 0.0
        return off / self.limit


class Unreadable(Exception):
    """The outcome does not have the form that the check needs; the message says what it is."""


Check = Callable[[Plain, Plain], list[Reading]]
"""(outcome's value, arguments) -> readings; raises Unreadable."""


class Checked(Kind):
    """A result that can be right in many ways: a check reads numbers off it, each with a limit."""

    tolerance: float | None = 1.0  # a check measures in units of its own limit

    def __init__(self, check: Check, *, claim: bool = False) -> None:
        self.check, self.claim = check, claim

    def kept(self, recorded: Outcome) -> Outcome:
        """Keep nothing: where several results are right, the reference's would give one away."""
        return Outcome()

    def read(self, got: Outcome, expected: Case) -> Outcome:
        if got.error is not None:
            return got
        try:
            readings = [astuple(each) for each in self.check(got.value, expected.before)]
            self.compare_values(readings, None)  # fails here where what a check gives is no reading
        except Unreadable as error:
            return Outcome(error="ContractBroken", message=shorten(str(error)))
        except Exception as error:
            # in grading the value may be anything: a value that a check cannot read is not right
            said = shorten(f"the check {self.check.__name__} cannot read the result: {error}")
            return Outcome(error="ContractBroken", message=said)
        return Outcome(value=[list(reading) for reading in readings])

    def compare_values(self, got: Plain, expected: Plain) -> Difference:
        return worst([Reading(*reading) for reading in got])

    def alike(self, got: Outcome, known: Outcome, tolerance: float) -> bool:
        if got.error is not None or known.error is not None:
            return same_error(got, known)
        return len(got.value) == len(known.value) and all(
            isclose(a, b, rel_tol=ALIKE_READINGS, abs_tol=limit) or (isnan(a) and isnan(b))
            for (_, a, _, limit, _), (_, b, _, _, _) in zip(got.value, known.value, strict=True)
        )

    def telling(self, outcome: Outcome) -> bool:
        return False


def check(function: Check) -> Check:
    """Register a function as a check under its own name.

    Raises:
        ValueError: another check, or a kind of line, has that name.
    """
    return _registered(function, claim=False)


def claim(function: Check) -> Check:
    """Decorate a function to make it a check that a constant passes: it needs no drawn input."""
    return _registered(function, claim=True)


def _registered(function: Check, *, claim: bool) -> Check:
    name, known = function.__name__, KINDS.get(function.__name__)
    home = known.check.__module__ if isinstance(known, Checked) else Kind.__module__
    if known and home != function.__module__:
        raise ValueError(f"{home} has a check {name} too: rename one")
    KINDS[name] = Checked(function, claim=claim)
    return function


def share_of(what: str, hits: Tensor | np.ndarray, wanted: float) -> Reading:
    """Return the share of True among independent entries; its limit is six standard errors."""
    entries = prod(hits.shape)
    limit = 6 * sqrt(wanted * (1 - wanted) / entries)
    return Reading(what, float(hits.sum()) / entries, wanted, limit)


def worst(readings: list[Reading]) -> Difference:
    """Return the worst reading as a difference, in units of its limit."""
    if not readings:
        return differs("gives its check nothing to measure")
    found = max(readings, key=lambda reading: reading.distance)
    both = (found.value, found.wanted)
    value, wanted = (f"{x:.0f}" if 1000 <= abs(x) < 1e15 else f"{x:.3g}" for x in both)
    named = f"{found.what} is {value}, expected {wanted}"
    text = found.symptom or named
    return Difference(found.distance, note=f"{text[0].upper()}{text[1:]}.")
