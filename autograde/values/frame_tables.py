"""Records of DataFrames, Series and Indexes: their columns, which dtypes are alike, as tables."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

import numpy as np

from autograde.values import dispatch, numbers
from autograde.values.base import (
    LARGEST,
    NEAR,
    Plain,
    Structure,
    Table,
    Tables,
    in_one_format,
)
from autograde.values.layout import WIDEST, brief, differ
from autograde.values.text import short

TEXT = "text"
"""The name for both of pandas' dtypes of text, `object` and `str`."""

NULLABLE = {
    "boolean",
    "Float64",
    *(f"{kind}{n}" for kind in ("Int", "UInt") for n in (8, 16, 32, 64)),
}
"""pandas' dtypes that hold what NumPy's do, and missing values too."""


def items(column: Plain) -> list[Plain]:
    """Return what a column holds, as plain values."""
    if isinstance(column, Structure):
        return list(column.parts["items"])
    return list(numbers.entries(column))


def shape(value: Structure) -> tuple[int, ...]:
    """Return the number of rows, and of a DataFrame the number of columns."""
    if value.what == "Index":
        return (length(value.parts["labels"]),)
    rows = length(value.parts["index"].parts["labels"])
    return (rows, len(value.parts["data"])) if value.what == "DataFrame" else (rows,)


def side_by_side(got: Plain, expected: Structure, where: str, near: float) -> Tables:
    if not isinstance(got, Structure) or got.what not in dispatch.STRUCTURES:
        return None, None
    wrong = _wrong(got, expected, near)
    row, column = (wrong or [(0, 0)])[0]
    marked = [
        *wrong,
        *((i, -1) for i in _wrong_labels(got, expected, "index", row)),
        *((-1, j) for j in _wrong_labels(got, expected, "columns", column)),
    ]
    return _table(got, row, column, where, marked), _table(expected, row, column, where, [])


def in_full(value: Structure) -> Table | None:
    small = max(shape(value)) <= LARGEST
    return _table(value, 0, 0, "", []) if small else None


def _wrong(got: Structure, expected: Structure, near: float) -> list[tuple[int, int]]:
    """Return the entries of a result that differ from the expected ones at the same place."""
    mine, wanted = columns(got), columns(expected)
    places = []
    for j, column in enumerate(mine):
        other = wanted[j] if j < len(wanted) else None
        places += [(i, j) for i in _wrong_rows(kept_alike(column, other), other, near)]
    return sorted(places)


def _wrong_labels(got: Structure, expected: Structure, axis: str, place: int) -> list[int]:
    """Return the places of an axis's labels, of those shown, that are not as expected."""
    if axis not in got.parts or axis not in expected.parts:
        return []
    labels = [each.parts[axis].parts["labels"] for each in (got, expected)]
    other_times = times(labels[0]) != times(labels[1])
    mine, wanted = map(items, labels)
    shown = numbers.around(place, len(mine))
    return [
        i
        for i, label in enumerate(mine[shown], start=shown.start)
        if other_times or i >= len(wanted) or differ(label, wanted[i], NEAR)
    ]


def _wrong_rows(got: Plain, expected: Plain, near: float) -> Iterable[int]:
    """Return the rows in which two columns differ."""
    if expected is None or type(got) is not type(expected) or length(got) != length(expected):
        return range(length(got))
    if isinstance(got, Structure):
        pairs = enumerate(zip(items(got), items(expected), strict=True))
        return [i for i, pair in pairs if differ(*pair, near)]
    if not numbers.same_type(got, expected):
        return range(length(got))
    return [int(i) for i in numbers.wrong_entries(got, expected, near).nonzero()[0]]


def columns(value: Structure) -> list[Plain]:
    """Return the columns of an object."""
    if value.what == "Index":
        return [value.parts["labels"]]
    data = value.parts["data"]
    return list(data) if value.what == "DataFrame" else [data]


def kept_alike(column: Plain, expected: Plain) -> Plain:
    """Return a column in the expected one's dtype, where both dtypes are for the same values.

    For the plain dtypes of numbers and text pandas has others, nullable ones and categories. Of
    whole numbers the width does not count, and they may stand where floats are expected.
    """
    if isinstance(expected, Structure):
        same = isinstance(column, Structure) and (column.name, expected.name) == ("category", TEXT)
        return Structure("Column", TEXT, column.parts) if same else column
    plain = column
    if isinstance(column, Structure) and column.name in NULLABLE:
        entries = [nan if item is None else item for item in items(column)]
        if all(isinstance(entry, bool | int | float) for entry in entries):
            plain = np.array(entries)
    if not (isinstance(plain, np.ndarray) and isinstance(expected, np.ndarray)):
        return column
    whole = plain.dtype.kind in "iu" and expected.dtype.kind in "iuf"
    with np.errstate(over="ignore"):
        if whole and (plain == (cast := plain.astype(expected.dtype))).all():
            return cast
    return plain if plain.dtype == expected.dtype else column


def length(column: Plain) -> int:
    """Return the number of values in a column."""
    return len(column.parts["items"] if isinstance(column, Structure) else column)


def _table(
    value: Structure, row: int, column: int, where: str, wrong: list[tuple[int, int]]
) -> Table:
    """Return the part of an object around a place as a table, with its labels."""
    cells = columns(value)
    down, across = numbers.around(row, shape(value)[0]), numbers.around(column, len(cells))
    shown = [_part(each, down) for each in cells[across]]
    caption = [f"{value.what} of shape {shape(value)}", where]
    if value.what == "Series":
        caption.insert(1, f"name {brief(value.parts['name'])}")
    for axis in ("index", "columns"):
        if axis in value.parts and (named := value.parts[axis].parts["names"]) != [None]:
            caption.append(f"{axis} named {', '.join(map(brief, named))}")
    return Table(
        ", ".join(filter(None, caption)),
        tuple(zip(*shown, strict=True)),
        tuple(
            (i - down.start * (i >= 0), j - across.start * (j >= 0))
            for i, j in wrong
            if (i < 0 or down.start <= i < down.stop) and (j < 0 or across.start <= j < across.stop)
        ),
        _labels(value, "columns", across),
        _labels(value, "index", down),
    )


def _part(column: Plain, rows: slice) -> list[str]:
    part = column.parts["items"][rows] if isinstance(column, Structure) else column[rows]
    plain = part if isinstance(part, list) else numbers.entries(part)
    if times(column):
        return [str(time) for time in plain]
    return [short(text, 40) for text in in_one_format(plain)]


def _labels(value: Structure, axis: str, part: slice) -> tuple[str, ...]:
    if axis not in value.parts:
        return ()
    labels = items(value.parts[axis].parts["labels"])[part]
    texts = (x if isinstance(x, str) else brief(x) for x in labels)
    return tuple(short(" ".join(text.splitlines()), 40) for text in texts)


def in_brief(labels: Plain) -> str:
    """Return labels as one would write them; times without quotation marks, as pandas has them."""
    held = items(labels)
    return short(f"[{', '.join(map(str, held))}]", WIDEST) if times(labels) else brief(held)


def times(column: Plain) -> str:
    """Return which kind of times a column or labels hold, or ""; as items all times are text."""
    if isinstance(column, Structure):
        return "with a zone" if column.name.startswith("datetime64[") else ""
    return column.dtype.kind if column.dtype.kind in "mM" else ""
