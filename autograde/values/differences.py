"""Differences of values of plain Python, item by item for containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from math import hypot, inf, isfinite, isnan
from unicodedata import normalize

from autograde.values import dispatch
from autograde.values.base import (
    SAME,
    Difference,
    Plain,
    Structure,
    Unrecordable,
    counted,
    differs,
    first_difference,
    numerals,
    unrecordable,
    worst_inside,
)
from autograde.values.text import short

MAX_PAIRED = 200
"""The most keys that are matched by nearness where they are not equal."""

NOTHING = 1e-12
"""Where 0 is expected, a float's distance is relative to this number."""

PART = 1e-6
"""A float in a tuple is measured by its own size, and at least by this share of the largest."""

WHOLE_FLOATS = 2**53
"""Up to this size, every whole number can be written as a float exactly."""


def apart(got: Plain, expected: Plain) -> Difference:
    match expected:
        case bool() | int() | str() | bytes() | None | Unrecordable():
            same = type(got) is type(expected) and got == expected
            return SAME if same else other(got, expected)
        case float() | complex():
            return _floats(got, expected, _size(expected))
        case list() | tuple():
            return _sequences(got, expected)
        case set() | frozenset():
            return _sets(got, expected)
        case dict():
            return _dicts(got, expected) if isinstance(got, dict) else other(got, expected)
        case Structure():
            return _structures(got, expected)
    raise TypeError(f"cannot compare with a {type(expected).__name__}")


def other(got: Plain, expected: Plain) -> Difference:
    """Return the difference of values that have no distance in numbers."""
    pair = (got, expected) if _laid_out(got) and _laid_out(expected) else None
    scalars = bool | int | float | complex | str | bytes
    if isinstance(expected, scalars) and isinstance(got, scalars):
        note = _other_type(got, expected) or _first_character(got, expected)
        spell = _spelling([got], [expected])
        said = f"is {short(spell(got), 160)}, expected {short(spell(expected), 160)}"
        return differs(said, note, pair)
    wanted = dispatch.describe(expected)
    if what := unrecordable(got):
        return differs(f"returned {what}, expected {wanted}")
    return differs(f"is {dispatch.describe(got)}, expected {wanted}", pair=pair)


def _spelling(some: Iterable[Plain], others: Iterable[Plain]) -> Callable[[Plain], str]:
    """Return how to write them down: with escapes where two different texts look the same."""
    one, two = ({normalize("NFKC", x) for x in xs if isinstance(x, str)} for xs in (some, others))
    return repr if one.isdisjoint(two) else ascii


def _laid_out(value: Plain) -> bool:
    return isinstance(value, list | tuple | set | frozenset | dict | str | bytes | Structure)


def _other_type(got: Plain, expected: Plain) -> str:
    """Return a sentence on the types of scalars that look alike, such as 1 and "1", or ""."""
    alike = got == expected or str(got) == str(expected)
    if not alike or type(got) is type(expected):
        return ""
    one, other = ("an int" if type(x) is int else f"a {type(x).__name__}" for x in (got, expected))
    return f"It is {one}; {other} is expected."


def _first_character(got: Plain, expected: Plain) -> str:
    """Return a sentence on where two texts begin to differ, long ones or in their spaces, or ""."""
    if not isinstance(got, str) or not isinstance(expected, str):
        return ""
    if len(expected) < 20 and got.split() != expected.split():
        return ""
    return f"They differ from character {first_difference(got, expected) + 1} on."


def _floats(got: Plain, expected: complex, scale: float) -> Difference:
    if type(got) is int and type(expected) is float and abs(got) <= WHOLE_FLOATS:
        got = float(got)
    if type(got) is not type(expected):
        return other(got, expected)
    if got == expected or (got != got and expected != expected):
        return SAME
    distance = _size(got - expected) / (scale or NOTHING)
    one, two = numerals(got, expected)
    return Difference(inf if isnan(distance) else distance, f"is {one}, expected {two}")


def _size(number: complex) -> float:
    return hypot(number.real, number.imag)  # `abs` of a complex number may overflow


def _sequences(got: Plain, expected: list[Plain] | tuple[Plain, ...]) -> Difference:
    if isinstance(got, Structure) and got.what == "named tuple":
        got = tuple(got.parts.values())
    if not isinstance(got, list | tuple):
        return other(got, expected)
    if len(got) != len(expected):
        said = f"has {counted(len(got), 'item')}, expected {len(expected)}"
        return differs(said, pair=(got, expected))
    scale = _scale(expected)
    least = PART * scale if isinstance(expected, tuple) else scale
    found = (
        (f"[{i}]", _floats(one, two, max(abs(two), least)) if scale else dispatch.apart(one, two))
        for i, (one, two) in enumerate(zip(got, expected, strict=True))
    )
    return worst_inside(found, got, expected)


def _scale(expected: Iterable[Plain]) -> float:
    """Return the size of the largest of several floats; 0 if not all items are floats."""
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
    found = (("", dispatch.apart(one, two)) for one, two in pairs if one is not two)
    return worst_inside(found, got, expected)


def _dicts(got: dict[Plain, Plain], expected: dict[Plain, Plain]) -> Difference:
    pairs, missing, extra = _matched(got, expected)
    if missing or extra:
        return differs(_lacks("key", missing, extra), pair=(got, expected))
    keys = (("", dispatch.apart(mine, key)) for mine, key in pairs if mine is not key)
    items = (
        (
            f", {key}" if isinstance(key, str) else f"[{key!r}]",
            dispatch.apart(got[mine], expected[key]),
        )
        for mine, key in pairs
    )
    return worst_inside(chain(items, keys), got, expected)


def _lacks(noun: str, missing: list[Plain], extra: list[Plain]) -> str:
    """Return a predicate on keys or items that are missing or too many."""
    said, spell = [], _spelling(missing, extra)
    for verb, keys in (("lacks", missing), ("should not have", extra)):
        if keys:
            what = f"the {noun}{'s' * (len(keys) > 1)} " if noun else ""
            texts = ", ".join(sorted(map(spell, keys))[:5]) + ", …" * (len(keys) > 5)
            said.append(f"{verb} {what}{texts}")
    return short(" and ".join(said), 300)


def _structures(got: Plain, expected: Structure) -> Difference:
    if not isinstance(got, Structure) or (got.what, got.name) != (expected.what, expected.name):
        return other(got, expected)
    if got.parts.keys() != expected.parts.keys():
        lacking = [name for name in expected.parts if name not in got.parts]
        extra = [name for name in got.parts if name not in expected.parts]
        return differs(_lacks("field", lacking, extra), pair=(got, expected))
    parts = expected.parts.items()
    found = ((f".{name}", dispatch.apart(got.parts[name], part)) for name, part in parts)
    return worst_inside(found, got, expected)
