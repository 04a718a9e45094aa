"""How far apart two outcomes are, and what the difference looks like to a person."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isclose, isfinite, isnan

import torch
from torch import Tensor

from autograde.rubric.packing import Plain
from autograde.rubric.recording import Outcome


@dataclass(frozen=True)
class Difference:
    """`distance` is relative to the size of the expected value; `symptom` says what one sees."""

    distance: float
    symptom: str = ""


SAME = Difference(0.0)


def compare(got: Outcome, expected: Outcome) -> Difference:
    """The difference between two outcomes; any two refusals are alike."""
    if expected.refused:
        if got.refused:
            return SAME
        return Difference(inf, "accepted arguments that should be refused" + _instead(got))
    if got.error is not None:
        return Difference(inf, describe_error(got))
    return compare_values(got.value, expected.value)


def describe_error(got: Outcome) -> str:
    """What an exception looks like in a rubric: one line, never a traceback."""
    if got.not_attempted:
        return "not written yet"
    if got.error == "AssertionError" and not got.message:
        return "an assert in the answer failed"
    if got.refused:
        return f"refused valid arguments: {_shorten(got.message)}"
    if got.error == "ContractBroken":
        return got.message
    return f"raised {got.error}: {_shorten(got.message)}"


def _instead(got: Outcome) -> str:
    return "" if got.error is None else f", but raised {got.error} instead of ValueError"


def _shorten(text: str, limit: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def compare_values(got: Plain, expected: Plain) -> Difference:
    """The difference between two plain values, item by item for containers."""
    match expected:
        case Tensor():
            return _tensors(got, expected)
        case bool() | str() | None:
            return (
                SAME if type(got) is type(expected) and got == expected else _other(got, expected)
            )
        case int():
            same = isinstance(got, int) and not isinstance(got, bool) and got == expected
            return SAME if same else _other(got, expected)
        case float():
            return _floats(got, expected)
        case list() | tuple():
            if not isinstance(got, list | tuple):
                return _other(got, expected)
            if len(got) != len(expected):
                return Difference(inf, f"{len(got)} items, expected {len(expected)}")
            return _worst(compare_values(g, e) for g, e in zip(got, expected, strict=True))
        case dict():
            if not isinstance(got, dict) or list(got) != list(expected):
                return _other(got, expected)
            return _worst(compare_values(got[key], expected[key]) for key in expected)
    raise TypeError(f"cannot compare with a {type(expected).__name__}")


def _worst(differences: Iterable[Difference]) -> Difference:
    return max(differences, key=lambda difference: difference.distance, default=SAME)


def _kind(value: Plain) -> str:
    if isinstance(value, dict) and set(value) == {"unrecordable"}:
        return str(value["unrecordable"])
    return "None" if value is None else f"a {type(value).__name__}"


def _other(got: Plain, expected: Plain) -> Difference:
    if isinstance(expected, bool | int | str) and isinstance(got, bool | int | float | str):
        return Difference(inf, f"got {_shorten(str(got))}, expected {_shorten(str(expected))}")
    return Difference(inf, f"the result is {_kind(got)}, expected {_kind(expected)}")


def _floats(got: Plain, expected: float) -> Difference:
    if not isinstance(got, float):
        return _other(got, expected)
    if got == expected or (isnan(got) and isnan(expected)):
        return SAME
    distance = abs(got - expected) / max(abs(expected), 1e-12)
    return Difference(inf if isnan(distance) else distance, f"got {got:.4g}")


def _tensors(got: Plain, expected: Tensor) -> Difference:
    if not isinstance(got, Tensor):
        return _other(got, expected)
    if got.shape != expected.shape:
        return Difference(inf, _describe_shape(got, expected))
    if got.dtype != expected.dtype:
        return Difference(inf, f"the result is {_name(got)}, expected {_name(expected)}")
    distance = tensor_distance(got, expected)
    return SAME if distance == 0 else Difference(distance, describe_tensors(got, expected))


def tensor_distance(got: Tensor, expected: Tensor) -> float:
    """The largest error of an entry, in units of the largest finite expected entry.

    nan and inf are equal to themselves and infinitely far from everything else.
    """
    got, expected = got.double(), expected.double()
    if torch.equal(got, expected):
        return 0.0
    finite = expected[expected.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    error = torch.where(_same(got, expected), 0.0, (got - expected).abs()) / (scale or 1.0)
    return float(error.nan_to_num(nan=inf).max())


def _same(got: Tensor, expected: Tensor) -> Tensor:
    return (got == expected) | (got.isnan() & expected.isnan())


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _describe_shape(got: Tensor, expected: Tensor) -> str:
    return f"the shape is {_shape(got)}, expected {_shape(expected)}"


def describe_tensors(got: Tensor, expected: Tensor) -> str:
    """The most telling symptom of a wrong tensor; names no expected entry."""
    truth = got.dtype == torch.bool
    got, expected = got.double(), expected.double()
    unwanted = ~got.isfinite() & expected.isfinite()
    if unwanted.any():
        what = "nan" if got[unwanted].isnan().any() else "inf"
        return f"{int(unwanted.sum())} of {got.numel()} entries are {what}"
    kept = got.isfinite() & ~expected.isfinite()
    if kept.any():
        return f"{int(kept.sum())} of {got.numel()} entries are finite and should not be"
    if _close(got, torch.zeros_like(got)):
        return "every entry is 0"
    for described in (_describe_factor, _describe_sums, _describe_constant, _describe_order):
        if text := described(got, expected):
            return text
    errors = torch.where(_same(got, expected), 0.0, (got - expected).abs()).nan_to_num(nan=inf)
    index = int(errors.argmax())
    place, entry = _place(index, got), float(got.flatten()[index])
    if truth:
        return f"the entry at {place} is {bool(entry)} and should not be"
    if not isfinite(entry):
        return f"the entry at {place} is {_entry(entry)} and should not be"
    return f"the entry at {place} is {_entry(entry)}, off by {_size(float(errors.max()))}"


def _entry(number: float) -> str:
    """Four decimals, and no minus before a zero."""
    text = f"{number:.4f}"
    return "0.0000" if text == "-0.0000" else text


def _size(number: float) -> str:
    """Two digits that matter, and no power of ten where a person would write none."""
    return f"{number:.2g}" if number < 100 or number >= 1e6 else f"{float(f'{number:.2g}'):,.0f}"


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and tensor_distance(a, b) < 1e-4


def _describe_factor(got: Tensor, expected: Tensor) -> str:
    norm = float((expected * expected).sum())
    if norm == 0 or got.numel() == 1:  # one number is always some multiple of another
        return ""
    factor = float((got * expected).sum()) / norm
    if abs(factor - 1) > 1e-3 and factor != 0 and _close(got, factor * expected):
        if isclose(factor, -1, rel_tol=1e-3):
            return "every entry has the wrong sign"
        return f"every entry is {factor:.3g} times what it should be"
    return ""


def _describe_sums(got: Tensor, expected: Tensor) -> str:
    for dim, name in ((-1, "row"), (-2, "column")):
        if got.ndim < -dim:
            continue
        sums, ones = got.sum(dim), torch.ones_like(got.sum(dim))
        if _close(expected.sum(dim), ones) and (sums - 1).abs().max() > 0.005:
            worst = int((sums - 1).abs().argmax())
            place = "" if sums.ndim == 0 else f" {_place(worst, sums)}"
            return f"{name}{place} sums to {float(sums.flatten()[worst]):.2f}, not to 1"
    return ""


def _describe_constant(got: Tensor, expected: Tensor) -> str:
    first = got.flatten()[:1]
    if got.numel() > 1 and bool((got == first).all()):
        return f"every entry is {float(first):.4g}"
    return ""


def _place(flat: int, tensor: Tensor) -> str:
    """Where the entry with this number is: 3 in a vector, [2, 3] in a matrix."""
    place = [int(i) for i in torch.unravel_index(torch.tensor(flat), tensor.shape)]
    return str(place[0] if len(place) == 1 else place)


def _describe_order(got: Tensor, expected: Tensor) -> str:
    if got.ndim >= 2 and _close(got, expected.mT):
        return "the numbers are right, but rows and columns are swapped"
    if got.ndim >= 2 and got.shape[-2] > 1 and _close(got, got[..., :1, :].expand_as(got)):
        return "every row is the same"
    ordered = got.flatten().sort().values, expected.flatten().sort().values
    if _close(*ordered) and not _close(got, expected):
        return "the numbers are right, but in the wrong places"
    return ""
