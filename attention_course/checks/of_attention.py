"""Checks of weights, masks, scores and measurements that can be right in many ways."""

from itertools import combinations
from math import inf, log, sqrt

import torch
from torch import Tensor

from autograde.rubric.checks import Reading, Unreadable, check, claim
from autograde.values.base import Plain, dtype_of

ROUNDED = 3
"""A number with no more decimals than these was rounded; few are so by chance."""

UNSAVED = "not saved"
"""What is recorded of a mask that is a buffer and not in state_dict()."""

MOST_MATRICES = 20
"""Each is compared with each, and a made-up record may hold thousands."""


def tensors(value: Plain) -> list[Tensor]:
    """Return a recorded list of tensors; raises Unreadable when it is none, or empty."""
    if not isinstance(value, list) or not all(isinstance(item, Tensor) for item in value):
        raise Unreadable("the result is not a list of tensors")
    if not value:
        raise Unreadable("the result is an empty list")
    return value


def _floats(value: Plain) -> list[float]:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, float) for item in items):
        raise Unreadable(
            f"the result is a {type(items[0]).__name__ if items else 'list'}, not a float"
        )
    return items


@claim
def starts_uniform(value: Plain, _before: Plain) -> list[Reading]:
    """Check parameters of two new modules: each entry its own draw from [0, 1).

    Limits of mean and spread are six standard errors for uniform numbers.
    """
    matrices = [item.double().flatten() for item in tensors(value)]
    if len(matrices) > MOST_MATRICES:
        raise Unreadable(f"there are {len(matrices)} parameters")
    readings = []
    for tensor in matrices:
        root = sqrt(tensor.numel())
        outside = int(((tensor < 0) | (tensor >= 1)).sum())
        readings += [
            Reading("the number of entries outside [0, 1)", outside, 0, 0.1),
            Reading("the mean of the starting values", float(tensor.mean()), 0.5, 1.74 / root),
            Reading(
                "the standard deviation of the starting values",
                float(tensor.std()),
                sqrt(1 / 12),
                0.78 / root,
            ),
        ]
    for first, second in combinations(matrices, 2):
        equal = float((first == second).double().mean())
        readings.append(Reading("the share of equal numbers in two matrices", equal, 0, 0.05))
    return readings


@claim
def masks_the_future(value: Plain, before: Plain) -> list[Reading]:
    """Check a mask saved for n tokens: one value for what may be seen, another for the future.

    Its dtype, which value stands for what, whether queries are rows or columns, and leading
    dimensions of size 1 are free.
    """
    n, *_ = before
    if not isinstance(value, dict) or set(value) != {"mask", "learned"}:
        raise Unreadable("the record of the mask cannot be read")
    if value["learned"]:
        raise Unreadable("mask is in parameters(), so training would change it")
    value = value["mask"]
    if isinstance(value, str) and value == UNSAVED:
        raise Unreadable("mask is a buffer, but state_dict() leaves it out")
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


def _relative_error_of_std(d_k: int, n_samples: int) -> float:
    """Return the relative standard error of the standard deviation of products q·k.

    q·k has kurtosis 3 + 6 / d_k, and var(s) / s^2 is about (kurtosis - 1) / (4 n).
    """
    return sqrt((2 + 6 / d_k) / (4 * n_samples))


@check
def near_root(value: Plain, before: Plain) -> list[Reading]:
    """Check measurements on many samples: near sqrt(d_k), not rounded, not twice the same."""
    measured = _floats(value)
    d_k, n_samples = before
    limit = 6 * _relative_error_of_std(d_k, n_samples)
    readings = [Reading("the ratio to the true value", m / sqrt(d_k), 1.0, limit) for m in measured]
    same = len(set(measured)) < len(measured)
    symptom = "two measurements give the same number; measured numbers differ a little"
    rounded = any(m == round(m, ROUNDED) for m in measured)
    return [
        *readings,
        Reading("the repeats", same, 0, 0.1, symptom),
        Reading("the rounded ones", rounded, 0, 0.1, "a measurement is rounded"),
    ]


