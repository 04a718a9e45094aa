"""Records of DataFrames, Series and Indexes as tables, with their labels."""

from __future__ import annotations

from autograde.values import dispatch, numbers
from autograde.values.base import Plain, Record, Table, Tables, numeral, shorten
from autograde.values.layout import brief

NEAR = 1e-5
"""Numbers as near as this are not marked as wrong."""


def items(column: Plain) -> list[Plain]:
    """Return what a column holds, as plain values."""
    if isinstance(column, Record):
        return list(column.parts["items"])
    return list(numbers.entries(column))


def shape(value: Record) -> tuple[int, ...]:
    if value.kind == "Index":
        return (len(items(value.parts["labels"])),)
    rows = len(items(value.parts["index"].parts["labels"]))
    return (rows, len(value.parts["data"])) if value.kind == "DataFrame" else (rows,)


def side_by_side(got: Plain, expected: Record, where: str) -> Tables:
    """Return two DataFrames, Series or Indexes as tables, with their labels."""
    if not isinstance(got, Record) or got.kind not in dispatch.RECORDS:
        return None, None
    wrong = _wrong(got, expected)
    row, column = (wrong or [(0, 0)])[0]
    return _table(got, row, column, where, wrong), _table(expected, row, column, where, [])


def _wrong(got: Record, expected: Record) -> list[tuple[int, int]]:
    """Return the entries of a result that differ from the expected ones at the same place."""
    mine, wanted = _cells(got), _cells(expected)
    places = []
    for j, column in enumerate(mine):
        other = wanted[j] if j < len(wanted) else []
        places += [
            (i, j)
            for i, item in enumerate(column)
            if i >= len(other) or dispatch.apart(item, other[i]).distance > NEAR
        ]
    return sorted(places)


def _cells(value: Record) -> list[list[Plain]]:
    """Return the values of an object, column by column."""
    if value.kind == "Index":
        return [items(value.parts["labels"])]
    data = value.parts["data"]
    return [items(column) for column in (data if value.kind == "DataFrame" else [data])]


def _table(value: Record, row: int, column: int, where: str, wrong: list[tuple[int, int]]) -> Table:
    """Return the part of an object around a place as a table, with its labels."""
    cells = _cells(value)
    count = len(cells[0]) if cells else 0
    rows, columns = numbers.around(row, count), numbers.around(column, len(cells))
    labels, names = _labels(value, "index"), _labels(value, "columns")
    caption = [f"{value.kind} of shape {shape(value)}", where]
    if value.kind == "Series":
        caption.insert(1, f"name {brief(value.parts['name'])}")
    return Table(
        ", ".join(filter(None, caption)),
        tuple(tuple(shorten(numeral(c[i]), 40) for c in cells[columns]) for i in _range(rows)),
        tuple(
            (i - rows.start, j - columns.start)
            for i, j in wrong
            if i in _range(rows) and j in _range(columns)
        ),
        tuple(_label(name) for name in names[columns]),
        tuple(_label(label) for label in labels[rows]),
    )


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def _labels(value: Record, axis: str) -> list[Plain]:
    return items(value.parts[axis].parts["labels"]) if axis in value.parts else []


def _label(label: Plain) -> str:
    return shorten(label if isinstance(label, str) else brief(label), 40)
