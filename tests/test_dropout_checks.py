"""Random zeros are judged by their properties: right draws pass, subtly wrong ones do not."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from autograde.rubric.checks import CHECKS
from autograde.rubric.readings import Reading, Unreadable, difference

CALLS, SHAPE, P = 200, (3, 4, 6), 0.45


def even(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def read(check: str, value: Any, **before: Any) -> tuple[bool, str]:
    """Whether it is right, and what a student is told."""
    try:
        found = difference(CHECKS[check](value, before))
    except Unreadable as error:
        return False, str(error)
    return found.distance <= 1, found.symptom


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("p", [0.4, 0.6])
def test_independent_zeros_pass(seed: int, p: float) -> None:
    zeros = even(CALLS, *SHAPE, seed=seed) < p
    assert read("drops_independently", zeros)[0]
    assert read("drops_share", [zeros], p=[p])[0]


def exact_count(u: Tensor) -> Tensor:
    ranks = u.flatten(1).argsort(dim=1).argsort(dim=1)
    return (ranks < P * ranks.shape[1]).view(u.shape)


def never_a_whole_row(u: Tensor) -> Tensor:
    zeros = u[..., :2] < P
    return zeros & ~zeros.all(dim=-1, keepdim=True)


def symmetric(u: Tensor) -> Tensor:
    u = u[..., :4]
    return u.tril() + u.tril(-1).mT < P


def coins_used_twice(u: Tensor) -> Tensor:
    return (u.flatten(1) < P)[:, torch.arange(72) % 60].view(u.shape)


def opposites(u: Tensor) -> Tensor:
    u[1::2] = 1 - u[::2]
    return u < P


def with_a_wobble(u: Tensor) -> Tensor:
    p = torch.full((CALLS, 1, 1, 1), P - 0.1)
    p[::2] = P + 0.1
    return u < p


WRONG: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "rows": (lambda u: (u[..., :1] < P).expand(u.shape), "same row are dropped together"),
    "columns": (lambda u: (u[..., :1, :] < P).expand(u.shape), "same column are dropped together"),
    "batch": (lambda u: (u[:, :1] < P).expand(u.shape), "matrices of a batch are dropped together"),
    "calls": (lambda u: (u[:1] < P).expand(u.shape), "calls give the same zeros again"),
    "two masks": (lambda u: (u[:2] < P).repeat(CALLS // 2, 1, 1, 1), "the same zeros again"),
    "exact count": (exact_count, "the number of zeros is the same at every call"),
    "never a whole row": (never_a_whole_row, "same row are not independent"),
    "coins used twice": (coins_used_twice, "two places depend on each other: entries 12 apart"),
    "symmetric": (symmetric, "two places depend on each other"),
    "opposites": (opposites, "one call depends on the call before it (correlation -0"),
    "wobble": (with_a_wobble, "the number of zeros varies"),
    "a place spared": (lambda u: (u < P) & (torch.arange(6) != 2), "more often than others"),
    "none": (lambda u: u < 0, "no entry is ever 0"),
    "all": (lambda u: u < 2, "every entry is always 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_zeros_that_know_of_each_other_do_not_pass(name: str) -> None:
    draw, symptom = WRONG[name]
    right, told = read("drops_independently", draw(even(CALLS, *SHAPE)))
    assert not right
    assert symptom in told


def test_share_of_zeros() -> None:
    zeros = even(90, 50) < 0.2
    assert read("drops_share", [zeros, ~zeros], p=[0.2, 0.8])[0]
    right, told = read("drops_share", [~zeros], p=[0.2])
    assert not right
    assert "of the entries are 0, p is 0.2" in told
    assert not read("drops_share", zeros, p=[0.2])[0]
    assert not read("drops_share", [False], p=[0.2])[0]


X = even(20, 20, seed=2) + 0.5
WIDE = X.double() / 3  # has more digits than float32 holds
KEEP = (even(20, 20, seed=3) >= P).float()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (X * KEEP / (1 - P), ""),
        (X * KEEP * (1 / (1 - P)), ""),
        (X * KEEP, "kept entries are 1 times x, expected 1.82"),
        (X * KEEP / P, "kept entries are 2.22 times x"),
        (X / (1 - P), "no entry is dropped"),
        (torch.where(KEEP == 1, X / (1 - P), 1e-3), "neither 0 nor x / (1 - p)"),
        (0 * X, "every entry is 0"),
        (X / 0, "400 of 400 entries are not finite"),
        ((X * KEEP / (1 - P)).double(), "the result is float64, expected float32"),
        ((X * KEEP)[:3], "the shape is (3, 20), expected (20, 20)"),
        (None, "the result is a NoneType, expected a tensor"),
        ({"unrecordable": "a ndarray"}, "the result is a ndarray, expected a tensor"),
    ],
)
def test_kept_entries_are_scaled(value: Any, told: str) -> None:
    right, said = read("keeps_scaled", value, x=X, p=P)
    assert right == (not told)
    assert told in said


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (WIDE * KEEP / (1 - P), True),
        (WIDE * KEEP * torch.tensor(1 / (1 - P)), True),  # one factor, rounded once
        (WIDE.float() * KEEP / (1 - P), False),
    ],
)
def test_entries_rounded_as_in_float32_are_seen(value: Tensor, right: bool) -> None:
    assert read("keeps_scaled", value.double(), x=WIDE, p=P)[0] == right


@pytest.mark.parametrize(
    ("gradient", "told"),
    [
        (KEEP / (1 - P), ""),
        (KEEP, "the gradient is not what each entry was multiplied by"),
        (torch.ones(20, 20), "the gradient is not what each entry was multiplied by"),
        (0 * KEEP, "the gradient is 0 everywhere"),
        (KEEP / 0, "entries of the gradient are nan or infinite"),
        (None, "no gradient passes"),
    ],
)
def test_gradient_is_what_an_entry_was_multiplied_by(gradient: Tensor | None, told: str) -> None:
    value = [X * KEEP / (1 - P), gradient]
    right, said = read("passes_gradients", value, x=X, direction=torch.ones(20, 20))
    assert right == (not told)
    assert told in said


def copies(n: int, runs: int, *shape: int, seed: int = 1) -> Tensor:
    return (even(runs, n, *shape, seed=seed) >= P).float() / (1 - P)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("n", "runs"), [(3, 60), (40, 60), (200, 9)])
def test_means_of_independent_copies_pass(n: int, runs: int, seed: int) -> None:
    x = even(3, 5, 6, seed=2) + 0.5
    means = x * copies(n, runs, 3, 5, 6, seed=seed).mean(dim=1)
    assert read("scatters_as_a_mean", means, x=x, p=P, n_samples=n)[0]


N = 5
MASKS = copies(N, 60, 3, 5, 6)
NOISE = torch.randn(60, 3, 5, 6, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (torch.ones(60, 3, 5, 6), "the mean does not scatter"),
        (MASKS[:, 0], "scatters 2.2 times as much"),
        (MASKS.sum(dim=1), "the mean is 5"),
        (MASKS[:, :4].mean(dim=1), "not the mean of 5 copies"),
        (1 + NOISE * sqrt(P / ((1 - P) * N)), "not the mean of 5 copies"),
        (MASKS.mean(dim=1)[..., :1].expand(60, 3, 5, 6), "same row are dropped together"),
        (MASKS.mean(dim=1)[:1].expand(60, 3, 5, 6), "one call depends on the call before it"),
        (MASKS.mean(dim=1) / 0, "entries are not finite"),
        (MASKS, "the shape is (5, 3, 5, 6), expected (3, 5, 6)"),
    ],
)
def test_means_of_other_things_do_not_pass(factor: Tensor, told: str) -> None:
    x = torch.full((3, 5, 6), 0.3)
    right, said = read("scatters_as_a_mean", x * factor, x=x, p=P, n_samples=N)
    assert not right
    assert told in said


def test_a_wrong_answer_is_far_from_right() -> None:
    zeros = exact_count(even(CALLS, *SHAPE))
    readings: list[Reading] = CHECKS["drops_independently"](zeros, None)
    assert max(reading.distance for reading in readings) > 2
