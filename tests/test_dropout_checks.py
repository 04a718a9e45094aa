"""Random zeros are judged by their properties: right draws pass, subtly wrong ones do not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_course  # noqa: F401  # registers them
from autograde.rubric.checks import Checked, Reading, Unreadable, worst
from autograde.rubric.kinds import KINDS
from autograde.values.base import Unrecordable

CALLS, SHAPE, P = 200, (3, 4, 6), 0.45


def even(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def readings_of(check: str, value: Any, before: Any) -> list[Reading]:
    kind = KINDS[check]
    assert isinstance(kind, Checked)
    return kind.check(value, before)


def read(check: str, value: Any, *before: Any) -> tuple[bool, str]:
    """Return whether a value is right, and what a student is told."""
    try:
        found = worst(readings_of(check, value, before))
    except Unreadable as error:
        return False, str(error)
    return found.distance <= 1, found.note


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("p", [0.4, 0.6])
def test_independent_zeros_pass(seed: int, p: float) -> None:
    zeros = even(CALLS, *SHAPE, seed=seed) < p
    assert read("coins", zeros, SHAPE, p)[0]
    assert read("share_of_zeros", ~zeros, (), p)[0]


def exact_count(u: Tensor) -> Tensor:
    ranks = u.flatten(1).argsort(dim=1).argsort(dim=1)
    return (ranks < P * ranks.shape[1]).view(u.shape)


def never_a_whole_row(u: Tensor) -> Tensor:
    zeros = u[..., :2] < P
    return zeros & ~zeros.all(dim=-1, keepdim=True)


def with_a_wobble(u: Tensor) -> Tensor:
    p = torch.full((CALLS, 1, 1, 1), P - 0.1)
    p[::2] = P + 0.1
    return u < p


WRONG: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "rows": (lambda u: (u[..., :1] < P).expand(u.shape), "same row are dropped together"),
    "columns": (lambda u: (u[..., :1, :] < P).expand(u.shape), "same column are dropped together"),
    "batch": (lambda u: (u[:, :1] < P).expand(u.shape), "matrices of a batch are dropped together"),
    "one row": (lambda u: (u[:, :1, :1] < P).expand(u.shape), "are dropped together"),
    "calls": (lambda u: (u[:1] < P).expand(u.shape), "calls give the same zeros again"),
    "two masks": (lambda u: (u[:2] < P).repeat(CALLS // 2, 1, 1, 1), "the same zeros again"),
    "exact count": (exact_count, "the number of zeros is the same at every call"),
    "never a whole row": (never_a_whole_row, "same row are not independent"),
    "wobble": (with_a_wobble, "the number of zeros varies"),
    "none": (lambda u: u < 0, "no entry is ever 0"),
    "all": (lambda u: u < 2, "every entry is always 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_zeros_that_know_of_each_other_do_not_pass(name: str) -> None:
    draw, symptom = WRONG[name]
    zeros = draw(even(CALLS, *SHAPE))
    right, told = read("coins", zeros, zeros.shape[1:], float(zeros.double().mean()))
    assert not right
    assert symptom in told[:1].lower() + told[1:]


def test_share_of_zeros() -> None:
    mask = even(90, 50) >= 0.2
    assert read("share_of_zeros", mask, (90, 50), 0.2)[0]
    right, told = read("share_of_zeros", ~mask, (90, 50), 0.2)
    assert not right
    assert "share of entries that are 0 is 0.792, expected 0.2." in told
    assert not read("share_of_zeros", None, (90, 50), 0.2)[0]
    assert not read("share_of_zeros", torch.zeros(1), (90, 50), 0.2)[0]


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ((even(3, 4) < 0.5).float(), True),
        ((even(3, 4) < 0.5).float() * 2, False),
        ((even(3, 4) < 0.5).double(), False),
        (even(4, 3) < 0.5, False),
        (None, False),
    ],
)
def test_zeros_and_ones(value: Any, right: bool) -> None:
    assert read("zeros_and_ones", value, (3, 4), 0.5)[0] == right


X = even(40, 50, seed=2) + 0.5


def four(x: Tensor, keep: Callable[[Tensor], Tensor] = lambda u: u >= P) -> list[Tensor]:
    """Return four copies of x with entries dropped, not scaled."""
    return [x * keep(even(*x.shape, seed=seed)).to(x) for seed in range(4)]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([y / (1 - P) for y in four(X)], ""),
        ([y * (1 / (1 - P)) for y in four(X)], ""),
        (four(X), "Kept entries are 1 times x, expected 1.82."),
        ([y / P for y in four(X)], "Kept entries are 2.22 times x"),
        ([y / (1.0001 - P) for y in four(X)], "are 1.8179 times x, expected 1.8182."),
        ([X / (1 - P)] * 4, "The share of entries that are 0 is 0, expected 0.45."),
        ([y / P for y in four(X, lambda u: u >= 1 - P)], "expected 1.82"),
        ([torch.where(y == 0, 1e-3, y / (1 - P)) for y in four(X)], "neither 0 nor x / (1 - p)"),
        ([0 * X], "every entry is 0"),
        ([X / 0], "2000 of 2000 entries are not finite"),
        ([y.double() / (1 - P) for y in four(X)], "the result is float64, expected float32"),
        ([y[:3] for y in four(X)], "the shape is (3, 50), expected (40, 50)"),
        ([X * (even(50, seed=s) >= P) / (1 - P) for s in range(4)], "the same column are dropped"),
        ([X * (even(40, 1, seed=s) >= P) / (1 - P) for s in range(4)], "the same row are dropped"),
        (None, "the result is not a list of tensors"),
        ([Unrecordable("a ndarray")], "the result is a ndarray, expected a tensor"),
    ],
)
def test_dropped_copies(value: Any, told: str) -> None:
    right, said = read("dropped_copies", value, X, P)
    assert right == (not told)
    assert told in said


def test_a_factor_may_be_rounded_as_in_float32() -> None:
    factor = torch.tensor(1 / (1 - P), dtype=torch.float32).double()
    assert read("dropped_copies", [y * factor for y in four(X.double())], X.double(), P)[0]


KEEP = (even(40, 50, seed=3) >= P).float()


@pytest.mark.parametrize(
    ("gradient", "told"),
    [
        (KEEP / (1 - P), ""),
        (KEEP, "The gradient is not what each entry was multiplied by"),
        (torch.ones(40, 50), "The gradient is not what each entry was multiplied by"),
        (0 * KEEP, "The gradient is 0 everywhere"),
        (KEEP / 0, "entries of the gradient are nan or infinite"),
        (None, "no gradient passes"),
    ],
)
def test_gradient_is_what_an_entry_was_multiplied_by(gradient: Tensor | None, told: str) -> None:
    value = [X * KEEP / (1 - P), gradient]
    right, said = read("passes_gradients", value, X, torch.ones(40, 50))
    assert right == (not told)
    assert told in said


def test_nothing_kept_is_no_dropout() -> None:
    right, told = read("passes_gradients", [0 * X, 0 * X], X, torch.ones(40, 50))
    assert not right
    assert told == "Every entry is 0."


def test_one_mask_at_every_call_is_told_alike_whatever_the_mask() -> None:
    """Answers that set a seed, each another one, make the same mistake."""

    def readings(seed: int) -> list[Reading]:
        one = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(seed)) < P
        return readings_of("coins", one.expand(CALLS, *SHAPE), (SHAPE, P))

    assert readings(42) == readings(1337)


def test_coins_fall_with_the_right_share_and_shape() -> None:
    zeros = even(CALLS, *SHAPE) < P
    right, told = read("coins", zeros, SHAPE, 1 - P)
    assert not right
    assert "expected 0.55" in told
    assert not read("coins", zeros.flatten(1), SHAPE, P)[0]


@pytest.mark.parametrize(
    ("copies", "in_use", "told"),
    [
        ([y / (1 - P) for y in four(X)], X, ""),
        ([y / (1 - P) for y in four(X)], X * (1 - P), "When not training the result is not x."),
        ([four(X)[0] / (1 - P)] * 4, X, "Calls give the same zeros."),
        (four(X), X, "Kept entries are 1 times x, expected 1.82."),
        ([y / (1 - P) for y in four(X)], None, "the result is a NoneType, expected a tensor"),
    ],
)
def test_dropped_in_training_only(copies: list[Tensor], in_use: Any, told: str) -> None:
    right, said = read("drops_in_training", {"in training": copies, "in use": in_use}, X, P)
    assert right == (not told)
    assert told in said
