"""Checks of random zeros, judged by their statistics, never against the reference's draws.

A limit is six standard errors.
"""

from collections.abc import Iterator
from math import inf, prod, sqrt

import torch
from torch import Tensor

from attention_course.checks.of_attention import tensors
from autograde.rubric.checks import Reading, Unreadable, check, share_of
from autograde.values.base import Plain, Unrecordable, dtype_of

ROUNDING = 4e-6
"""How far a kept entry may be from x / (1 - p), relative to it: some roundings of float32.

A mask of float32 divided by 1 - p is a usual factor, also of an x in float64.
"""

ZEROS = "the share of entries that are 0"

TOGETHER = 0.5
"""Entries whose zeros are correlated more than this are dropped together."""

NONE = 1e-6
"""A variance below this, where 1 is wanted, is rounding."""


def _tensor(value: Plain) -> Tensor:
    if not isinstance(value, Tensor):
        what = value.what if isinstance(value, Unrecordable) else f"a {type(value).__name__}"
        raise Unreadable(f"the result is {what}, expected a tensor")
    return value


def _like(value: Plain, x: Tensor) -> Tensor:
    """Return the result, when it has the shape and the dtype of x."""
    y = _tensor(value)
    if y.shape != x.shape:
        raise Unreadable(f"the shape is {tuple(y.shape)}, expected {tuple(x.shape)}")
    if y.dtype != x.dtype:
        raise Unreadable(f"the result is {dtype_of(y)}, expected {dtype_of(x)}")
    return y


@check
def share_of_zeros(value: Plain, before: Plain) -> list[Reading]:
    """Check a mask with as many entries as asked for: a share p is 0; before = (shape, p, ...)."""
    mask, wanted = _tensor(value), prod(before[0])
    if mask.numel() < wanted:  # with too few entries, any share would pass
        raise Unreadable(f"the mask has {mask.numel()} entries, expected {wanted}")
    return [share_of(ZEROS, mask == 0, before[1])]


@check
def zeros_and_ones(value: Plain, before: Plain) -> list[Reading]:
    """Check a mask: float32, of the given shape, nothing but 0 and 1; before = (shape, p, ...)."""
    mask = _like(value, torch.zeros(before[0]))
    others = int(((mask != 0) & (mask != 1)).sum())
    return [Reading("the number of entries that are neither 0 nor 1", others, 0, 0.1)]


@check
def coins(value: Plain, before: Plain) -> list[Reading]:
    """Check zeros in many draws (draws, *shape): a share p, independent.

    Entries that share a row, a column or a place in a batch do not depend on each other, and the
    number of zeros scatters as it does for independent entries. `before` begins with x or its
    shape, and p. A draw needs some 70 entries and p near a half, so that no two draws are equal by
    chance.
    """
    zeros, shape = _tensor(value).double(), before[0]
    shape = tuple(shape.shape if isinstance(shape, Tensor) else shape)
    if zeros.shape[1:] != shape:
        raise Unreadable(f"the shape is {tuple(zeros.shape[1:])}, expected {shape}")
    share = float(zeros.mean())
    if share in (0, 1):
        raise Unreadable("every entry is always 0" if share else "no entry is ever 0")
    draws = zeros.flatten(1)
    different = len(torch.unique(draws, dim=0))
    same = 1 - different / len(draws)
    repeats = Reading("the share of equal draws", same, 0, 1e-3, "calls give the same zeros again")
    if different == 1:
        return [repeats]  # all else would be the chance of one draw, another for each seed
    z = (zeros - share) / sqrt(share * (1 - share))
    if together := [each for each in _of_pairs(z) if each.value > TOGETHER]:
        return together  # one row of coins repeats too, but why it does says more
    return [repeats, *_independent(z), share_of(ZEROS, zeros, before[1])]


def _independent(z: Tensor) -> list[Reading]:
    """Return readings on zeros (draws, ...) that should be independent: mean 0 and variance 1."""
    flat = z.flatten(1)  # (draws, n)
    draws, n = flat.shape
    fourth = float((flat**4).mean()) - 3  # excess kurtosis of one number
    readings = _of_pairs(z)
    of_draws = flat.sum(dim=1).square() / n
    spread = float(of_draws.mean())
    told = f"the number of zeros varies {sqrt(spread):.2g} times as much between calls as it should"
    if spread < NONE:
        told = "the number of zeros is the same at every call; it should vary"
    readings.append(_variance(spread, 2 * draws / (2 + fourth / n), told))
    return readings


