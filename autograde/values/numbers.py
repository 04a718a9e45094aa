"""Arrays of numbers: how far apart two are, where they differ first, and how in words.

Tensors, NumPy arrays and columns of pandas are compared here, all as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import inf, isclose, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autograde.values.base import (
    LARGEST,
    SAME,
    Difference,
    Table,
    Tables,
    differs_in,
    dtype_of,
    in_one_format,
    numeral,
    numerals,
)

Array = NDArray[Any]

SEEN = 1e-4
"""An entry off by more than this share of the largest expected one is shown before others."""
ROUNDING = 1e-13
"""A float64 below this share of the largest expected one is shown as 0."""


def apart(got: Any, expected: Any, as_array: Callable[[Any], Array]) -> Difference:
    """Return the difference of arrays or tensors: shape and dtype first, then the numbers."""
    one, two = as_array(got), as_array(expected)
    if one.shape != two.shape:
        same = comparable(one, two) and same_numbers(one, two)
        note = "The numbers are right." if same else ""
        return differs_in("shape", one.shape, two.shape, (got, expected), note)
    if not same_type(got, expected):
        return differs_in("dtype", dtype_of(got), dtype_of(expected), (got, expected))

    def worded(got: Any, expected: Any, near: float) -> tuple[str, str, str]:
        return in_words(as_array(got), as_array(expected), near)

    far = distance(one, two)
    return Difference(far, pair=(got, expected), worded=worded) if far else SAME


def same_type(got: Any, expected: Any) -> bool:
    """Return whether two dtypes are the same; the room for text and a time's unit do not count."""
    loose = getattr(expected.dtype, "kind", "") in ("S", "U", "m", "M")
    return bool(_sort(got.dtype) == _sort(expected.dtype) if loose else got.dtype == expected.dtype)


def comparable(got: Array, expected: Array) -> bool:
    """Return whether the entries of two arrays have a distance."""
    return _sort(got.dtype) == _sort(expected.dtype)


def _sort(dtype: np.dtype[Any]) -> str:
    """Return one name for all dtypes whose entries have a distance."""
    if dtype.kind == "m" and np.datetime_data(dtype)[0] in ("Y", "M"):
        return "months"  # NumPy cannot say how many days they have
    return "number" if dtype.kind in "biufc" else dtype.kind


def distance(got: Array, expected: Array) -> float:
    """Return the largest error of an entry, in units of the largest finite expected entry.

    nan and inf are equal to themselves and infinitely far from everything else. Whole numbers
    that differ are at least 1 apart.
    """
    if (got == expected).all():  # as arguments are that a call has left alone
        return 0.0
    errors = _errors(got, expected)
    largest = float(errors.max(initial=0.0))
    if largest == 0:
        return 0.0
    scale = _scale(expected)
    relative = largest / scale if scale else inf
    return max(relative, 1.0) if _whole(got) and _whole(expected) else relative


def _whole(numbers: Array) -> bool:
    return numbers.dtype.kind in "iu"


def _wide(numbers: Array) -> Array:
    """Return numbers in double precision."""
    return numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)


def _scale(expected: Array) -> float:
    if expected.dtype.kind not in "biufc":
        return 1.0
    wide = np.abs(_wide(expected))
    return float(wide[np.isfinite(wide)].max(initial=0.0))


def _errors(got: Array, expected: Array) -> NDArray[np.float64]:
    same = np.asarray(got == expected)
    if expected.dtype.kind in "mM":
        same |= np.isnat(got) & np.isnat(expected)
    if expected.dtype.kind not in "biufc":
        return np.where(same, 0.0, inf)
    if _whole(got) and _whole(expected):
        apart = np.maximum(np.abs(_wide(got) - _wide(expected)), 1.0)
        return np.where(same, 0.0, apart)
    got, expected = _wide(got), _wide(expected)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got - expected)
    return np.where(same, 0.0, np.nan_to_num(apart, nan=inf, posinf=inf))


