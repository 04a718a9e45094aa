"""Checks on attention modules: what is free passes, what is wrong is named."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from attention_course.checks.of_attention import MOST_MATRICES, masks_the_future, starts_uniform
from attention_course.checks.of_dropout import drops_weights
from autograde.rubric.checks import Unreadable, worst

LOWER = torch.ones(5, 5).tril()
INF = float("inf")


@pytest.mark.parametrize(
    "mask",
    [
        LOWER,
        1 - LOWER,
        LOWER.bool(),
        LOWER.T.int(),
        LOWER.view(1, 1, 5, 5),
        torch.zeros(5, 5).masked_fill(LOWER == 0, -INF),
    ],
    ids=["ones", "other polarity", "bool", "queries as columns", "leading dimensions", "additive"],
)
def test_every_way_to_write_a_mask(mask: Tensor) -> None:
    assert worst(masks_the_future({"mask": mask, "learned": False}, (5,))).distance <= 1


@pytest.mark.parametrize(
    "mask",
    [torch.ones(5, 5), LOWER.triu(), LOWER + 0.5 * torch.eye(5), LOWER * torch.arange(1, 6)],
)
def test_what_is_no_mask(mask: Tensor) -> None:
    assert worst(masks_the_future({"mask": mask, "learned": False}, (5,))).distance > 2


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (None, r"state_dict\(\) holds nothing under the name mask"),
        ("not saved", r"mask is a buffer, but state_dict\(\) leaves it out"),
        ("mask", r"state_dict\(\) holds a str, not a tensor, under the name mask"),
        (torch.ones(4, 4), "the mask has the shape"),
        (torch.ones(2, 5, 5), "the mask has the shape"),
    ],
)
def test_an_unreadable_mask(mask: object, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        masks_the_future({"mask": mask, "learned": False}, (5,))


B, N, D = 4, 9, 3


def weights_and_x(seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Weights and input that show the attention weights twice, as the check wants them."""
    generator = torch.Generator().manual_seed(seed)
    names = ("W_query.weight", "W_key.weight")
    weights = {name: torch.randn(2 * N, N + D, generator=generator) for name in names}
    eye = torch.eye(N)
    weights["W_value.weight"] = torch.cat([torch.cat([eye, eye]), torch.zeros(2 * N, D)], dim=1)
    x = torch.cat([eye.expand(B, N, N), torch.randn(B, N, D, generator=generator)], dim=-1)
    return weights, x


def attention(
    weights: dict[str, Tensor], x: Tensor, drop: Callable[[Tensor], Tensor], heads: int = 1
) -> Tensor:
    q, k, v = (
        (x @ weights[f"W_{name}.weight"].T).unflatten(-1, (heads, -1)).transpose(1, 2)
        for name in ("query", "key", "value")
    )
    scores = (q @ k.mT / (2 * N) ** 0.5).masked_fill(torch.ones(N, N).triu(1) == 1, -INF)
    return (drop(torch.softmax(scores, dim=-1)) @ v).transpose(1, 2).flatten(2)


def readings_of(drop: Callable[[Tensor], Tensor], p: float, seed: int = 0) -> tuple[float, str]:
    weights, x = weights_and_x(seed)
    torch.manual_seed(seed)
    outputs = [attention(weights, x, drop) for _ in range(8)]
    outputs.append(attention(weights, x, lambda w: w))
    found = worst(drops_weights(outputs, (weights, x, p, 1)))
    return found.distance, found.note


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_right_dropout_passes_whatever_the_seed(p: float) -> None:
    worst = max(readings_of(lambda w: F.dropout(w, p), p, seed)[0] for seed in range(40))
    assert worst < 0.9


def renormalised(w: Tensor) -> Tensor:
    dropped = F.dropout(w, 0.2)
    return dropped / dropped.sum(-1, keepdim=True).clamp(min=1e-9)