def _of_pairs(z: Tensor) -> list[Reading]:
    """Return readings on pairs of entries (draws, ...) that differ in one place."""
    names = ["entries of the same row", "entries of the same column"]
    names += ["the matrices of a batch"] * z.ndim
    return [_pairs(z, -i, names[i - 1]) for i in range(1, z.ndim) if z.shape[-i] > 1]


def _variance(spread: float, freedom: float, told: str) -> Reading:
    """Return a reading on a mean of `freedom` squares, wanted 1: its cube root is nearly normal."""
    error = sqrt(2 / (9 * freedom))
    return Reading(
        "the cube root of the variance", spread ** (1 / 3), 1 - error**2, 6 * error, told
    )


def _pairs(z: Tensor, axis: int, name: str) -> Reading:
    """Return the mean product of two entries that differ only in their place along this axis."""
    size = z.shape[axis]
    pairs = z.numel() * (size - 1) / 2
    products = (z.sum(dim=axis).square() - z.square().sum(dim=axis)) / 2
    correlation = float(products.sum()) / pairs
    together = "are dropped together" if correlation > TOGETHER else "are not independent"
    told = f"{name} {together} (correlation {correlation:.2f})"
    return Reading("the correlation", correlation, 0, 6 / sqrt(pairs), told)


def _by_themselves(zeros: Tensor, p: float) -> list[Reading]:
    """Return readings on zeros (copies, ...): dropped together, or else their share.

    The share of entries that are dropped together scatters more than its limit allows for.
    """
    share = float(zeros.double().mean())
    if 0 < share < 1:
        pairs = _of_pairs((zeros.double() - share) / sqrt(share * (1 - share)))
        if together := [each for each in pairs if each.value > TOGETHER]:
            return together
    return [share_of(ZEROS, zeros, p)]


@check
def dropped_copies(value: Plain, before: Plain) -> list[Reading]:
    """Check dropped copies of x: 0 or x / (1 - p), a share p is 0; before = (x, p, ...)."""
    x, p = before[:2]
    if not isinstance(value, list) or not value:
        raise Unreadable("the result is not a list of tensors")
    copies = [_like(copy, x) for copy in value]
    y = torch.stack(copies).double()  # (copies, ...)
    wanted = x.double() / (1 - p)
    if not y.isfinite().all():
        raise Unreadable(f"{int((~y.isfinite()).sum())} of {y.numel()} entries are not finite")
    if not (y != 0).any():
        raise Unreadable("every entry is 0")
    error = float(torch.where(y == 0, 0.0, (y - wanted).abs() / wanted.abs()).max())
    factor = float((y / x.double())[y != 0].median())
    told = "some entries are neither 0 nor x / (1 - p)"
    if abs(factor * (1 - p) - 1) > ROUNDING:
        pairs = ((f"{factor:.{n}g}", f"{1 / (1 - p):.{n}g}") for n in range(3, 9))
        got, right = next(pair for pair in pairs if pair[0] != pair[1])
        told = f"kept entries are {got} times x, expected {right}"
    zeros = torch.stack([copy == 0 for copy in copies])
    return [
        Reading("the error of a kept entry", error, 0, ROUNDING, told),
        *_by_themselves(zeros, p),
    ]


@check
def drops_in_training(value: Plain, before: Plain) -> list[Reading]:
    """Check {"in training": dropped copies of x, no two with the same zeros, "in use": x}."""
    if not isinstance(value, dict) or set(value) != {"in training", "in use"}:
        raise Unreadable("the result is not that of both modes")
    readings = dropped_copies(value["in training"], before)
    zeros = {tuple((copy == 0).flatten().tolist()) for copy in value["in training"]}
    again = len(zeros) < len(value["in training"])
    x = before[0].double()
    off = float((_like(value["in use"], before[0]).double() - x).abs().max())
    return [
        *readings,
        Reading("two calls give the same zeros", again, False, 0.1, "calls give the same zeros"),
        Reading("the error in use", off, 0, 1e-5, "when not training the result is not x"),
    ]


@check
def passes_gradients(value: Plain, before: Plain) -> list[Reading]:
    """Check [y, gradient at x of the sum of y * direction]; each y is x times a random number.

    That number is also the gradient: 0 where the entry was dropped.
    """
    x, direction = (tensor.double() for tensor in before)
    if not isinstance(value, list) or len(value) != 2:
        raise Unreadable("the result is not [output, gradient]")
    if value[1] is None:
        raise Unreadable("no gradient passes: the result is cut off from x")
    y, gradient = (_like(item, before[0]).double() for item in value)
    if not gradient.isfinite().all():
        raise Unreadable(
            f"{int((~gradient.isfinite()).sum())} entries of the gradient are nan or infinite"
        )
    wanted = direction * y / x
    error = float((gradient - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))
    told = f"the gradient is not what each entry was multiplied by (off by {error:.2g})"
    if float(gradient.abs().max()) == 0:
        told = "the gradient is 0 everywhere"
    return [
        Reading("the error of the gradient", error, 0, 1e-5, told),
        Reading("some entry is 0", bool((y == 0).any()), True, 0.1, "no entry is dropped"),
        Reading("some entry is kept", bool((y != 0).any()), True, 0.1, "every entry is 0"),
    ]


