"""The base of all values: plain data, objects by their parts, and how two values differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from autograde.values.text import short

MAX_ENTRIES = 1_000_000
"""The most entries of a tensor or an array that is recorded."""
TOO_MANY = f"more than {MAX_ENTRIES:,} entries"
"""What is said of a larger one."""
MAX_KEYS = 5_000
"""The most items of a set, or keys of a dict that are not text: a made-up set of more could be
built to make hashing slow."""
MAX_NESTING = 12
"""The most containers within each other."""

LARGEST = 8
"""The most rows and columns of a table; of a larger value, only a part is shown."""
FEW = 6
"""Fewer entries of 0, or characters, than this say little."""

NEAR = 1e-5
"""Numbers this close differ by rounding: they are not marked as wrong, and show no slip."""

Plain = Any
"""A number, text, bytes, None, one of EXACT_TYPES, a list, tuple, set or dict of such, a tensor, an
array, a Structure."""

EXACT_TYPES = (date, timedelta, Decimal, Fraction)
"""The types of `exact`; a datetime is a date."""

Within = tuple[int, ...]
"""The containers that hold a value, each by its `id`, the outermost first."""


class BadData(ValueError):
    """The bytes are not what `pack` writes; the message says why."""


@dataclass(frozen=True)
class Structure:
    """An object by what it is, the name of its type, and its parts by name."""

    what: str
    name: str
    parts: dict[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True)
class Unrecordable:
    """Stands for a value that cannot be recorded: in words, what it is."""

    what: str


@dataclass(frozen=True)
class Table:
    """Entries as text, row by row; `wrong` holds the places (row, column) of entries to mark.

    `columns` and `labels` are the names of columns and rows, where they have names; to mark one,
    `wrong` holds (-1, column) or (row, -1). Text stands on the `left` of its column, numbers
    on the right. `since` holds, by row, the character where a text and the one beside it part.
    """

    caption: str
    rows: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[int, int], ...] = ()
    columns: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    left: bool = False
    since: dict[int, int] = field(default_factory=dict)


Tables = tuple[Table | None, Table | None]
"""The table of a result and that of what was expected; None where there is nothing to lay out."""


@dataclass(frozen=True)
class Difference:
    """A difference from an expected value; `distance` is relative to the size of that value.

    `at` and `symptom` complete the call as a sentence: `answer(3)`, `[0, 0]`, "is True,
    expected False". `note` is a sentence of its own. `pair` are a result and what was expected,
    to be laid out side by side, and `pair_at` their place. `worded` describes a difference of
    their numbers, which takes much longer than the distance.
    """

    distance: float
    symptom: str = ""
    at: str = ""
    note: str = ""
    pair: tuple[Plain, Plain] | None = None
    pair_at: str = ""
    worded: Callable[[Plain, Plain, float], tuple[str, str, str]] | None = None

    def in_words(self, near: float = NEAR) -> Difference:
        """Return the same difference with all its words; numbers this near are not named."""
        if self.worded is None:
            return self
        got, expected = self.pair or (None, None)
        place, symptom, note = self.worded(got, expected, near)
        at = joined(self.at, place)
        return replace(self, symptom=symptom, at=at, note=note, worded=None)

    def inside(self, at: str, got: Plain, expected: Plain) -> Difference:
        """Return the difference as one of the values that hold it, in which its place is `at`."""
        if not self.distance:
            return self
        pair, place = (self.pair, joined(at, self.pair_at)) if self.pair else ((got, expected), "")
        return replace(self, at=joined(at, self.at), pair=pair, pair_at=place)


SAME = Difference(0.0)


def differs(symptom: str, note: str = "", pair: tuple[Plain, Plain] | None = None) -> Difference:
    """Return the difference of values that cannot be compared by number."""
    return Difference(inf, symptom, note=note, pair=pair)


def differs_in(
    trait: str, got: Any, expected: Any, pair: tuple[Plain, Plain] | None = None, note: str = ""
) -> Difference:
    """Return the difference of values with another shape, dtype or name than expected."""
    return differs(f"has the {trait} {got}, expected {expected}", note, pair)


def worst_inside(
    differences: Iterable[tuple[str, Difference]], got: Plain, expected: Plain
) -> Difference:
    """Return the largest difference of what two containers hold, each with its place in them."""
    at, found = "", SAME
    for place, each in differences:
        if each.distance > found.distance:
            at, found = place, each
        if each.distance == inf:  # none is larger
            break
    return found.inside(at, got, expected)


def inside(value: Plain) -> Iterator[Plain]:
    """Yield what a container holds."""
    match value:
        case list() | tuple() | set() | frozenset():
            yield from value
        case dict():
            yield from value.values()
        case Structure():
            yield from value.parts.values()


def dtype_of(value: Any) -> str:
    """Return the name of the dtype of an array or a tensor."""
    return str(value.dtype).removeprefix("torch.")


def float_types(value: Plain) -> set[str]:
    """Return the names of the floating-point types of tensors and arrays in plain data."""
    if hasattr(value, "dtype"):
        return {dtype_of(value)} if "float" in dtype_of(value) else set()
    return set[str]().union(*map(float_types, inside(value)))


def unrecordable(value: Plain) -> str:
    """Return what in plain data could not be recorded, in words, or ""."""
    match value:
        case Unrecordable():
            return value.what
        case Structure("function" | "class"):
            return f"a {value.what} ({value.name})" if value.name else f"a {value.what}"
    return next(filter(None, map(unrecordable, inside(value))), "")


def joined(at: str, inner: str) -> str:
    """Return a place within another in words: `, losses at [2]`."""
    index = inner.startswith(("[", "."))
    return f"{at} at {inner}" if index and at[-1:].isalnum() else at + inner


def first_difference(one: str, other: str) -> int:
    """Return the place of the first character in which two texts differ."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def shorten(text: str, limit: int = 160) -> str:
    """Return the text on one line, cut off at the limit."""
    return short(" ".join(text.split()), limit)


