"""Which module knows a value: plain Python, exact types, NumPy, torch and pandas have one each.

A library is imported only when a value of its own, or the structure of one, is met.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

from autograde.values.base import NEAR, Difference, Plain, Structure, Table, Tables, Within

LIBRARIES = {
    **dict.fromkeys(("datetime", "decimal", "fractions"), "exact"),
    "numpy": "arrays",
    "scipy": "arrays",
    "torch": "tensors",
    "pandas": "frames",
}
"""The module for the types of a library, and of classes that inherit from them. A new one offers
what `Values` names; if its plain data are no Python values, arrays or tensors, a Structure with a
name in STRUCTURES, and `is_whole` for what `packing` reads."""
STRUCTURES = {"DataFrame": "frames", "Series": "frames", "Index": "frames", "Column": "frames"}
"""The module for a structure of this name; the others are plain Python's."""


class Values(Protocol):
    """The functions that every module of values offers for its own.

    Those of this module call them and say what they do.
    """

    def to_plain(self, value: Any, within: Within) -> Plain: ...
    def copied(self, value: Any) -> Any: ...
    def apart(self, got: Plain, expected: Plain) -> Difference: ...
    def describe(self, value: Plain) -> str: ...
    def side_by_side(self, got: Plain, expected: Plain, where: str, near: float) -> Tables: ...
    def in_full(self, value: Plain) -> Table | None: ...
    def says_much(self, value: Plain) -> bool: ...
    def cast_like(self, value: Plain, like: Plain) -> Plain: ...


def module_of(value: Any) -> Values:
    """Return the module that knows a value, live or recorded."""
    if isinstance(value, Structure):
        return cast(Values, module_named(STRUCTURES.get(value.what, "python")))
    return _module_of_type(cast(Hashable, type(value)))


@lru_cache(maxsize=256)
def _module_of_type(of: Any) -> Values:
    homes = (str(part.__module__).partition(".")[0] for part in of.__mro__)
    known = (LIBRARIES[home] for home in homes if home in LIBRARIES)
    return cast(Values, module_named(next(known, "python")))


def module_named(name: str) -> Any:
    """Return the module of values that has this name."""
    return import_module(f"autograde.values.{name}")


def to_plain(value: Any, within: Within = ()) -> Plain:
    """Return a copy of a value as plain data; what cannot be recorded is an `Unrecordable`."""
    return module_of(value).to_plain(value, within)


def copied(value: Any) -> Any:
    """Return a live copy of a live value, for a call that may change it.

    What cannot be copied is returned as it is.
    """
    return module_of(value).copied(value)


def live(value: Plain) -> Any:
    """Return plain data with objects of a library in place of their structures."""
    from autograde.values.python import changed

    if isinstance(value, Structure) and value.what in STRUCTURES:
        return module_named(STRUCTURES[value.what]).live(value)
    return changed(value, live)


def apart(got: Plain, expected: Plain) -> Difference:
    """Return the difference between two plain values, item by item for containers."""
    return module_of(expected).apart(got, expected)


def describe(value: Plain) -> str:
    """Return what a value is, in words."""
    return module_of(value).describe(value)


def side_by_side(got: Plain, expected: Plain, where: str, near: float = NEAR) -> Tables:
    """Return tables of two values that differ; None where there is nothing to lay out.

    `where` is their place in the result, as in `Difference`; numbers this near are not marked.
    """
    return module_of(expected).side_by_side(got, expected, where.strip(", "), near)


def in_full(value: Plain) -> Table | None:
    """Return a small value as a table; None if it is large, or there is nothing to lay out."""
    return module_of(value).in_full(value)


def says_much(value: Plain) -> bool:
    """Return whether plain data are so specific that two equal ones share a cause."""
    return module_of(value).says_much(value)


def cast_like(value: Plain, like: Plain) -> Plain:
    """Return plain data in the precision of others: what was computed in double, in single."""
    return module_of(like).cast_like(value, like)