def first_difference(got: Array, expected: Array, near: float) -> tuple[int, ...]:
    """Return the place of the first entry that is clearly off, or else of the one most off."""
    errors = _errors(got, expected)
    clear = errors > _unseen(got, expected, max(SEEN, near))
    return _place(int(clear.argmax()) if clear.any() else int(errors.argmax()), errors)


def _place(flat: int, of: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, of.shape))


def wrong_entries(got: Array, expected: Array, near: float) -> NDArray[np.bool_]:
    """Return an array of the shape of both: True where an entry is off."""
    return _errors(got, expected) > _unseen(got, expected, near)


def _unseen(got: Array, expected: Array, near: float) -> float:
    """Return how far an entry may be off and not be called wrong; a whole number not at all."""
    return 0.0 if _whole(got) and _whole(expected) else near * _scale(expected)


def _without_rounding(numbers: Array, scale: float) -> Array:
    """Return float64 numbers with 0 in place of what is 0 but for rounding."""
    if numbers.dtype not in (np.float64, np.complex128):
        return numbers
    clear = numbers.copy()
    for part in (clear.real, clear.imag) if clear.dtype.kind == "c" else (clear,):
        part[np.abs(part) < ROUNDING * scale] = 0
    return clear


def in_words(got: Array, expected: Array, near: float) -> tuple[str, str, str]:
    """Return where two arrays of one shape differ first, how, and what the errors share."""
    place, scale = first_difference(got, expected, near), _scale(expected)
    shown = (_without_rounding(np.asarray(each[place]), scale) for each in (got, expected))
    one, other = numerals(*map(entries, shown))
    at = str(list(place)) if place else ""
    return at, f"is {one}, expected {other}", pattern(got, expected)


def pattern(got: Array, expected: Array) -> str:
    """Return a sentence on what all the errors have in common, or ""."""
    if got.dtype.kind not in "biuf" or expected.dtype.kind not in "biuf":
        return ""
    if got.dtype.kind == "b":
        opposite = np.array_equal(got, np.logical_not(expected))
        return "Every entry is the opposite of what was expected." if opposite else ""
    if got.size <= 1:
        return ""
    got, expected = _wide(got), _wide(expected)
    broken = ~np.isfinite(got) & np.isfinite(expected)
    if broken.any():
        what = "nan" if np.isnan(got[broken]).any() else "infinite"
        return f"{int(broken.sum())} of {got.size} entries are {what}."
    with np.errstate(invalid="ignore", over="ignore"):
        for described in (_factor, _constant, _sums, _order):
            if text := described(got, expected):
                return text
    return ""


def _close(a: Array, b: Array) -> bool:
    return a.shape == b.shape and distance(a, b) < 1e-4


def same_numbers(got: Array, expected: Array) -> bool:
    """Return whether two arrays hold the same numbers in the same order, whatever their shapes."""
    return got.size == expected.size and _close(got.reshape(-1), expected.reshape(-1))


def factor_between(got: Any, expected: Any) -> float:
    """Return the number times which the expected ones come nearest the result's; 0 if none does."""
    size = float((expected * expected).sum())
    factor = float((got * expected).sum()) / size if size else 0.0
    return factor if isfinite(factor) else 0.0


def _factor(got: Array, expected: Array) -> str:
    factor = factor_between(got, expected)
    if abs(factor - 1) > 1e-3 and factor != 0 and _close(got, factor * expected):
        if isclose(factor, -1, rel_tol=1e-3):
            return "Every entry has the wrong sign."
        return f"Every entry is {factor:.3g} times what was expected."
    return ""


def _sums(got: Array, expected: Array) -> str:
    if np.isin(expected, (0, 1)).all():  # an identity or a mask, not shares of a whole
        return ""
    for axis, name in ((-1, "Row"), (-2, "Column")):
        if got.ndim < -axis:
            continue
        sums, wanted = np.asarray(got.sum(axis)), np.asarray(expected.sum(axis))
        off = np.abs(sums - 1)
        if _close(wanted, np.ones_like(wanted)) and off.max(initial=0.0) > 0.005:
            worst = _place(int(off.argmax()), off)
            place = list(worst)
            where = f" {place[0] if len(place) == 1 else place}" if place else ""
            return f"{name}{where} sums to {float(sums[worst]):.2f}, expected 1."
    return ""


