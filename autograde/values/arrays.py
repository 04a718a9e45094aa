"""NumPy's arrays and scalars, and what else comes from NumPy or SciPy.

A scalar, or an array of no dimensions, is recorded as the Python number that it holds, and a named
tuple, such as what `eigh` returns, as a tuple.
"""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import datetime, timedelta
from math import prod
from typing import Any

import numpy as np

from autograde.values import differences, numbers, python
from autograde.values.base import (
    FEW,
    MAX_ENTRIES,
    SAME,
    TOO_MANY,
    BadData,
    Difference,
    Plain,
    Unrecordable,
    Within,
    moment,
)

DTYPE = re.compile(r"[<|](?:b1|[iu][1248]|f[248]|c(?:8|16)|[SU]\d{1,8}|[mM]8(?:\[\w{1,8}\])?)")
"""The dtypes that are recorded; an object could be anything, and is not among them."""
MOST_CHARACTERS = 16 * MAX_ENTRIES
"""The most characters of an array of text, in which every entry takes as much room as the longest.
"""


def to_plain(value: Any, within: Within) -> Plain:
    if type(value) is np.ndarray and not value.ndim and value.dtype.kind not in "mMO":
        value = value[()]
    if isinstance(value, tuple):
        value = tuple(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = np.asarray(value)
    if isinstance(value, np.generic):
        plain = value.item()
        if isinstance(plain, np.generic):  # a longdouble
            return Unrecordable(f"a {type(value).__name__}")
        return python.to_plain(plain, within)
    if type(value) not in (np.ndarray, np.memmap):
        return python.to_plain(value, within)
    return _recorded(np.asarray(value))


def _recorded(array: numbers.Array) -> Plain:
    if array.size > MAX_ENTRIES:
        return Unrecordable(f"an array of {TOO_MANY}")
    if array.dtype.kind == "O" and _is_of_text(array):  # as pandas gives it
        array = array.astype(str)
    native = array.astype(array.dtype.newbyteorder("<"))
    if native.dtype.kind in "SU" and not native.dtype.itemsize:
        native = native.astype(f"{native.dtype.kind}1")
    if native.dtype.str.startswith(">") or not DTYPE.fullmatch(native.dtype.str):
        return Unrecordable(f"an array of dtype {array.dtype}")
    return np.ascontiguousarray(native).reshape(array.shape)


def _is_of_text(array: numbers.Array) -> bool:
    text = array.size > 0 and all(isinstance(item, str) for item in array.flat)
    return text and array.size * max(map(len, array.flat)) <= MOST_CHARACTERS


def copied(value: Any) -> Any:
    """Return a copy of an array, even of one that holds objects, or of a generator of numbers."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return deepcopy(value)
    return value.copy() if isinstance(value, np.ndarray) else python.copied(value)


def apart(got: Plain, expected: numbers.Array) -> Difference:
    if isinstance(got, datetime | timedelta) and not expected.ndim and got == moment(expected):
        return SAME
    if not isinstance(got, np.ndarray):
        return differences.other(got, expected)
    return numbers.apart(got, expected, np.asarray)


def describe(value: numbers.Array) -> str:
    return f"a NumPy array of shape {value.shape}"


side_by_side, in_full = numbers.side_by_side, numbers.in_full


def cast_like(value: Plain, like: numbers.Array) -> Plain:
    both = isinstance(value, np.ndarray) and value.dtype.kind == like.dtype.kind == "f"
    return value.astype(like.dtype) if both else value


def says_much(value: numbers.Array) -> bool:
    """Return whether an array holds entries that are not all 0 by chance."""
    some = value.size >= FEW or bool(np.any(value != np.zeros((), value.dtype)))
    return some and (value.dtype.kind not in "fc" or bool(np.isfinite(value).any()))


def to_bytes(value: numbers.Array) -> tuple[list[Any], bytes]:
    """Return an array's dtype and shape, and its entries as bytes."""
    return [value.dtype.str, list(value.shape)], value.tobytes()


def from_bytes(form: list[Any], data: bytes) -> numbers.Array:
    """Return the array that `to_bytes` made bytes of.

    Raises:
        BadData: the dtype or the shape is not allowed.
        ValueError: the shape does not fit the bytes.
    """
    name, shape = form
    if not isinstance(name, str) or not DTYPE.fullmatch(name):
        raise BadData(f"an array of {name} is not allowed")
    dtype, sizes = np.dtype(name), all(type(size) is int and size >= 0 for size in shape)
    if not sizes or prod(filter(None, shape)) > MAX_ENTRIES:  # it may have no entries, many rows
        raise BadData(f"an array of shape {shape} is not allowed")
    if dtype.kind == "b":  # bytes other than 0 and 1 would be let through
        return np.asarray(np.frombuffer(data, np.uint8) != 0).reshape(shape)
    if dtype.kind == "U":
        codes = np.frombuffer(data, np.uint32).copy()
        codes[(codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))] = 0xFFFD
        data = codes.tobytes()
    return np.frombuffer(data, dtype).reshape(shape).copy()
