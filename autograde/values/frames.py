"""pandas' DataFrames, Series and Indexes. Their structures are read and compared without pandas.

A column of numbers or times is kept as an array. Any other is a list of plain values, in which a
missing one is None, with the name of its dtype.
"""

from __future__ import annotations

import sys
from importlib import import_module
from math import inf
from typing import Any, TypeGuard

import numpy as np

from autograde.values import arrays, differences, dispatch, exact, frame_tables, numbers, python
from autograde.values.base import (
    MAX_ENTRIES,
    SAME,
    TOO_MANY,
    Difference,
    Plain,
    Structure,
    Unrecordable,
    Within,
    differs,
    differs_in,
    unrecordable,
)
from autograde.values.frame_tables import (
    TEXT,
    columns,
    in_brief,
    items,
    kept_alike,
    length,
    shape,
    times,
)
from autograde.values.layout import brief


def to_plain(value: Any, within: Within) -> Plain:
    pd = sys.modules["pandas"]
    match value:
        case pd.DataFrame():
            return _frame(value)
        case pd.Series():
            name = dispatch.to_plain(value.name)
            parts = {"name": name, "index": _index(value.index), "data": _column(value)}
            return _whole("Series", parts)
        case pd.Index():
            return _index(value)
        case pd.api.extensions.ExtensionArray():
            return arrays.to_plain(value.to_numpy(), within)
        case pd.Timestamp() | pd.Timedelta():
            if getattr(value, "tzinfo", None) is not None:
                return exact.to_plain(value.to_pydatetime(warn=False), within)
            return arrays.to_plain(value.to_numpy(), within)
    if value is pd.NA:
        return None
    if value is pd.NaT:
        return np.asarray(np.datetime64("NaT", "ns"))
    return python.to_plain(value, within)


def _frame(frame: Any) -> Plain:
    if frame.size > MAX_ENTRIES:
        return Unrecordable(f"a DataFrame of {TOO_MANY}")
    data = [_column(frame.iloc[:, i]) for i in range(frame.shape[1])]
    parts = {"columns": _index(frame.columns), "index": _index(frame.index), "data": data}
    return _whole("DataFrame", parts)


def _whole(what: str, parts: dict[str, Plain]) -> Plain:
    """Return the structure of an object, unless one of its parts cannot be recorded."""
    missing = unrecordable(parts)
    return (
        Unrecordable(f"a {what} that holds {missing}") if missing else Structure(what, what, parts)
    )


def _index(index: Any) -> Plain:
    names = [dispatch.to_plain(name) for name in index.names]
    return _whole("Index", {"names": names, "labels": _column(index)})


def _column(values: Any) -> Plain:
    """Return a column or the labels of an index: an array, or a structure of a list."""
    if len(values) > MAX_ENTRIES:
        return Unrecordable(f"{len(values)} values")
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biufcmM":
        return arrays.to_plain(values.to_numpy(copy=True), ())
    if (zone := getattr(values.dtype, "tz", None)) is not None:
        times = np.datetime_as_string(values.to_numpy(dtype="datetime64[ns]"), unit="auto")
        texts = [None if time == "NaT" else str(time) for time in np.atleast_1d(times)]
        return Structure("Column", f"datetime64[{zone}]", {"items": texts})
    plain = [None if _is_missing(item) else dispatch.to_plain(item) for item in values]
    of_text = str(values.dtype) in ("object", "str", "string")
    text = of_text and all(item is None or isinstance(item, str) for item in plain)
    return Structure("Column", TEXT if text else str(values.dtype), {"items": plain})


def _is_missing(item: Any) -> bool:
    pd = sys.modules["pandas"]
    return item is None or item is pd.NA or item is pd.NaT or (item != item) is True


