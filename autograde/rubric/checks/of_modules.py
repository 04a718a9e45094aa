"""Checks for attention modules, parts of which are free or random; see `checks`."""

from collections.abc import Iterator
from math import inf, sqrt

import torch
from torch import Tensor

from autograde.rubric.checks.readings import Reading, Unreadable, check, claim, share_of, tensors
from autograde.rubric.packing import Plain


@claim
def masks_the_future(value: Plain, before: Plain) -> list[Reading]:
    """Check a mask saved for n tokens: one value for what may be seen, another for the future.

    Its dtype, which value stands for what, whether queries are rows or columns, and leading
    dimensions of size 1 are free.
    """
    (n,) = before
    if not isinstance(value, dict) or set(value) != {"mask", "learned"}:
        raise Unreadable("the record of the mask cannot be read")
    if value["learned"]:
        raise Unreadable("mask is in parameters(), so training would change it")
    value = value["mask"]
    if not isinstance(value, Tensor):
        held = "nothing" if value is None else f"a {type(value).__name__}, not a tensor,"
        raise Unreadable(f"state_dict() holds {held} under the name mask")
    if tuple(value.shape[-2:]) != (n, n) or value.numel() != n * n:
        raise Unreadable(f"the mask has the shape {tuple(value.shape)}, expected ({n}, {n})")
    mask = value.double().reshape(n, n)
    found = _two_valued(mask) or _two_valued(mask.T)
    symptom = "the mask does not have one value for the future and another for the rest"
    return [Reading("the fault", float(not found), 0, 0.1, symptom)]


def _two_valued(mask: Tensor) -> bool:
    future = torch.ones_like(mask).triu(diagonal=1) == 1
    hidden, seen = mask[future].unique(), mask[~future].unique()
    return len(hidden) == len(seen) == 1 and bool(hidden != seen)


@check
def drops_weights(value: Plain, before: Plain) -> list[Reading]:
    """Check outputs of causal attention that show its weights, the last of them in eval().

    The first n features of token t are 1 at t and 0 elsewhere, and the value layer copies
    them to outputs 0 to n - 1 and again to n to 2n - 1. So output [b, t] is row t of the weights,
    twice. Each weight must be 0 with probability p, on its own and anew in each call, or else be
    divided by 1 - p. Limits of shares are six standard errors.

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
    readings = [
        Reading(
            "nothing is dropped", bool(kept[seen].all()), False, 0.1,
            "in training nothing is dropped",
        ),
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
    return [*readings, *_independent(kept, seen, p)]


def _independent(kept: Tensor, seen: Tensor, p: float) -> Iterator[Reading]:
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