@check
def drops_weights(value: Plain, before: Plain) -> list[Reading]:
    """Check outputs of causal attention that show its weights, the last of them in eval().

    The first n features of token t are 1 at t and 0 elsewhere, and the value layer copies
    them to outputs 0 to n - 1 and again to n to 2n - 1. So output [b, t] is row t of the weights,
    twice. Each weight must be 0 with probability p, on its own and anew in each call, or else be
    divided by 1 - p.

    Each head has 2n outputs of that kind; before = (weights, x, p, heads).
    """
    weights, x, p, heads = before
    n = x.shape[1]
    outputs = _stacked(value, (*x.shape[:2], heads * 2 * n)).unflatten(-1, (heads, 2 * n))
    if outputs.isnan().any():
        raise Unreadable("some outputs are nan")
    outputs = outputs.transpose(2, 3)  # (calls, b, heads, n, 2n)
    whole = _causal_weights(weights, x, heads)
    in_eval = float((outputs[-1, ..., :n] - whole).abs().max())
    outputs = outputs[:-1]
    found, again = outputs[..., :n], outputs[..., n:]
    seen = torch.ones(n, n, dtype=torch.bool).tril().expand_as(found)
    kept = (found != 0) & seen
    right = (whole / (1 - p)).expand_as(found)
    off = float((found / right - 1)[kept].abs().max()) if kept.any() else 0.0
    future = float(found[~seen].abs().max()) + float(again[~seen].abs().max())
    twice = float((found - again).abs().max())
    if kept[seen].all():
        return [Reading("the weights dropped", 0, 1, 0.1, "in training nothing is dropped")]
    readings = [
        Reading("a hidden weight", future, 0, 1e-4, "hidden tokens get a weight in training"),
        Reading(
            "the difference", twice, 0, 1e-3,
            "single entries of context vectors are dropped; dropout belongs on the weights",
        ),
        Reading(
            "the error of kept weights", off, 0, 1e-3,
            "in training, kept weights are not the weights divided by 1 - p",
        ),
        share_of("the share of weights dropped", ~kept[seen], p),
        Reading("the error in eval()", in_eval, 0, 1e-3, "in eval() the weights are not intact"),
    ]  # fmt: skip
    if any(reading.distance > 1 for reading in readings):
        return readings  # how the weights are dropped would only hide it
    return [*readings, *_of_neighbours(kept, seen, p)]


def _of_neighbours(kept: Tensor, seen: Tensor, p: float) -> Iterator[Reading]:
    """Yield readings on neighbouring weights (calls, b, heads, n, n): alike only by chance."""
    neighbours = {
        "two rows": (kept[..., 1:, :], kept[..., :-1, :], seen[..., :-1, :]),
        "two columns": (kept[..., 1:], kept[..., :-1], seen[..., 1:]),
        "two heads": (kept[:, :, 1:], kept[:, :, :-1], seen[:, :, 1:]),
        "two sentences": (kept[:, 1:], kept[:, :-1], seen[:, 1:]),
        "two calls": (kept[1:], kept[:-1], seen[1:]),
    }
    for where, (one, other, both) in neighbours.items():
        if both.any():  # with one head there are no two heads
            name = f"the share of weights dropped or kept alike in {where}"
            yield share_of(name, (one == other)[both], p * p + (1 - p) * (1 - p))


def _stacked(value: Plain, shape: tuple[int, ...]) -> Tensor:
    for item in (items := tensors(value)):
        if tuple(item.shape) != shape:
            raise Unreadable(f"the shape is {tuple(item.shape)}, expected {shape}")
    return torch.stack([item.double() for item in items])


def _causal_weights(weights: dict[str, Tensor], x: Tensor, heads: int) -> Tensor:
    """Return the weights (b, heads, n, n) of causal attention without bias."""
    queries, keys = (
        (x.double() @ weights[name].double().T).unflatten(-1, (heads, -1)).transpose(1, 2)
        for name in ("W_query.weight", "W_key.weight")
    )
    scores = queries @ keys.mT / sqrt(keys.shape[-1])
    future = torch.ones(x.shape[1], x.shape[1]).triu(diagonal=1) == 1
    return torch.softmax(scores.masked_fill(future, -inf), dim=-1)
