"""Checks for outcomes where more than one answer is right.

Each is a pure function from what was recorded to readings: a number measured, the number
wanted, and the limit of their difference. The same functions serve practice and grading.
"""

from math import inf, isfinite, log, sqrt

import torch
from torch import Tensor

from autograde.rubric import dropout_checks, module_checks
from autograde.rubric.packing import Plain
from autograde.rubric.readings import Check, Reading, Unreadable, share_of


def _tensors(value: Plain) -> list[Tensor]:
    if not isinstance(value, list) or not all(isinstance(item, Tensor) for item in value):
        raise Unreadable("the result is not a list of tensors")
    return [item.double().flatten() for item in value]


def _floats(value: Plain) -> list[float]:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, float) for item in items):
        raise Unreadable(
            f"the result is a {type(items[0]).__name__ if items else 'list'}, not a float"
        )
    return items


def starts_uniform(value: Plain, _before: Plain) -> list[Reading]:
    """Parameters of two new modules: each entry its own draw from [0, 1).

    Limits of mean and spread are six standard errors for uniform numbers.
    """
    tensors = _tensors(value)
    readings = []
    for tensor in tensors:
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
    for i, first in enumerate(tensors):
        for second in tensors[i + 1 :]:
            equal = float((first == second).double().mean())
            readings.append(Reading("the share of equal numbers in two matrices", equal, 0, 0.05))
    return readings


def _relative_error_of_std(d_k: int, n_samples: int) -> float:
    """Standard error of a standard deviation, measured on products q·k of normal vectors.

    q·k has kurtosis 3 + 6 / d_k, and var(s) / s^2 is about (kurtosis - 1) / (4 n).
    """
    return sqrt((2 + 6 / d_k) / (4 * n_samples))


def measures_std(value: Plain, before: Plain) -> list[Reading]:
    """Two measurements on many samples: near sqrt(d_k), and not the same number twice."""
    measured = _floats(value)
    d_k, n_samples = before["d_k"], before["n_samples"]
    limit = 6 * _relative_error_of_std(d_k, n_samples)
    readings = [Reading("the ratio to sqrt(d_k)", m / sqrt(d_k), 1.0, limit) for m in measured]
    same = measured[0] == measured[1]
    symptom = "two measurements give the same number; measured numbers differ a little"
    return [*readings, Reading("the repeats", same, 0, 0.1, symptom)]


def scatters(value: Plain, before: Plain) -> list[Reading]:
    """Many measurements: they scatter, by as much as theory says.

    Of 600 honest runs the spread is known to 3 in 100, so that 0.2 is six times that.
    """
    ratios = torch.tensor(_floats(value), dtype=torch.float64) / sqrt(before["d_k"])
    expected = _relative_error_of_std(before["d_k"], before["n_samples"])
    spread = float(ratios.std()) / expected
    symptom = f"repeated measurements scatter {spread:.2g} times as much as they should"
    if spread < 0.01:
        symptom = "repeated measurements hardly differ; real ones scatter"
    return [
        Reading("the mean ratio to sqrt(d_k)", float(ratios.mean()), 1.0, 0.03),
        Reading("the scatter", log(max(spread, 1e-9)), 0.0, 0.2, symptom),
    ]


def follows_generator(value: Plain, _before: Plain) -> list[Reading]:
    """[a, a again, b]: the same generator state gives the same number, another state another."""
    first, again, other = _floats(value)
    differs = "the same generator state gives another number"
    repeats = "another generator state gives the same number"
    return [
        Reading("the difference", again - first, 0, 1e-9, differs),
        Reading("the repeats", first == other, 0, 0.1, repeats),
    ]


def tells_apart(value: Plain, _before: Plain) -> list[Reading]:
    """Influences of the future on two functions: only rounding on the first, 0.001 on the other."""
    found = _floats(value)
    if len(found) != 2:
        raise Unreadable(f"{len(found)} numbers, expected 2")
    none, some = found
    too_much = f"where the future has no influence, {none:.2g} is found"
    too_little = f"where the future has an influence, {some:.2g} is found"
    return [
        Reading("the influence", none, 0, 1e-6, too_much),
        Reading("the influence", min(some, 1e-3), 1e-3, 1e-9, too_little),
    ]


