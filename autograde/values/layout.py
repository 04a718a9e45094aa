"""A result and what was expected, containers and text, as two small tables with a row an item."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import isfinite

from autograde.values import dispatch
from autograde.values.base import (
    LARGEST,
    Plain,
    Structure,
    Table,
    Tables,
    Unrecordable,
    counted,
    first_difference,
    in_one_format,
    numeral,
)
from autograde.values.text import short

WIDEST = 60
"""The most characters of an entry."""
MOST_COMPARED = 200
"""The most items of a set that an item is compared with, to see whether one is near."""
COMPARED = (list | tuple | Structure, set | frozenset, dict, str, bytes)
"""Values of one of these kinds are compared row by row."""

MISSING = object()
"""What stands for the item that a missing row would hold."""
Row = tuple[str, Plain]
"""The name of a row, such as a key, and what stands in it."""


def side_by_side(got: Plain, expected: Plain, where: str, near: float) -> Tables:
    mine, wanted = _rows(got), _rows(expected)
    if mine is None or wanted is None:
        return None, None
    if isinstance(got, dict | Structure) and isinstance(expected, dict | Structure):
        order = {name: place for place, (name, _) in enumerate(wanted)}
        mine.sort(key=lambda row: order.get(row[0], len(order)))
    if not any(isinstance(got, kind) and isinstance(expected, kind) for kind in COMPARED):
        return _table(got, mine, where), _table(expected, wanted, where)
    wrong = _wrong(mine, wanted, got, near)
    missing = len(mine) if len(mine) < len(wanted) else 0
    start = max(0, min((wrong or [missing])[0] - 1, max(len(mine), len(wanted)) - LARGEST))
    return (
        _table(got, mine, where, start, wrong, _beside(mine, wanted, got)),
        _table(expected, wanted, where, start, [], _beside(wanted, mine, expected)),
    )


def in_full(value: Plain) -> Table | None:
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return None
    rows = _rows(value) or []
    return _table(value, rows, "") if 0 < len(rows) <= LARGEST else None


def _rows(value: Plain) -> list[Row] | None:
    match value:
        case dict():
            return [(numeral(key), item) for key, item in value.items()]
        case Structure():
            return [*value.parts.items()]
        case list() | tuple():
            return [(str(i), item) for i, item in enumerate(value)]
        case set() | frozenset():
            return [("", item) for item in sorted(value, key=_order)]
        case str():
            lines = value.splitlines(keepends=True) or [""]
            return [(str(i + 1) if len(lines) > 1 else "", line) for i, line in enumerate(lines)]
        case bytes():
            return [("", value)]
    return None


def _order(item: Plain) -> tuple[bool, float, str]:
    """Return by what the items of a set are shown in order: numbers first, by size."""
    number = isinstance(item, int | float)
    return (not number, float(min(max(item, -1e300), 1e300)) if number else 0.0, repr(item))


def _wrong(mine: list[Row], wanted: list[Row], got: Plain, near: float) -> list[int]:
    """Return the places of rows that are not as expected."""
    if isinstance(got, set | frozenset):
        items = {item for _, item in wanted}
        alone = [i for i, (_, item) in enumerate(mine) if item not in items][:LARGEST]
        others = [*items][:MOST_COMPARED]
        return [i for i in alone if all(differ(mine[i][1], other, near) for other in others)]
    found, others = [item for _, item in mine], _beside(mine, wanted, got)
    pairs = enumerate(zip(found, others, strict=True))
    if isinstance(got, list) and all(isinstance(x, float) for x in (*found, *others)):
        far = near * max((abs(other) for other in others if isfinite(other)), default=0.0)
        wrong = (i for i, (one, two) in pairs if one != two and not abs(one - two) <= far)
    else:
        wrong = (i for i, pair in pairs if differ(*pair, near))
    return list(islice(wrong, LARGEST + 1))  # no more are shown


def _beside(rows: list[Row], others: list[Row], value: Plain) -> list[Plain]:
    """Return for each row what stands in that of the same name or place, or MISSING."""
    if isinstance(value, set | frozenset):
        return [MISSING] * len(rows)
    if isinstance(value, dict | Structure):
        named = dict(others)
        return [named.get(name, MISSING) for name, _ in rows]
    beside = [item for _, item in others[: len(rows)]]
    return beside + [MISSING] * (len(rows) - len(beside))


def differ(item: Plain, other: Plain, near: float) -> bool:
    """Return whether an item is marked as wrong beside the one that was expected."""
    return other is MISSING or dispatch.apart(item, other).distance > near


def _table(
    value: Plain,
    rows: list[Row],
    where: str,
    start: int = 0,
    wrong: Sequence[int] = (),
    beside: Sequence[Plain] = (),
) -> Table:
    shown = rows[start : start + LARGEST]
    others = [*beside[start : start + LARGEST]] or [MISSING] * len(shown)
    items = [item for _, item in shown]
    floats = iter(in_one_format([item for item in items if isinstance(item, float)]))
    entries = [
        (next(floats), 0) if isinstance(item, float) else _entry(item, other)
        for item, other in zip(items, others, strict=True)
    ]
    named = isinstance(value, dict | Structure)
    alone = [named and bool(beside) and other is MISSING for other in others]
    caption = [_with_count(value, len(rows)), where]
    if len(rows) > LARGEST and shown:
        last = len(shown) == 1
        places = "the last" if last else f"{start + 1} to {start + len(shown)}"
        caption.append(f"{places} of them")
    labels = tuple(name for name, _ in shown)
    return Table(
        ", ".join(filter(None, caption)),
        tuple((entry,) for entry, _ in entries) or (("empty",),),
        tuple(
            (i - start, -1 if alone[i - start] else 0)  # a key that nobody wanted, or what it holds
            for i in wrong
            if start <= i < start + len(shown)
        ),
        labels=labels if any(labels) else (),
        left=True,
        since={i: since for i, (_, since) in enumerate(entries) if since},
    )


def _entry(item: Plain, other: Plain) -> tuple[str, int]:
    """Return a value as it is shown, and the place in that where two texts part; 0 for none.

    A long text is shown from shortly before that place on.
    """
    if not (isinstance(item, str) and isinstance(other, str)) or item == other:
        return brief(item), 0
    place = first_difference(item, other)
    start = max(0, place - WIDEST // 2) if max(len(item), len(other)) > WIDEST else 0
    dots = "…" if start else ""
    before = dots + repr(item[start:place])[:-1]
    return short(dots + repr(item[start:]), WIDEST), len(before)


def _with_count(value: Plain, count: int) -> str:
    """Return what a value is and how much it holds."""
    match value:
        case str():
            return f"text of {counted(len(value), 'character')}"
        case bytes():
            return counted(len(value), "byte")
        case Structure():
            return f"{value.what} {value.name}"
        case dict():
            return f"dict of {counted(count, 'key')}"
    return f"{type(value).__name__} of {counted(count, 'item')}"


def brief(value: Plain) -> str:
    """Return a value as one would write it, numbers with few digits, cut off where it is long."""
    return short(_written(value), WIDEST)


def _written(value: Plain) -> str:
    match value:
        case list():
            return f"[{_several(value)}]"
        case tuple():
            return f"({_several(value)}{',' * (len(value) == 1)})"
        case set() | frozenset():
            return f"{{{_several(sorted(value, key=_order))}}}" if value else "set()"
        case dict():
            pairs = [f"{numeral(k)}: {_written(v)}" for k, v in [*value.items()][:LARGEST]]
            return f"{{{', '.join(pairs)}}}"
        case Structure("dataclass" | "named tuple"):
            parts = [f"{name}={_written(part)}" for name, part in value.parts.items()]
            return f"{value.name}({', '.join(parts)})"
        case None | bool() | int() | float() | complex() | str() | bytes():
            return numeral(value)
        case Unrecordable():
            return value.what
    return dispatch.describe(value)


def _several(items: Plain) -> str:
    dots = ["…"] if len(items) > 2 * LARGEST else []
    return ", ".join([_written(item) for item in items[: 2 * LARGEST]] + dots)