def is_whole(value: Structure) -> bool:
    """Return whether a structure that was read has the parts it must have, of equal lengths."""
    parts = value.parts
    match value.what:
        case "Column":
            return isinstance(parts.get("items"), list)
        case "Index":
            return isinstance(parts.get("names"), list) and _is_column(parts.get("labels"))
    data, index = parts.get("data"), parts.get("index")
    if not _is_index(index):
        return False
    if value.what == "Series":
        return "name" in parts and _is_column(data) and length(data) == shape(index)[0]
    names = parts.get("columns")
    return (
        isinstance(data, list)
        and _is_index(names)
        and len(data) == shape(names)[0]
        and all(_is_column(each) and length(each) == shape(index)[0] for each in data)
    )


def _is_index(value: Plain) -> TypeGuard[Structure]:
    return isinstance(value, Structure) and value.what == "Index"


def _is_column(value: Plain) -> bool:
    array = isinstance(value, np.ndarray) and value.ndim == 1
    return array or (isinstance(value, Structure) and value.what == "Column")


def copied(value: Any) -> Any:
    pd = sys.modules["pandas"]
    whole = isinstance(value, pd.DataFrame | pd.Series | pd.Index)
    return value.copy(deep=True) if whole else python.copied(value)


def apart(got: Plain, expected: Structure) -> Difference:
    """Return the difference: type and shape first, then labels, then column by column."""
    if not isinstance(got, Structure) or got.what != expected.what:
        return differences.other(got, expected)
    if expected.what == "Column":  # of other values than numbers
        if got.name != expected.name:
            return differs_in("dtype", got.name, expected.name)
        return dispatch.apart(got.parts["items"], expected.parts["items"])
    pair = (got, expected)
    if shape(got) != shape(expected):
        return differs_in("shape", shape(got), shape(expected), pair)
    if expected.what == "Index":
        return _labels_apart("labels", got, expected, pair)
    names = [each.parts.get("name") for each in pair]  # a DataFrame has none
    if dispatch.apart(*names).distance:
        one, two = map(brief, names)
        return differs_in("name", one, two, pair)
    axes = ("columns", "index") if expected.what == "DataFrame" else ("index",)
    for axis in axes:
        mine, wanted = got.parts[axis], expected.parts[axis]
        if (found := _labels_apart(axis, mine, wanted, pair)).distance:
            return found
    return _data_apart(got, expected)


def _labels_apart(
    axis: str, got: Structure, expected: Structure, pair: tuple[Plain, Plain]
) -> Difference:
    """Return the difference of two indexes, whose types count no further than their labels do."""
    if dispatch.apart(got.parts["names"], expected.parts["names"]).distance:
        one, two = (brief(each.parts["names"]) for each in (got, expected))
        return differs(f"has {axis} named {one}, expected {two}", pair=pair)
    distance = _label_distance(got.parts["labels"], expected.parts["labels"])
    if not distance:
        return SAME
    mine, wanted = items(got.parts["labels"]), items(expected.parts["labels"])
    if mine == wanted:
        one, two = (_dtype(each.parts["labels"]) for each in (got, expected))
        return differs_in(f"{axis} of dtype", one, two, pair)
    one, two = (in_brief(each.parts["labels"]) for each in (got, expected))
    said = f"has the {axis} {one}, expected {two}"
    same = sorted(map(repr, mine)) == sorted(map(repr, wanted))
    return Difference(
        distance, said, note="They are right, but in another order." * same, pair=pair
    )


def _label_distance(got: Plain, expected: Plain) -> float:
    """Return how far labels of one number are apart; whole numbers may come as floats."""
    if isinstance(got, np.ndarray) and isinstance(expected, np.ndarray):
        return numbers.distance(got, expected) if numbers.comparable(got, expected) else inf
    if length(got) and times(got) != times(expected):
        return inf
    pairs = zip(items(got), items(expected), strict=True)
    return max((dispatch.apart(*pair).distance for pair in pairs), default=0.0)


