"""Compare plain values, and put their difference into words."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, isclose, isfinite, isnan

import numpy as np
import torch
from torch import Tensor

from autograde.values.packing import Plain
from autograde.values.text import short

SEEN = 1e-4
"""An entry off by more than this share of the largest expected one is shown before others."""


@dataclass(frozen=True)
class Difference:
    """A difference from an expected value; `distance` is relative to the size of that value.

    `at` and `symptom` complete the call as a sentence: `future_mask(3)`, `[0, 0]`, "is True,
    expected False". `note` is a sentence of its own. `tensors` are the result and the expected
    one where both are tensors; `in_words` describes a difference of their numbers, which takes
    much longer than the distance.
    """

    distance: float
    symptom: str = ""
    at: str = ""
    note: str = ""
    tensors: tuple[Tensor, Tensor] | None = None

    def in_words(self) -> "Difference":
        """Return the same difference with all its words."""
        if self.tensors is None or self.symptom:
            return self
        got, expected = self.tensors
        place = first_difference(got, expected)
        one, other = numerals(got[place].item(), expected[place].item())
        return replace(
            self,
            symptom=f"is {one}, expected {other}",
            at=_joined(self.at, str(list(place)) if place else ""),
            note=pattern(got, expected),
        )


SAME = Difference(0.0)


def differs(
    symptom: str, note: str = "", tensors: tuple[Tensor, Tensor] | None = None
) -> Difference:
    """Return the difference of values that cannot be compared by number."""
    return Difference(inf, symptom, note=note, tensors=tensors)


def shorten(text: str, limit: int = 160) -> str:
    """Return the text on one line, cut off at the limit."""
    return short(" ".join(text.split()), limit)


def apart(got: Plain, expected: Plain) -> Difference:
    """Return the difference between two plain values, item by item for containers."""
    match expected:
        case Tensor():
            return _tensors(got, expected)
        case bool() | int() | str() | None:
            same = type(got) is type(expected) and got == expected
            return SAME if same else _other(got, expected)
        case float():
            return _floats(got, expected)
        case list() | tuple():
            if not isinstance(got, list | tuple):
                return _other(got, expected)
            if len(got) != len(expected):
                return differs(f"has {len(got)} items, expected {len(expected)}")
            pairs = enumerate(zip(got, expected, strict=True))
            return _worst(_inside(f"[{i}]", apart(g, e)) for i, (g, e) in pairs)
        case dict():
            if not isinstance(got, dict) or list(got) != list(expected):
                return _other(got, expected)
            return _worst(_inside(f", {key}", apart(got[key], expected[key])) for key in expected)
    raise TypeError(f"cannot compare with a {type(expected).__name__}")


def _inside(at: str, found: Difference) -> Difference:
    return replace(found, at=_joined(at, found.at)) if found.distance else found


def _joined(at: str, inner: str) -> str:
    """Return a place within another in words: `, losses at [2]`."""
    return f"{at} at {inner}" if inner and at[-1:].isalnum() else at + inner


def _worst(differences: Iterable[Difference]) -> Difference:
    return max(differences, key=lambda difference: difference.distance, default=SAME)


def kind_of(value: Plain) -> str:
    """Return what a value is, in words."""
    match value:
        case {"unrecordable": what}:
            return str(what)
        case {"module": name, **_rest} | {"function": name, **_rest}:
            return f"the {'module' if 'module' in value else 'function'} {name}"
        case None:
            return "None"
        case Tensor():
            return f"a tensor of shape {tuple(value.shape)}"
        case str():
            return shorten(repr(value))
    return "an int" if type(value) is int else f"a {type(value).__name__}"


def _other(got: Plain, expected: Plain) -> Difference:
    if isinstance(expected, bool | int | str) and isinstance(got, bool | int | float | str):
        return differs(f"is {shorten(repr(got))}, expected {shorten(repr(expected))}")
    if got is None:
        return differs(f"is None, expected {kind_of(expected)}", "Does it `return` its result?")
    return differs(f"is {kind_of(got)}, expected {kind_of(expected)}")


def _floats(got: Plain, expected: float) -> Difference:
    if not isinstance(got, float):
        return _other(got, expected)
    if got == expected or (isnan(got) and isnan(expected)):
        return SAME
    distance = abs(got - expected) / max(abs(expected), 1e-12)
    one, other = numerals(got, expected)
    return Difference(inf if isnan(distance) else distance, f"is {one}, expected {other}")


def _tensors(got: Plain, expected: Tensor) -> Difference:
    if not isinstance(got, Tensor):
        return _other(got, expected)
    if got.shape != expected.shape:
        shapes = tuple(got.shape), tuple(expected.shape)
        note = "The numbers are right." if _same_numbers(got, expected) else ""
        said = f"has the shape {shapes[0]}, expected {shapes[1]}"
        return differs(said, note, (got, expected))
    if got.dtype != expected.dtype:
        names = (str(t.dtype).removeprefix("torch.") for t in (got, expected))
        return differs("has the dtype {}, expected {}".format(*names), tensors=(got, expected))
    distance = tensor_distance(got, expected)
    return Difference(distance, tensors=(got, expected)) if distance else SAME


def tensor_distance(got: Tensor, expected: Tensor) -> float:
    """Return the largest error of an entry, in units of the largest finite expected entry.

    nan and inf are equal to themselves and infinitely far from everything else.
    """
    got, expected = got.double(), expected.double()
    if torch.equal(got, expected):
        return 0.0
    errors = _errors(got, expected)
    largest = float(errors.max())
    if largest == 0:
        return 0.0
    scale = _scale(expected)
    return largest / scale if scale else inf


def _scale(expected: Tensor) -> float:
    finite = expected[expected.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _errors(got: Tensor, expected: Tensor) -> Tensor:
    same = (got == expected) | (got.isnan() & expected.isnan())
    return torch.where(same, 0.0, (got - expected).abs()).nan_to_num(nan=inf)


def first_difference(got: Tensor, expected: Tensor) -> tuple[int, ...]:
    """Return the place of the first entry that is clearly off, or else of the one most off."""
    got, expected = got.double(), expected.double()
    errors = _errors(got, expected).flatten()
    clear = errors > SEEN * max(_scale(expected), 1e-30)
    flat = int(clear.int().argmax()) if clear.any() else int(errors.argmax())
    return _place(flat, expected)


def _place(flat: int, of: Tensor) -> tuple[int, ...]:
    # torch.unravel_index would import sympy, which takes half a second
    return tuple(int(i) for i in np.unravel_index(flat, tuple(of.shape)))


def wrong_entries(got: Tensor, expected: Tensor) -> Tensor:
    """Return a bool tensor of the shape of both: True where an entry is off."""
    got, expected = got.double(), expected.double()
    return _errors(got, expected) > 1e-5 * max(_scale(expected), 1e-30)


def numerals(got: float | bool, expected: float | bool) -> tuple[str, str]:
    """Return two numbers as text, with as many digits as it takes to tell them apart."""
    for digits in (4, 7, 12, 17):
        one, other = numeral(got, digits), numeral(expected, digits)
        if isinstance(got, bool) or float(one) != float(other):
            break
    return one, other


def numeral(x: float | bool, digits: int = 4) -> str:
    """Return a number as text: four decimals, fewer for whole and for large numbers."""
    if isinstance(x, bool | int):
        return str(x)
    if not isfinite(x):
        return str(x)
    if abs(x) < 1e15 and x == int(x):
        return str(int(x))
    if 1e-3 <= abs(x) < 1e4:
        return f"{x:.{digits}f}"
    return f"{x:.{digits}g}"


def pattern(got: Tensor, expected: Tensor) -> str:
    """Return a sentence on what all the errors have in common, or ""."""
    if got.dtype == torch.bool:
        opposite = torch.equal(got, ~expected)
        return "Every entry is the opposite of what was expected." if opposite else ""
    if got.numel() <= 1:
        return ""
    got, expected = got.double(), expected.double()
    broken = ~got.isfinite() & expected.isfinite()
    if broken.any():
        what = "nan" if got[broken].isnan().any() else "infinite"
        return f"{int(broken.sum())} of {got.numel()} entries are {what}."
    for described in (_factor, _constant, _sums, _order):
        if text := described(got, expected):
            return text
    return ""


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and tensor_distance(a, b) < 1e-4


def _same_numbers(got: Tensor, expected: Tensor) -> bool:
    return got.numel() == expected.numel() and _close(got.flatten(), expected.flatten())


def _factor(got: Tensor, expected: Tensor) -> str:
    norm = float((expected * expected).sum())
    if norm == 0 or not (got.isfinite() & expected.isfinite()).all():
        return ""
    factor = float((got * expected).sum()) / norm
    if abs(factor - 1) > 1e-3 and factor != 0 and _close(got, factor * expected):
        if isclose(factor, -1, rel_tol=1e-3):
            return "Every entry has the wrong sign."
        return f"Every entry is {factor:.3g} times what was expected."
    return ""


def _sums(got: Tensor, expected: Tensor) -> str:
    for dim, name in ((-1, "Row"), (-2, "Column")):
        if got.ndim < -dim:
            continue
        sums, ones = got.sum(dim), torch.ones_like(got.sum(dim))
        if _close(expected.sum(dim), ones) and (sums - 1).abs().max() > 0.005:
            worst = int((sums - 1).abs().argmax())
            place = list(_place(worst, sums))
            where = f" {place[0] if len(place) == 1 else place}" if place else ""
            return f"{name}{where} sums to {float(sums.flatten()[worst]):.2f}, expected 1."
    return ""


def _constant(got: Tensor, expected: Tensor) -> str:
    first = got.flatten()[:1]
    return f"Every entry is {numeral(float(first))}." if bool((got == first).all()) else ""


def _order(got: Tensor, expected: Tensor) -> str:
    if got.ndim >= 2 and _close(got, expected.mT):
        return "The numbers are right, but rows and columns are swapped."
    if got.ndim >= 2 and got.shape[-2] > 1 and _close(got, got[..., :1, :].expand_as(got)):
        return "Every row is the same."
    ordered = got.flatten().sort().values, expected.flatten().sort().values
    if _close(*ordered) and not _close(got, expected):
        return "The numbers are right, but in the wrong places."
    return ""
