"""Checks of outcomes that can be right in many ways.

Each is a pure function from a recorded outcome to readings: a number measured, the number wanted,
and the limit of their difference. The same functions serve practice and grading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, prod, sqrt
from typing import TYPE_CHECKING

from autograde.values.base import Difference, Plain, differs

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


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

CHECKS: dict[str, Check] = {}
"""Every check that is imported, by the name that rubrics and probes use."""

CLAIMS: set[Check] = set()
"""Checks that depend on no drawn input, so that a constant passes them."""


def check(function: Check) -> Check:
    """Register a function as a check under its own name.

    Raises:
        ValueError: another check has that name.
    """
    known = CHECKS.get(function.__name__, function)
    if known.__module__ != function.__module__:
        raise ValueError(f"{known.__module__} has a check {function.__name__} too: rename one")
    CHECKS[function.__name__] = function
    return function


def claim(function: Check) -> Check:
    """Decorate a function to make it a check that a constant passes."""
    CLAIMS.add(function)
    return check(function)


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
    named = f"{found.what} is {found.value:.3g}, expected {found.wanted:.3g}"
    text = found.symptom or named
    return Difference(found.distance, note=f"{text[0].upper()}{text[1:]}.")