def _data_apart(got: Structure, expected: Structure) -> Difference:
    labels = items(expected.parts["index"].parts["labels"])
    names = [""]
    if expected.what == "DataFrame":
        names = [f"[{brief(name)}]" for name in items(expected.parts["columns"].parts["labels"])]
    worst, column = SAME, ""
    for name, one, two in zip(names, columns(got), columns(expected), strict=True):
        alike = kept_alike(one, two)
        each = dispatch.apart(alike, two)
        if type(alike) is not type(two):
            each = differs_in("dtype", _dtype(one), _dtype(two))
        if each.distance > worst.distance:
            worst, column = each, name
    if worst is SAME:
        return SAME

    def worded(_got: Plain, _expected: Plain, near: float) -> tuple[str, str, str]:
        said, at = worst.in_words(near), column
        if said.at:  # such as [3], or [3].x in a row of containers
            row = labels[int(said.at[1:].partition("]")[0])]
            at += f".loc[{brief(row)}]"
        return at, said.symptom, said.note

    return Difference(worst.distance, pair=(got, expected), worded=worded)


def _dtype(column: Plain) -> str:
    return column.name if isinstance(column, Structure) else str(column.dtype)


def describe(value: Structure) -> str:
    if value.what == "Column":
        return f"a column of {_dtype(value)}"
    return f"{'an' if value.what == 'Index' else 'a'} {value.what} of shape {shape(value)}"


def live(value: Structure) -> Any:
    """Return the object of pandas that was recorded, with the categories that it has.

    What cannot be made here is returned as recorded, such as one of an unknown time zone.
    """
    try:
        return _live(value)
    except Exception:  # pandas raises many kinds
        return value


def _live(value: Structure) -> Any:
    pd = import_module("pandas")
    if value.what == "Column":
        return _live_column(value)
    if value.what == "Index":
        labels, names = value.parts["labels"], [*map(_live_label, value.parts["names"])]
        if len(names) > 1:
            return pd.MultiIndex.from_tuples(map(_live_label, items(labels)), names=names)
        return pd.Index(_live_column(labels), name=names[0])
    index = _live(value.parts["index"])
    if value.what == "Series":
        name = _live_label(value.parts["name"])
        return pd.Series(_live_column(value.parts["data"]), index, name=name)
    data = {i: _live_column(each) for i, each in enumerate(value.parts["data"])}
    return pd.DataFrame(data, index).set_axis(_live(value.parts["columns"]), axis=1)


def _live_label(label: Plain) -> Any:
    """Return a name or label with the Timestamps and Timedeltas that were recorded as arrays."""
    if isinstance(label, tuple):
        return tuple(map(_live_label, label))
    pd = import_module("pandas")
    kind = label.dtype.kind if isinstance(label, np.ndarray) else ""
    return {"M": pd.Timestamp, "m": pd.Timedelta}[kind](label[()]) if kind else label


def _live_column(column: Plain) -> Any:
    pd = import_module("pandas")
    if not isinstance(column, Structure):
        return column
    held = column.parts["items"]
    if zone := times(column) and column.name.removeprefix("datetime64[").removesuffix("]"):
        return pd.DatetimeIndex(pd.to_datetime(held, utc=True)).tz_convert(zone)
    return pd.Series(held, dtype="str" if column.name == TEXT else column.name).array


cast_like, says_much = python.cast_like, python.says_much
side_by_side, in_full = frame_tables.side_by_side, frame_tables.in_full


def columns_sorted(frame: Plain) -> Plain:
    """Return a DataFrame's structure with the columns in the order of their names; others as is."""
    if not isinstance(frame, Structure) or frame.what != "DataFrame":
        return frame
    names = frame.parts["columns"]
    labels = items(names.parts["labels"])
    order = sorted(range(len(labels)), key=lambda i: repr(labels[i]))
    column = names.parts["labels"]
    if isinstance(column, np.ndarray):
        column = column[order]
    else:
        column = Structure("Column", column.name, {"items": [labels[i] for i in order]})
    index = Structure("Index", "Index", {**names.parts, "labels": column})
    data = [frame.parts["data"][i] for i in order]
    return Structure(frame.what, frame.name, {**frame.parts, "columns": index, "data": data})