WRONG: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "nothing is dropped": (lambda w: w / 0.8, "In training nothing is dropped"),
    "dropout is forgotten": (lambda w: w, "In training nothing is dropped"),
    "another p": (lambda w: F.dropout(w, 0.7) * 0.3 / 0.8, "The share of weights dropped"),
    "not scaled": (lambda w: F.dropout(w, 0.2) * 0.8, "not the weights divided by 1 - p"),
    "renormalised": (renormalised, "not the weights divided by 1 - p"),
    "one mask for all sentences": (lambda w: w * F.dropout(torch.ones(N, N), 0.2), "two sentences"),
    "whole columns": (lambda w: w * F.dropout(torch.ones(B, 1, 1, N), 0.2), "alike in two rows"),
    "whole rows": (lambda w: w * F.dropout(torch.ones(B, 1, N, 1), 0.2), "alike in two columns"),
    "the future gets through": (lambda w: F.dropout(w + 0.1, 0.2), "In training"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_dropout_is_named(case: str) -> None:
    drop, symptom = WRONG[case]
    distance, said = readings_of(drop, 0.2)
    assert distance > 2
    assert symptom in said


HEADS = 3


def several_heads(drop: Callable[[Tensor], Tensor]) -> tuple[float, str]:
    drawn = [weights_and_x(seed) for seed in range(HEADS)]
    x = drawn[0][1]
    weights = {name: torch.cat([w[name] for w, _ in drawn]) for name in drawn[0][0]}
    torch.manual_seed(0)
    outputs = [attention(weights, x, drop, HEADS) for _ in range(8)]
    outputs.append(attention(weights, x, lambda w: w, HEADS))
    found = worst(drops_weights(outputs, (weights, x, 0.2, HEADS)))
    return found.distance, found.note


def test_each_head_drops_weights_of_its_own() -> None:
    assert several_heads(lambda w: F.dropout(w, 0.2))[0] < 0.9
    distance, said = several_heads(lambda w: w * F.dropout(torch.ones(B, 1, N, N), 0.2))
    assert distance > 2
    assert "two heads" in said


def test_one_mask_for_every_call_is_named() -> None:
    weights, x = weights_and_x(1)
    output = attention(weights, x, lambda w: F.dropout(w, 0.2))
    found = worst(
        drops_weights([output] * 8 + [attention(weights, x, lambda w: w)], (weights, x, 0.2, 1))
    )
    assert found.distance > 2
    assert "two calls" in found.note


def test_dropping_outputs_is_named() -> None:
    weights, x = weights_and_x(2)
    output = attention(weights, x, lambda w: w)
    outputs = [*(F.dropout(output, 0.2) for _ in range(8)), output]
    found = worst(drops_weights(outputs, (weights, x, 0.2, 1)))
    assert "dropout belongs on the weights" in found.note


def test_dropping_in_eval_is_named() -> None:
    weights, x = weights_and_x(1)
    torch.manual_seed(0)
    outputs = [attention(weights, x, lambda w: F.dropout(w, 0.2)) for _ in range(9)]
    found = worst(drops_weights(outputs, (weights, x, 0.2, 1)))
    assert found.note == "In eval() the weights are not intact."


def test_a_mask_that_is_learned_is_named() -> None:
    with pytest.raises(Unreadable, match="so training would change it"):
        masks_the_future({"mask": LOWER, "learned": True}, (5,))


def test_unreadable_outputs() -> None:
    weights, x = weights_and_x(3)
    for value in (None, [], [torch.zeros(2, 3)], [1.0]):
        with pytest.raises((Unreadable, RuntimeError)):
            drops_weights(value, (weights, x, 0.2, 1))


def test_a_made_up_record_of_thousands_of_parameters_takes_no_time() -> None:
    with pytest.raises(Unreadable, match="parameters"):
        starts_uniform([torch.zeros(1)] * (MOST_MATRICES + 1), ())
