"""Values of plain Python: numbers, text, bytes, None, containers, named tuples, dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from autograde.values import differences, dispatch, layout
from autograde.values.base import (
    EXACT_TYPES,
    FEW,
    MAX_KEYS,
    MAX_NESTING,
    Plain,
    Structure,
    Unrecordable,
    Within,
    inside,
    moment,
)
from autograde.values.text import short, well_formed

MAX_BITS = 14_000
"""The longest whole number that is recorded; Python reads no more digits than that."""
KEYS = (bool, int, float, complex, str, bytes, type(None), *EXACT_TYPES)
NESTED = f"values nested more than {MAX_NESTING} deep"


def to_plain(value: Any, within: Within) -> Plain:
    if id(value) in within:
        return Unrecordable(f"a {type(value).__name__} that holds itself")
    if len(within) > MAX_NESTING:
        return Unrecordable(NESTED)
    match value:
        case None | bool():
            return value
        case str():
            return well_formed(value)
        case int():
            long = value.bit_length() > MAX_BITS
            return Unrecordable("an int of thousands of digits") if long else int(value)
        case float():
            return float(value)
        case complex():
            return complex(value)
        case bytes() | bytearray():
            return bytes(value)
        case list():
            inner = (*within, id(value))
            return [dispatch.to_plain(item, inner) for item in value]
        case tuple():
            return _tuple(value, within)
        case set() | frozenset():
            return _set(value)
        case dict():
            return _dict(value, within)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name, None) for each in fields(value)}
        return _structure("dataclass", value, parts, within)
    if callable(value):
        what = "class" if isinstance(value, type) else "function"
        return Structure(what, getattr(value, "__name__", ""))
    return Unrecordable(f"a {type(value).__name__}")


def _tuple(value: tuple[Any, ...], within: Within) -> Plain:
    names = getattr(value, "_fields", None)
    if names is not None and len(names) == len(value):
        return _structure("named tuple", value, dict(zip(names, value, strict=True)), within)
    inner = (*within, id(value))
    return tuple(dispatch.to_plain(item, inner) for item in value)


def _structure(what: str, value: Any, parts: dict[str, Any], within: Within) -> Structure:
    inner = (*within, id(value))
    recorded = {str(name): dispatch.to_plain(part, inner) for name, part in parts.items()}
    return Structure(what, type(value).__name__, recorded)


def _set(value: set[Any] | frozenset[Any]) -> Plain:
    keys = [_key(item) for item in value]
    if len(value) > MAX_KEYS or any(isinstance(key, Unrecordable) for key in keys):
        return Unrecordable(_too_many("set", len(value), "items", keys))
    return type(value)(keys) if type(value) in (set, frozenset) else set(keys)


def _dict(value: dict[Any, Any], within: Within) -> Plain:
    keys = [_key(key) for key in value]
    plain = sum(not isinstance(key, str) for key in keys)
    if plain > MAX_KEYS or any(isinstance(key, Unrecordable) for key in keys):
        return Unrecordable(_too_many("dict", len(value), "keys", keys))
    inner = (*within, id(value))
    items = (dispatch.to_plain(item, inner) for item in value.values())
    return dict(zip(keys, items, strict=True))


def _too_many(what: str, count: int, of: str, keys: list[Plain]) -> str:
    found = next((key.what for key in keys if isinstance(key, Unrecordable)), "")
    return f"a {what} that holds {found}" if found else f"a {what} of {count} {of}"


def _key(value: Any) -> Plain:
    """Return a key of a dict or an item of a set as plain data that can be hashed."""
    if isinstance(value, tuple):
        items = tuple(_key(item) for item in value)
        return next((item for item in items if isinstance(item, Unrecordable)), items)
    if isinstance(value, frozenset):
        return to_plain(value, ())
    key = moment(dispatch.to_plain(value))
    if isinstance(key, (*KEYS, Unrecordable)):
        return key
    return Unrecordable(dispatch.describe(key))


def hashable(key: Plain) -> Hashable:
    """Return what was read as a key of a dict or an item of a set, if it may be one.

    Raises:
        TypeError: it may not.
    """
    inner = key if isinstance(key, tuple | frozenset) else ()
    if not isinstance(key, (*KEYS, tuple, frozenset)):
        raise TypeError(f"a {type(key).__name__} is no key")
    for item in inner:
        hashable(item)
    return key


def copied(value: Any) -> Any:
    return changed(value, dispatch.copied)


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a live copy of a container, with each value in it changed; anything else as it is."""
    match value:
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(change, value))
        case list() | tuple() | set() | frozenset() if type(value) in (list, tuple, set, frozenset):
            return type(value)(map(change, value))
        case dict():
            new = copy.copy(value)
            for key, item in value.items():  # `update` of a Counter would add
                new[key] = change(item)
            return new
        case list() | set() | bytearray():
            return copy.copy(value)
    if is_dataclass(value) and not isinstance(value, type):
        twin = copy.copy(value)
        for each in fields(value):
            if hasattr(value, each.name):
                object.__setattr__(twin, each.name, change(getattr(value, each.name)))
        return twin
    return value


apart = differences.apart


def describe(value: Plain) -> str:
    match value:
        case Unrecordable():
            return value.what
        case Structure("module" | "function" | "class"):
            return f"the {value.what} {value.name}"
        case Structure():
            parts = f"({', '.join(value.parts)})" if value.what == "named tuple" else ""
            return f"a {value.what} {value.name}{parts}"
        case None:
            return "None"
        case str() | bytes():
            return short(repr(value), 160)
    return "an int" if type(value) is int else f"a {type(value).__name__}"


def cast_like(value: Plain, like: Plain) -> Plain:
    """Return containers with what is in them in the precision of what is in others."""
    lists = isinstance(value, list | tuple) and isinstance(like, list | tuple)
    if lists and len(value) == len(like):  # others cannot agree
        return [dispatch.cast_like(v, w) for v, w in zip(value, like, strict=True)]
    if isinstance(value, dict) and isinstance(like, dict):
        return {
            key: dispatch.cast_like(item, like[key]) if key in like else item
            for key, item in value.items()
        }
    if isinstance(value, Structure) and isinstance(like, Structure):
        return Structure(value.what, value.name, cast_like(value.parts, like.parts))
    return value


def says_much(value: Plain) -> bool:
    match value:
        case None | bool() | Unrecordable() | Structure("function" | "class"):
            return False
        case str() | bytes():
            return len(value) >= FEW
        case int():
            return abs(value) >= 100
        case float() | complex():
            return isfinite(abs(value)) and abs(value) not in (0.0, 1.0)
    return any(map(dispatch.says_much, inside(value)))


side_by_side, in_full = layout.side_by_side, layout.in_full
