"""Dates, spans of time and Fractions, compared exactly; Decimals, but for their rounding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

from autograde.values import differences, python
from autograde.values.base import SAME, Difference, Plain, Unrecordable, Within, moment, shorten

ROUNDED = Decimal("1e-24")
"""The relative error of Decimals that only rounding to 28 digits explains."""
UNTRAPPED = Context(prec=28, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def to_plain(value: Any, within: Within) -> Plain:
    """Return a date, a span, a Decimal or a Fraction, of a class of one's own as its parent."""
    match value:
        case datetime():  # a time zone is recorded as its offset from UTC
            return datetime.fromisoformat(value.isoformat())
        case date():
            return date(value.year, value.month, value.day)
        case timedelta():
            return timedelta(value.days, value.seconds, value.microseconds)
        case Decimal() if not value.is_snan():
            return Decimal(value)
        case Fraction():
            numbers = value.numerator, value.denominator
            long = any(isinstance(python.to_plain(each, ()), Unrecordable) for each in numbers)
            return Unrecordable("a Fraction of thousands of digits") if long else Fraction(*numbers)
    return python.to_plain(value, within)


def apart(got: Plain, expected: Plain) -> Difference:
    """Return the difference of two values: none, or one without a distance."""
    got = moment(got)
    if type(got) in (type(expected), int) and got == expected:
        return SAME
    if isinstance(got, Decimal) and isinstance(expected, Decimal) and _near(got, expected):
        return SAME
    return differences.other(got, expected)


def _near(got: Decimal, expected: Decimal) -> bool:
    """Return whether two Decimals are both nan, or one number but for the last digits."""
    if not expected.is_finite():
        return got.is_nan() and expected.is_nan()
    if not got.is_finite():
        return False
    error = UNTRAPPED.abs(UNTRAPPED.subtract(got, expected))
    allowed = UNTRAPPED.multiply(UNTRAPPED.abs(expected), ROUNDED)
    return bool(UNTRAPPED.compare(error, allowed) <= 0)


def describe(value: Plain) -> str:
    return shorten(repr(value))


def says_much(value: Plain) -> bool:
    return isinstance(value, date) or value not in (type(value)(0), type(value)(1))


copied, cast_like = python.copied, python.cast_like
side_by_side, in_full = python.side_by_side, python.in_full


def to_text(value: Plain) -> tuple[str, str]:
    """Return the name of a value's type, and the value as text."""
    match value:
        case date():
            return type(value).__name__, value.isoformat()
        case timedelta():
            return "timedelta", str(value // timedelta(microseconds=1))
    return type(value).__name__, str(value)


def _fraction(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")  # Fraction itself would compute 1e999999999
    return Fraction(int(numerator), int(denominator or 1))


READ: dict[str, Callable[[str], Plain]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timedelta": lambda text: timedelta(microseconds=int(text)),
    "Decimal": Decimal,
    "Fraction": _fraction,
}
"""How the text of `to_text` is read, by the name of the type."""


def from_text(name: str, text: str) -> Plain:
    """Return the value that `to_text` made text of."""
    return to_plain(READ[name](str(text)), ())
