"""Checks for outcomes where more than one answer is right.

Each is a pure function from what was recorded to readings: a number measured, the number
wanted, and the limit of their difference. The same functions serve practice and grading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

import torch
from torch import Tensor

from autograde.verdict.compare import Difference
from autograde.verdict.packing import Plain


@dataclass(frozen=True)
class Reading:
    """One number read off an outcome; it is right within `limit` of `wanted`."""

    what: str
    value: float
    wanted: float
    limit: float

    @property
    def distance(self) -> float:
        if not isfinite(self.value):
            return inf
        return abs(self.value - self.wanted) / self.limit


class Unreadable(Exception):
    """The outcome has not the form that the check needs; the message says what it is."""


Check = Callable[[Plain, Plain], list[Reading]]
"""(outcome's value, arguments) -> readings; raises Unreadable."""


def difference(readings: list[Reading]) -> Difference:
    """The worst reading, in units of its limit."""
    worst = max(readings, key=lambda reading: reading.distance)
    return Difference(worst.distance, f"{worst.what} is {worst.value:.3g}, not {worst.wanted:.3g}")


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
    """One measurement on many samples: within six standard errors of sqrt(d_k)."""
    (measured,) = _floats(value)
    d_k, n_samples = before["d_k"], before["n_samples"]
    limit = 6 * _relative_error_of_std(d_k, n_samples)
    return [Reading("the ratio to sqrt(d_k)", measured / sqrt(d_k), 1.0, limit)]


def scatters(value: Plain, before: Plain) -> list[Reading]:
    """Many measurements: they scatter, by as much as theory says.

    Of 600 honest runs the spread is known to 3 in 100, so that 0.2 is six times that.
    """
    ratios = torch.tensor(_floats(value), dtype=torch.float64) / sqrt(before["d_k"])
    expected = _relative_error_of_std(before["d_k"], before["n_samples"])
    spread = float(ratios.std()) / expected
    return [
        Reading("the mean ratio to sqrt(d_k)", float(ratios.mean()), 1.0, 0.1),
        Reading(
            "the scatter of repeated measurements, in units of what theory says,",
            log(max(spread, 1e-9)),
            0.0,
            0.2,
        ),
    ]


def follows_generator(value: Plain, _before: Plain) -> list[Reading]:
    """[a, a again, b]: the same generator state gives the same number, another state another."""
    first, again, other = _floats(value)
    return [
        Reading("the difference of two runs from one generator state", again - first, 0, 1e-9),
        Reading("the number of repeats from different generator states", first == other, 0, 0.1),
    ]


CHECKS: dict[str, Check] = {
    check.__name__: check for check in (starts_uniform, measures_std, scatters, follows_generator)
}