def _constant(got: Array, expected: Array) -> str:
    first = got.reshape(-1)[0]
    return f"Every entry is {numeral(float(first))}." if bool((got == first).all()) else ""


def _order(got: Array, expected: Array) -> str:
    if got.ndim >= 2 and _close(got, np.swapaxes(expected, -1, -2)):
        return "The numbers are right, but rows and columns are swapped."
    several = got.ndim >= 2 and got.shape[-2] > 1
    if several and _close(got, np.broadcast_to(got[..., :1, :], got.shape)):
        return "Every row is the same."
    ordered = np.sort(got.reshape(-1)), np.sort(expected.reshape(-1))
    if _close(*ordered) and not _close(got, expected):
        return "The numbers are right, but in the wrong places."
    return ""


def side_by_side(got: Array, expected: Array, where: str, near: float) -> Tables:
    """Return tables of two arrays that differ, each the part around the first difference."""
    if expected.size == 0 or (got.size <= 1 and expected.size <= 1):
        return None, None
    scale = _scale(expected)
    shown = [_without_rounding(each, scale) for each in (got, expected)]
    if got.shape != expected.shape or not comparable(got, expected):
        one, two = (_table(each, (0,) * each.ndim, where) for each in shown)
        return one, two
    place, wrong = first_difference(got, expected, near), wrong_entries(got, expected, near)
    if not wrong.any():
        return None, None
    got, expected = shown
    return _table(got, place, where, wrong), _table(expected, place, where)


def in_full(array: Array) -> Table | None:
    """Return a small array as a table, its matrices one below the other; None if it is large."""
    if array.size == 0 or array.ndim == 0:
        return None
    rows = array.reshape(-1, array.shape[-1])
    if max(rows.shape) > LARGEST:
        return None
    below = ", one matrix below the other" if array.ndim > 2 and array.shape[0] > 1 else ""
    return Table(f"shape {tuple(array.shape)}{below}", _lines(rows))


def _lines(matrix: Array) -> tuple[tuple[str, ...], ...]:
    """Return the entries of a matrix as text, in one format."""
    lines = entries(matrix)
    texts = iter(in_one_format([x for line in lines for x in line]))
    return tuple(tuple(islice(texts, len(line))) for line in lines)


def _table(
    array: Array, place: tuple[int, ...], where: str, wrong: NDArray[np.bool_] | None = None
) -> Table:
    """Return the part of an array around a place as a table, wrong entries marked."""
    shape = f"shape {tuple(array.shape)}"
    if array.size == 0:
        return Table(shape, ())
    marks = np.zeros(array.shape, dtype=bool) if wrong is None else wrong
    matrix, marked = (np.atleast_2d(each[place[:-2]]) for each in (array, marks))
    row, column = (0, 0, *place)[-2:]
    rows, columns = around(row, matrix.shape[0]), around(column, matrix.shape[1])
    caption = [shape, where]
    if array.ndim > 2:
        caption.append(f"at {list(place[:-2])}")
    if max(matrix.shape) > LARGEST:
        caption.append(
            f"rows {rows.start}-{rows.stop - 1}, columns {columns.start}-{columns.stop - 1}"
        )
    return Table(
        ", ".join(filter(None, caption)),
        _lines(matrix[rows, columns]),
        tuple((int(i), int(j)) for i, j in np.argwhere(marked[rows, columns])),
    )


def entries(array: Array) -> Any:
    """Return entries as Python's own numbers and text; times as text, which keep their unit."""
    if array.dtype.kind == "M":
        return np.datetime_as_string(array, unit="auto").tolist()
    return (array.astype(str) if array.dtype.kind == "m" else array).tolist()


def around(index: int, size: int) -> slice:
    """Return the part to show: everything, or as much as a table holds around an index."""
    start = max(0, min(index - LARGEST // 2, size - LARGEST))
    return slice(start, min(start + LARGEST, size))
