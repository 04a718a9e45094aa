"""Drawn tokens are judged by how often each comes up: right draws pass, wrong ones do not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_course import Rubric
from attention_course.checks.of_tokens import drawn_tokens, nucleus
from autograde.rubric.checks import Unreadable, worst

ROWS = torch.tensor([[0.45, 0.44, 0.08, 0.03], [0.9, 0.05, 0.03, 0.02]]).log()
MANY = ROWS.repeat(1_000, 1)


def draw(chances: Tensor) -> Tensor:
    return torch.multinomial(chances.float(), 1)[:, 0]


def read(value: Any, *before: Any) -> tuple[bool, str]:
    """Return whether a value is right, and what a student is told."""
    try:
        found = worst(drawn_tokens(value, before))
    except Unreadable as error:
        return False, str(error)
    return found.distance <= 1, found.note


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dials", [(), (0.5,), (2.0, 0.9), (1.0, 0.7)])
def test_right_draws_pass(seed: int, dials: tuple[float, ...]) -> None:
    torch.manual_seed(seed)
    chances = nucleus(MANY, *[*dials, 1.0, 1.0][:2])
    assert read([draw(chances), draw(chances)], MANY, *dials)[0]


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    kept = nucleus(ROWS, 1.0, 0.7)
    assert torch.allclose(kept[0], torch.tensor([45 / 89, 44 / 89, 0, 0]).double())
    assert torch.equal(kept[1], torch.tensor([1.0, 0, 0, 0]).double())
    assert torch.allclose(nucleus(ROWS, 0.5, 1.0), torch.softmax(2 * ROWS.double(), dim=-1))


PLAIN = nucleus(MANY, 1.0, 1.0)
WRONG: list[tuple[Callable[[], Any], tuple[float, ...], str]] = [
    (lambda: [draw(PLAIN)] * 2, (), "two calls draw the same tokens too often"),
    (lambda: [draw(PLAIN), draw(PLAIN)], (1.0, 0.7), "although likelier ones reach top_p"),
    (lambda: [draw(PLAIN), draw(PLAIN)], (0.2,), "comes up in"),
    (lambda: [PLAIN.argmax(dim=-1)] * 2, (), "comes up in"),
    (lambda: [draw(PLAIN)[:, None]] * 2, (), "the shape is (2000, 1), expected (2000,)"),
    (lambda: [draw(PLAIN).int()] * 2, (), "the tokens are int32, not int64"),
    (lambda: [draw(PLAIN) - 1] * 2, (), "not one of 0 to 3"),
    (lambda: [draw(PLAIN)], (), "cannot be read"),
]


@pytest.mark.parametrize(("drawn", "dials", "told"), WRONG)
def test_wrong_draws_fail_and_say_why(
    drawn: Callable[[], Any], dials: tuple[float, ...], told: str
) -> None:
    torch.manual_seed(1)
    right, said = read(drawn(), MANY, *dials)
    assert not right
    assert told.lower() in said.lower()


def test_drawn_logits_have_the_probabilities_asked_for() -> None:
    r = Rubric("it", 3)
    logits = r.logits((0.5, 0.3, 0.2), (0.9, 0.06, 0.04))
    chances, _ = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    assert torch.allclose(chances, torch.tensor([[0.5, 0.3, 0.2], [0.9, 0.06, 0.04]]), atol=1e-6)
    assert not torch.allclose(logits.exp().sum(dim=-1), torch.ones(2), atol=0.01)
