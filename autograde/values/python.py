"""Values of plain Python: numbers, text, bytes, None, containers, named tuples, dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from math import inf, isfinite, isnan
from typing import Any

from autograde.values import dispatch, layout
from autograde.values.base import (
    FEW,
    MAX_KEYS,
    MAX_NESTING,
    SAME,
    Difference,
    Plain,
    Record,
    Tables,
    Unrecordable,
    differs,
    numerals,
    of,
    shorten,
    worst,
)

MAX_BITS = 14_000
"""The longest whole number that is recorded; Python reads no more digits than that."""
MAX_PAIRED = 200
"""The most keys that are matched by nearness where they are not equal."""
KEYS = (bool, int, float, complex, str, bytes, type(None))
NESTED = f"values nested more than {MAX_NESTING} deep"


def record(value: Any, depth: int) -> Plain:
    """Return a copy of a live value as plain data."""
    if depth > MAX_NESTING:
        return Unrecordable(NESTED)
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
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
            return [dispatch.to_plain(item, depth + 1) for item in value]
        case tuple():
            return _tuple(value, depth)
        case set() | frozenset():
            return _set(value)
        case dict():
            return _dict(value, depth)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name, None) for each in fields(value)}
        return _record("dataclass", value, parts, depth)
    if callable(value):
        return Record("function", getattr(value, "__name__", ""))
    return Unrecordable(f"a {type(value).__name__}")


def _tuple(value: tuple[Any, ...], depth: int) -> Plain:
    names = getattr(value, "_fields", None)
    if names is not None and len(names) == len(value):
        return _record("named tuple", value, dict(zip(names, value, strict=True)), depth)
    return tuple(dispatch.to_plain(item, depth + 1) for item in value)


def _record(kind: str, value: Any, parts: dict[str, Any], depth: int) -> Record:
    recorded = {str(name): dispatch.to_plain(part, depth + 1) for name, part in parts.items()}
    return Record(kind, type(value).__name__, recorded)


def _set(value: set[Any] | frozenset[Any]) -> Plain:
    keys = [_key(item) for item in value]
    if len(value) > MAX_KEYS or any(isinstance(key, Unrecordable) for key in keys):
        return Unrecordable(_too_many("set", len(value), "items", keys))
    return type(value)(keys) if type(value) in (set, frozenset) else set(keys)


def _dict(value: dict[Any, Any], depth: int) -> Plain:
    keys = [_key(key) for key in value]
    plain = sum(not isinstance(key, str) for key in keys)
    if plain > MAX_KEYS or any(isinstance(key, Unrecordable) for key in keys):
        return Unrecordable(_too_many("dict", len(value), "keys", keys))
    items = (dispatch.to_plain(item, depth + 1) for item in value.values())
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
        return record(value, 0)
    key = dispatch.to_plain(value)
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
    """Return a live copy of a container and what is in it; anything else as it is."""
    match value:
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(dispatch.copied, value))
        case list() | tuple() | set() | frozenset() if type(value) in PLAIN_CONTAINERS:
            return type(value)(map(dispatch.copied, value))
        case dict():
            new = copy.copy(value)
            for key, item in value.items():  # `update` of a Counter would add
                new[key] = dispatch.copied(item)
            return new
        case list() | set() | bytearray():
            return copy.copy(value)
    if is_dataclass(value) and not isinstance(value, type):
        twin = copy.copy(value)
        for each in fields(value):
            if hasattr(value, each.name):
                object.__setattr__(twin, each.name, dispatch.copied(getattr(value, each.name)))
        return twin
    return value


PLAIN_CONTAINERS = (list, tuple, set, frozenset)


def apart(got: Plain, expected: Plain) -> Difference:
    """Return the difference between plain values, item by item for containers."""
    match expected:
        case bool() | int() | str() | bytes() | None | Unrecordable():
            same = type(got) is type(expected) and got == expected
            return SAME if same else other(got, expected)
        case float() | complex():
            return _floats(got, expected, abs(expected))
        case list() | tuple():
            return _sequences(got, expected)
        case set() | frozenset():
            return _sets(got, expected)
        case dict():
            return _dicts(got, expected) if isinstance(got, dict) else other(got, expected)
        case Record():
            return _records(got, expected)
    raise TypeError(f"cannot compare with a {type(expected).__name__}")


def other(got: Plain, expected: Plain) -> Difference:
    """Return the difference of values that have no distance in numbers."""
    pair = (got, expected) if _laid_out(got) and _laid_out(expected) else None
    scalars = bool | int | float | complex | str | bytes
    if isinstance(expected, scalars) and isinstance(got, scalars):
        note = _first_character(got, expected)
        said = f"is {shorten(repr(got))}, expected {shorten(repr(expected))}"
        return differs(said, note, pair)
    wanted = dispatch.describe(expected)
    if what := unrecordable(got):
        return differs(f"returned {what}, which cannot be recorded; return {wanted}")
    if got is None:
        return differs(f"is None, expected {wanted}", "Does it `return` its result?")
    return differs(f"is {dispatch.describe(got)}, expected {wanted}", pair=pair)


def _laid_out(value: Plain) -> bool:
    return isinstance(value, list | tuple | set | frozenset | dict | str | bytes | Record)


def _first_character(got: Plain, expected: Plain) -> str:
    """Return a sentence on where two long texts begin to differ, or ""."""
    if not isinstance(got, str) or not isinstance(expected, str) or len(expected) < 20:
        return ""
    pairs = zip(got, expected, strict=False)
    same = next((i for i, (one, two) in enumerate(pairs) if one != two), None)
    same = min(len(got), len(expected)) if same is None else same
    return f"They differ from character {same + 1} on."


def _floats(got: Plain, expected: complex, scale: float) -> Difference:
    if type(got) is not type(expected):
        return other(got, expected)
    if got == expected or (got != got and expected != expected):
        return SAME
    distance = abs(got - expected) / max(scale, 1e-12)
    one, two = numerals(got, expected)
    return Difference(inf if isnan(distance) else distance, f"is {one}, expected {two}")


def _sequences(got: Plain, expected: list[Plain] | tuple[Plain, ...]) -> Difference:
    if isinstance(got, Record) and got.kind == "named tuple":
        got = tuple(got.parts.values())
    if not isinstance(got, list | tuple):
        return other(got, expected)
    if len(got) != len(expected):
        said = f"has {of(len(got), 'item')}, expected {len(expected)}"
        return differs(said, pair=(got, expected))
    found = []
    scale = _scale(expected)
    for i, (one, two) in enumerate(zip(got, expected, strict=True)):
        each = _floats(one, two, scale) if scale else dispatch.apart(one, two)
        found.append(each.inside(f"[{i}]", got, expected))
    return worst(found)


def _scale(expected: Iterable[Plain]) -> float:
    """Return the size of the largest of several floats, which the others are measured by."""
    if not all(isinstance(item, float) for item in expected):
        return 0.0
    return max((abs(item) for item in expected if isfinite(item)), default=0.0)


def _matched(
    got: Iterable[Plain], expected: Iterable[Plain]
) -> tuple[list[tuple[Plain, Plain]], list[Plain], list[Plain]]:
    """Return pairs of equal or else near keys, expected keys without a partner, and keys left over.

    Equal is what Python holds for equal keys; nan is near nan.
    """
    wanted, left = list(expected), dict.fromkeys(got)
    pairs = [(key, key) for key in wanted if key in left]
    missing = [key for key in wanted if key not in left]
    for key, _ in pairs:
        left.pop(key, None)
    if max(len(missing), len(left)) > MAX_PAIRED:
        return pairs, missing, [*left]
    alone = []
    for key in missing:
        near = min(left, key=lambda k: dispatch.apart(k, key).distance, default=None)
        if near is None or dispatch.apart(near, key).distance > 1:
            alone.append(key)
        else:
            pairs.append((near, key))
            left.pop(near)
    return pairs, alone, [*left]


def _sets(got: Plain, expected: set[Plain] | frozenset[Plain]) -> Difference:
    if not isinstance(got, set | frozenset):
        return other(got, expected)
    pairs, missing, extra = _matched(got, expected)
    if missing or extra:
        return differs(_lacks("", missing, extra), pair=(got, expected))
    found = (dispatch.apart(one, two) for one, two in pairs)
    return worst(each.inside("", got, expected) for each in found)


def _dicts(got: dict[Plain, Plain], expected: dict[Plain, Plain]) -> Difference:
    pairs, missing, extra = _matched(got, expected)
    if missing or extra:
        return differs(_lacks("key", missing, extra), pair=(got, expected))
    found = []
    for mine, key in pairs:
        at = f", {key if isinstance(key, str) else repr(key)}"
        found.append(dispatch.apart(got[mine], expected[key]).inside(at, got, expected))
        if mine != key:
            found.append(dispatch.apart(mine, key).inside("", got, expected))
    return worst(found)


def _lacks(noun: str, missing: list[Plain], extra: list[Plain]) -> str:
    """Return a predicate on keys or items that are missing or too many."""
    said = []
    for verb, keys in (("lacks", missing), ("should not have", extra)):
        if keys:
            what = f"the {noun}{'s' * (len(keys) > 1)} " if noun else ""
            texts = ", ".join(sorted(map(repr, keys))[:5]) + ", …" * (len(keys) > 5)
            said.append(f"{verb} {what}{texts}")
    return shorten(" and ".join(said), 300)


def _records(got: Plain, expected: Record) -> Difference:
    if not isinstance(got, Record) or (got.kind, got.name) != (expected.kind, expected.name):
        return other(got, expected)
    if got.parts.keys() != expected.parts.keys():
        lacking = [name for name in expected.parts if name not in got.parts]
        extra = [name for name in got.parts if name not in expected.parts]
        return differs(_lacks("field", lacking, extra), pair=(got, expected))
    return worst(
        dispatch.apart(got.parts[name], part).inside(f".{name}", got, expected)
        for name, part in expected.parts.items()
    )


def describe(value: Plain) -> str:
    """Return what a value is, in words."""
    match value:
        case Unrecordable():
            return value.what
        case Record("module" | "function"):
            return f"the {value.kind} {value.name}"
        case Record():
            parts = f"({', '.join(value.parts)})" if value.kind == "named tuple" else ""
            return f"a {value.kind} {value.name}{parts}"
        case None:
            return "None"
        case str() | bytes():
            return shorten(repr(value))
    return "an int" if type(value) is int else f"a {type(value).__name__}"


def cast(value: Plain, like: Plain) -> Plain:
    """Return containers with what is in them in the precision of what is in others."""
    lists = isinstance(value, list | tuple) and isinstance(like, list | tuple)
    if lists and len(value) == len(like):  # others cannot agree
        return [dispatch.cast_like(v, w) for v, w in zip(value, like, strict=True)]
    if isinstance(value, dict) and isinstance(like, dict):
        return {
            key: dispatch.cast_like(item, like[key]) if key in like else item
            for key, item in value.items()
        }
    if isinstance(value, Record) and isinstance(like, Record):
        return Record(value.kind, value.name, cast(value.parts, like.parts))
    return value


def float_types(value: Plain) -> set[str]:
    """Return the names of the floating-point types of tensors and arrays in containers."""
    return set[str]().union(*map(dispatch.float_types, inside(value)))


def inside(value: Plain) -> Iterator[Plain]:
    """Yield what a container holds."""
    match value:
        case list() | tuple() | set() | frozenset():
            yield from value
        case dict():
            yield from value.values()
        case Record():
            yield from value.parts.values()


def unrecordable(value: Plain) -> str:
    """Return what in plain data could not be recorded, in words, or ""."""
    match value:
        case Unrecordable():
            return value.what
        case Record("function"):
            return f"a function ({value.name})" if value.name else "a function"
    return next(filter(None, map(unrecordable, inside(value))), "")


def says_much(value: Plain) -> bool:
    """Return whether plain data are so specific that two equal ones share a cause."""
    match value:
        case None | bool() | Unrecordable() | Record("function"):
            return False
        case str() | bytes():
            return len(value) >= FEW
        case int():
            return abs(value) >= 100
        case float() | complex():
            return isfinite(abs(value)) and abs(value) not in (0.0, 1.0)
    return any(map(dispatch.says_much, inside(value)))


def side_by_side(got: Plain, expected: Plain, where: str) -> Tables:
    """Return plain values as tables, one row for each item."""
    return layout.side_by_side(got, expected, where)