def counted(count: int, noun: str) -> str:
    """Return a count in words: 1 item, 2 items."""
    return f"{count} {noun}{'s' * (count != 1)}"


def numerals(got: Any, expected: Any) -> tuple[str, str]:
    """Return two entries as text, numbers with as many digits as it takes to tell them apart."""
    for digits in (4, 7, 12, 17):
        one, other = numeral(got, digits), numeral(expected, digits)
        if not (isinstance(got, float) and isinstance(expected, float)):
            break
        if float(one) != float(other):
            break
    return one, other


def numeral(x: Any, digits: int = 4) -> str:
    """Return an entry as text: four decimals, fewer for whole and for large numbers."""
    if isinstance(x, complex):
        sign = "" if x.imag < 0 else "+"
        return f"{numeral(x.real, digits)}{sign}{numeral(x.imag, digits)}j"
    if not isinstance(x, float):
        return short(repr(x), 160)
    if not isfinite(x):
        return str(x)
    if abs(x) < 1e15 and x == int(x):
        return str(int(x))
    if 1e-3 <= abs(x) < 1e4:
        return f"{x:.{digits}f}"
    return f"{x:.{digits}g}"


def in_one_format(items: Sequence[Any]) -> list[str]:
    """Return entries as text; all that are floats with four decimals, if one of them needs them."""
    texts = [numeral(item) for item in items]
    floats = [i for i, item in enumerate(items) if isinstance(item, float)]
    if any(texts[i][-5:-4] == "." and "e" not in texts[i] for i in floats):
        for i in floats:
            texts[i] += ".0000" * texts[i].lstrip("-").isdigit()
    return texts


def moment(value: Plain) -> Plain:
    """Return the datetime or the span that an array of no dimensions holds, such as a Timestamp.

    Anything else is returned as it is.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("m", "M") and not value.ndim:
        return value.astype(f"{kind}8[us]").item()
    return value