def changes_the_future(value: Plain, before: Plain) -> list[Reading]:
    """Score matrices that a function was called with: past as given, future drawn anew.

    The n (n - 1) / 2 future scores of a matrix must look standard normal: their mean and spread,
    how many are near 0, how many far away. Limits are six standard errors.
    """
    (scores,) = before
    given = scores.double()
    future = torch.ones_like(given).triu(diagonal=1) == 1
    if not isinstance(value, list):
        raise Unreadable("the result is not a list of tensors")
    seen = [item for item in value if isinstance(item, Tensor) and item.shape == given.shape]
    drawn = [s.double()[future] for s in seen if not torch.equal(s.double(), given)]
    if not drawn:
        raise Unreadable("weights_fn was never given scores with another future")
    past = max(float((s.double() - given)[~future].abs().max()) for s in seen)
    new, n = drawn[-1], drawn[-1].numel()
    old = float(torch.isin(new.abs(), given.abs()).double().mean())
    return [
        Reading("the change", past, 0, 1e-6, "scores on or below the diagonal are changed"),
        Reading("the share of future scores taken from the old ones", old, 0, 0.005),
        Reading("the share of new ones that repeat another", 1 - len(new.unique()) / n, 0, 0.05),
        Reading("the mean of the new future scores", float(new.mean()), 0, 6 / sqrt(n)),
        Reading(
            "the standard deviation of the new future scores", float(new.std()), 1, 6 / sqrt(2 * n)
        ),
        share_of("the share of new future scores between -0.25 and 0.25", new.abs() < 0.25, 0.1974),
        share_of("the share of new future scores beyond ±1.74", new.abs() > 1.74, 0.0819),
    ]


def breaks_tril(value: Plain, _before: Plain) -> list[Reading]:
    """Finite float32 scores (n, n) on which softmax, tril, renormalise is off by 0.001."""
    if not isinstance(value, Tensor):
        raise Unreadable(f"the result is a {type(value).__name__}, expected a Tensor")
    shape = tuple(value.shape)
    if len(shape) != 2 or shape[0] != shape[1] or not 2 <= shape[0] <= 16:
        raise Unreadable(f"the shape is {shape}, expected (n, n) with n from 2 to 16")
    if value.dtype != torch.float32:
        raise Unreadable(f"the scores are {str(value.dtype).removeprefix('torch.')}, not float32")
    if not value.isfinite().all():
        raise Unreadable("some scores are not finite")
    hidden = torch.ones_like(value).triu(diagonal=1) == 1
    weights = torch.softmax(value, dim=-1).masked_fill(hidden, 0.0)
    sums = weights.sum(dim=-1, keepdim=True)
    tril_way = weights / sums.masked_fill(sums == 0, 1.0)
    inf_way = torch.softmax(value.double().masked_fill(hidden, -inf), dim=-1)
    error = float((tril_way - inf_way).abs().max())
    symptom = f"the tril way is off by {error:.2g} only, 0.001 is asked for"
    return [Reading("the error", min(error, 1e-3), 1e-3, 1e-9, symptom)]


def most_negative(value: Plain, before: Plain) -> list[Reading]:
    """The most negative finite number of the dtype of this name, exactly."""
    (found,) = _floats(value)
    (name,) = before
    wanted = torch.finfo(getattr(torch, name)).min
    symptom = f"{found:.6g} is not the most negative number of {name}"
    if not isfinite(found):
        symptom = f"{found} is not finite"
    elif found < wanted:
        symptom = f"{found:.6g} is lower than anything {name} can hold"
    return [Reading("the number", found, wanted, 1e-12 * abs(wanted), symptom)]


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        starts_uniform,
        measures_std,
        scatters,
        follows_generator,
        tells_apart,
        changes_the_future,
        breaks_tril,
        most_negative,
        *dropout_checks.ALL,
        *module_checks.ALL,
    )
}