@check
def scatters_about_root(value: Plain, before: Plain) -> list[Reading]:
    """Check many measurements: they scatter about sqrt(d_k), by as much as theory says.

    A limit is six standard errors. The limit of the mean also allows a standard deviation that
    divides by n_samples, not n_samples - 1.
    """
    measured = _floats(value)
    if len(measured) < 2:
        raise Unreadable("the record of results cannot be read")
    d_k, n_samples = before
    ratios = torch.tensor(measured, dtype=torch.float64) / sqrt(d_k)
    error = _relative_error_of_std(d_k, n_samples)
    spread = float(ratios.std()) / error
    symptom = f"repeated measurements scatter {spread:.2g} times as much as they should"
    if spread < 0.01:
        symptom = "repeated measurements hardly differ; real ones scatter"
    mean_limit = 6 * error / sqrt(len(ratios)) + 1 / n_samples
    spread_limit = 6 / sqrt(2 * len(ratios))
    return [
        Reading("the mean ratio to the true value", float(ratios.mean()), 1.0, mean_limit),
        Reading("the scatter", log(max(spread, 1e-9)), 0.0, spread_limit, symptom),
    ]


@check
def changes_the_future(value: Plain, before: Plain) -> list[Reading]:
    """Check score matrices that a function was called with: past as given, future drawn anew.

    The new scores are random: all differ from the old and from each other, and their spread lies
    between 0.5 and 10.
    """
    (scores,) = before
    given = scores.double()
    future = torch.ones_like(given).triu(diagonal=1) == 1
    if not isinstance(value, list):
        raise Unreadable("the result is not a list of tensors")
    seen = [item for item in value if isinstance(item, Tensor) and item.shape == given.shape]
    if not seen:
        raise Unreadable("weights_fn was never called with scores")
    drawn = [s.double()[future] for s in seen if not torch.equal(s.double(), given)]
    if not drawn:
        raise Unreadable("weights_fn was never given scores with another future")
    past = max(float((s.double() - given)[~future].abs().max()) for s in seen)
    new, n = drawn[-1], drawn[-1].numel()
    old = float(torch.isin(new.abs(), given.abs()).double().mean())
    spread = log(max(float(new.std()), 1e-9) / sqrt(5))
    repeated = "many of the new future scores are equal, so they are not random"
    told = f"the new future scores have a standard deviation of {float(new.std()):.2g}, not about 1"
    return [
        Reading("the change", past, 0, 1e-6, "scores on or below the diagonal are changed"),
        Reading("the old ones", old, 0, 0.005, "some of the new future scores are old ones"),
        Reading("the repeats", 1 - len(new.unique()) / n, 0, 0.01, repeated),
        Reading("the spread", spread, 0, log(10 / sqrt(5)) * 1.05, told),
    ]


@check
def breaks_tril(value: Plain, _before: Plain) -> list[Reading]:
    """Check finite float32 scores (n, n) on which softmax, tril, renormalise is off by over 0.001.

    This happens where a hidden score lies far above the visible ones of its row.
    """
    if not isinstance(value, Tensor):
        raise Unreadable(f"the result is a {type(value).__name__}, expected a Tensor")
    shape = tuple(value.shape)
    if len(shape) != 2 or shape[0] != shape[1] or not 2 <= shape[0] <= 16:
        raise Unreadable(f"the shape is {shape}, expected (n, n) with n from 2 to 16")
    if value.dtype != torch.float32:
        raise Unreadable(f"the scores are {dtype_of(value)}, not float32")
    if not value.isfinite().all():
        raise Unreadable("some scores are not finite")
    hidden = torch.ones_like(value).triu(diagonal=1) == 1
    weights = torch.softmax(value, dim=-1).masked_fill(hidden, 0.0)
    sums = weights.sum(dim=-1, keepdim=True)
    tril_way = weights / sums.masked_fill(sums == 0, 1.0)
    inf_way = torch.softmax(value.double().masked_fill(hidden, -inf), dim=-1)
    error = float((tril_way - inf_way).abs().max())
    above = value.masked_fill(~hidden, -inf).amax(-1) - value.masked_fill(hidden, -inf).amax(-1)
    gap = float(above.max())
    below = "no hidden score lies above the visible ones of its row, so nothing is lost"
    small = f"a hidden score lies {gap:.3g} above the visible ones; the error is only {error:.2g}"
    return [
        Reading("the rows with a gap", float(gap > 0), 1, 0.1, below),
        Reading("the failure", float(error > 1e-3), 1, 0.1, small),
    ]
