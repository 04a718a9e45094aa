"""Recognising mistakes: by numbers, beside others, the most specific, none rather than wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Rubric, as_cell, make_key, record
from torch import Tensor, nn

from autograde.grading.running.reference import run
from autograde.rubric.judge import judge
from autograde.rubric.key import Key
from autograde.rubric.kinds import Call
from autograde.rubric.recording import Case, Outcome
from autograde.rubric.slips import SLIPS

Answer = Callable[[Tensor, float], Any]


def named_of(lines: Rubric, key: Key, answer: Callable[..., Any]) -> list[str]:
    """Return the names of the beliefs that are recognised in an answer."""
    return [belief.name for belief in judge(record(lines, answer), key, trusted=True).beliefs]


@as_cell
def scaled_rubric(r: Any, answer: Callable[..., Any]) -> None:
    r.call("a matrix", answer, r.normal(3, 4), 4.0)
    r.call("a batch", answer, r.normal(2, 3, 3), 2.0)
    r.call("d_k = 1", answer, r.normal(3, 3), 1.0)
    r.refuses("raises ValueError for d_k = 0", answer, (r.normal(2, 2), 0.0))
    r.unchanged("leaves its arguments as they were")


def right(x: Tensor, d_k: float) -> Tensor:
    if not d_k:
        raise ValueError(d_k)
    return torch.softmax(x / d_k**0.5, dim=-1)


def unscaled(x: Tensor, d_k: float) -> Tensor:
    return right(x, d_k or 0) * 0 + torch.softmax(x, dim=-1)


def wrong_dimension(x: Tensor, d_k: float) -> Tensor:
    return right(x, d_k) * 0 + torch.softmax(x / d_k**0.5, dim=-2)


def first_dimension(x: Tensor, d_k: float) -> Tensor:
    return right(x, d_k) * 0 + torch.softmax(x / d_k**0.5, dim=0)


def accepting(x: Tensor, d_k: float) -> Tensor:
    return torch.softmax(x / (d_k or 1) ** 0.5, dim=-1)


def named(answer: Answer, *known: Answer) -> list[str]:
    """Return the names of the beliefs recognised, among known mistakes."""
    key = make_key(scaled_rubric, right, {mistake.__name__: mistake for mistake in known})
    return named_of(scaled_rubric, key, answer)


def test_a_known_mistake_is_named_and_another_is_not() -> None:
    assert named(unscaled, unscaled, wrong_dimension) == ["unscaled"]
    assert named(lambda x, d_k: 1 + right(x, d_k), unscaled, wrong_dimension) == []
    assert named(right, unscaled) == []


def test_a_missing_refusal_does_not_hide_a_wrong_scale() -> None:
    def both(x: Tensor, d_k: float) -> Tensor:
        return torch.softmax(x, dim=-1)

    assert named(both, unscaled, accepting) == ["unscaled", "accepting"]
    assert named(both, unscaled) == ["unscaled"]


def test_a_changed_argument_does_not_hide_a_wrong_dimension() -> None:
    def both(x: Tensor, d_k: float) -> Tensor:
        result = wrong_dimension(x.clone(), d_k)
        x += 1
        return result

    assert named(both, unscaled, wrong_dimension) == ["wrong_dimension"]


def test_the_most_specific_mistake_wins() -> None:
    # over the first dimension is the same for matrices, and another thing for a batch
    assert named(first_dimension, wrong_dimension, first_dimension) == ["first_dimension"]
    assert named(wrong_dimension, first_dimension, wrong_dimension) == ["wrong_dimension"]


def test_errors_are_told_apart_by_their_messages() -> None:
    def first(x: Tensor, d_k: float) -> Tensor:
        raise TypeError("one thing")

    def second(x: Tensor, d_k: float) -> Tensor:
        raise TypeError("another thing")

    assert named(first, first) == ["first"]
    assert named(second, first) == []


def test_an_error_is_the_same_when_the_operands_change_places() -> None:
    def first(x: Tensor, d_k: float) -> Tensor:
        return x + torch.ones(7)

    def second(x: Tensor, d_k: float) -> Tensor:
        return torch.ones(7) + x

    assert named(second, first) == ["first"]


def test_an_error_is_the_same_in_a_release_of_pytorch_that_names_the_operation_too() -> None:
    def in_2_13(x: Tensor, d_k: float) -> Tensor:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)")

    def in_2_15(x: Tensor, d_k: float) -> Tensor:
        raise RuntimeError("mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)")

    def other_shapes(x: Tensor, d_k: float) -> Tensor:
        raise RuntimeError("mm: mat1 and mat2 shapes cannot be multiplied (3x2 and 4x3)")

    assert named(in_2_15, in_2_13) == ["in_2_13"]
    assert named(other_shapes, in_2_13) == []


def test_an_error_on_one_line_says_little_when_others_of_its_kind_are_wrong_too() -> None:
    def fails_on_batches(x: Tensor, d_k: float) -> Tensor:
        if x.ndim == 3:
            raise RuntimeError("shapes")
        return right(x, d_k)

    def another(x: Tensor, d_k: float) -> Tensor:
        if x.ndim == 3:
            raise RuntimeError("shapes")
        return 7 + right(x, d_k)

    assert named(fails_on_batches, fails_on_batches) == ["fails_on_batches"]
    assert named(another, fails_on_batches) == []


def wrong_and_zero_for(*sizes: float) -> Answer:
    return lambda x, d_k: wrong_dimension(x, d_k) * (d_k not in sizes)


def test_a_line_that_a_second_mistake_changes_does_not_hide_the_first() -> None:
    assert named(wrong_and_zero_for(1.0), wrong_dimension) == ["wrong_dimension"]
    assert named(wrong_and_zero_for(1.0, 2.0), wrong_dimension) == []


def test_a_mistake_in_a_later_line_is_not_named_where_an_earlier_line_stays_unexplained() -> None:
    def wrong_for_one(x: Tensor, d_k: float) -> Tensor:
        return wrong_dimension(x, d_k) if d_k == 1 else right(x, d_k)

    def wrong_in_the_first_line_too(x: Tensor, d_k: float) -> Tensor:
        return 7 + right(x, d_k) if d_k == 4 else wrong_for_one(x, d_k)

    assert named(wrong_for_one, wrong_for_one) == ["wrong_for_one"]
    assert named(wrong_in_the_first_line_too, wrong_for_one) == []


def test_a_mistake_that_shows_in_one_case_is_not_named_where_others_of_its_line_are_wrong() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.each("any size", answer, *((r.normal(n, 3),) for n in (2, 3, 4)))

    def wrong_for(*sizes: int) -> Callable[[Tensor], Tensor]:
        return lambda x: x**2 + len(x) if len(x) in sizes else x

    key = make_key(lines, lambda x: x, {"four": wrong_for(4)})
    for sizes, beliefs in (((4,), ["four"]), ((2, 3, 4), [])):
        assert named_of(lines, key, wrong_for(*sizes)) == beliefs


def test_two_mistakes_in_the_same_cases() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.each("any size", answer, *((r.normal(n, 3),) for n in (1, 2, 3, 4, 5)))

    def doubled(x: Tensor) -> Tensor:
        return 2 * x

    def doubled_up_to_four(x: Tensor) -> Tensor:
        return 2 * x if len(x) < 5 else 3 * x

    def answer(failing: tuple[int, ...], unharmed: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
        return lambda x: x[7] if len(x) in failing else x if len(x) in unharmed else 2 * x

    key = make_key(lines, lambda x: x, {"doubled": doubled})
    both = make_key(lines, lambda x: x, {"doubled": doubled, "other": doubled_up_to_four})
    for known, failing, unharmed, beliefs in (
        (key, (1, 2), (), ["doubled"]),
        (key, (1, 2, 3), (), ["doubled"]),  # two cases show it; the others may be anything
        (key, (1, 2, 3, 4), (), []),  # one may be chance
        (key, (1, 2), (3,), []),  # it would show in the third case, too
        (both, (1, 2, 3), (), ["doubled"]),  # it shows in one more case than the other mistake
        (both, (1, 2, 5), (), []),  # neither shows more often
    ):
        assert named_of(lines, known, answer(failing, unharmed)) == beliefs


def test_each_answer_words_a_refusal_in_its_own_way() -> None:
    def refusing(message: str) -> Answer:
        def answer(x: Tensor, d_k: float) -> Tensor:
            if d_k <= 1:
                raise ValueError(message)
            return right(x, d_k)

        answer.__name__ = "refusing"
        return answer

    assert named(refusing("d_k must be above 1"), refusing("no")) == ["refusing"]


def test_an_error_of_another_size_is_another_mistake() -> None:
    @as_cell
    def doubles(r: Any, answer: Callable[..., Any]) -> None:
        r.call("float64", answer, r.normal(3, 3, dtype=torch.float64))

    def off_by(share: float) -> Callable[[Tensor], Tensor]:
        return lambda x: x * (1 + share)

    key = make_key(doubles, off_by(0), {"rounded": off_by(1e-8)}, tolerance=1e-10)
    for share, beliefs in ((2e-8, ["rounded"]), (2e-7, ["last_digits"]), (1e-3, ["other_factor"])):
        assert named_of(doubles, key, off_by(share)) == beliefs


def test_nan_alone_says_little() -> None:
    @as_cell
    def gradients(r: Any, answer: Callable[..., Any]) -> None:
        r.gradient("one way", answer, r.normal(3, 3))
        r.gradient("another", answer, r.normal(2, 2))

    def nan_for(*sizes: int) -> Callable[[Tensor], Tensor]:
        return lambda x: x * float("nan") if len(x) in sizes else 2 * x

    key = make_key(gradients, lambda x: 2 * x, {"three": nan_for(3)})
    for sizes, beliefs in (((3,), ["three"]), ((2, 3), [])):
        assert named_of(gradients, key, nan_for(*sizes)) == beliefs


def test_what_a_wrong_refusal_says_does_not_matter() -> None:
    def known(x: Tensor, d_k: float) -> Tensor:
        return right(x, d_k) if d_k else x.view(-1, 7)

    def mine(x: Tensor, d_k: float) -> Tensor:
        if not d_k:
            raise RuntimeError("d_k is 0")
        return right(x, d_k)

    assert named(mine, known) == ["known"]


def slips_of(answer: Callable[[Tensor], Any]) -> list[str]:
    """Return the names of the slips of an answer that should double a matrix without negatives."""

    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.each("any size", answer, (r.normal(2, 3),), (r.normal(4, 4),))
        r.gradient("lets gradients through", answer, r.normal(2, 3))
        r.refuses("raises ValueError without dimensions", answer, (r.normal(1).sum(),))
        r.unchanged("leaves its arguments as they were")

    key = make_key(lines, doubled_matrix, {"tripled": lambda x: 3 * doubled_matrix(x)})
    return named_of(lines, key, answer)


def doubled_matrix(x: Tensor) -> Tensor:
    if not x.ndim:
        raise ValueError("no dimensions")
    return 2 * x


def changing(x: Tensor) -> Tensor:
    result = doubled_matrix(x).clone()
    if not x.requires_grad:
        x.zero_()
    return result


def changing_a_leaf(x: Tensor) -> Tensor:
    if not x.ndim:
        raise ValueError("no dimensions")
    x *= 2
    return x


def test_a_slip_that_any_answer_can_have_is_named_where_no_known_mistake_fits() -> None:
    for answer, name in (
        (lambda x: doubled_matrix(x).T, "transposed"),
        (lambda x: doubled_matrix(x)[None], "other_shape"),
        (lambda x: doubled_matrix(x).double(), "other_dtype"),
        (lambda x: -doubled_matrix(x), "opposite"),
        (
            lambda x: doubled_matrix(x)[None] if x.shape[:1] == (2,) else doubled_matrix(x),
            "other_shape",
        ),
        (lambda x: doubled_matrix(x).flip(-1), "other_places"),
        (lambda x: doubled_matrix(x).detach(), "without_gradient"),
        (lambda x: 2 * x, "not_refused"),
        (lambda x: doubled_matrix(x) if x.ndim else x.nothing, "refused_otherwise"),
        (changing, "argument_changed"),
        (changing_a_leaf, "argument_changed"),
        (lambda x: 5 * doubled_matrix(x), "other_factor"),
        (lambda x: doubled_matrix(x)[:-1], "other_length"),
        (lambda x: torch.cat([doubled_matrix(x), x]), "other_length"),
        (
            lambda x: doubled_matrix(x) - x.clamp(max=0) + x.clamp(max=0).detach(),
            "without_gradient",
        ),
    ):
        assert slips_of(answer) == [name]


def test_who_refuses_by_another_error_is_not_told_to_refuse() -> None:
    def refusing(x: Tensor) -> Tensor:
        if not x.ndim:
            raise Exception("no dimensions")
        return doubled_matrix(x)

    assert slips_of(refusing) == []


class Projected(nn.Module):
    """A linear layer."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.W(x)
        return output


class HalfProjected(Projected):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


class ProjectedAgain(Projected):
    """Code copied from elsewhere often has one layer more."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__(d_in, d_out)
        self.last = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.last(super().forward(x))
        return output


class NeverUsed(ProjectedAgain):
    def forward(self, x: Tensor) -> Tensor:
        return Projected.forward(self, x)


class OfAnotherType(ProjectedAgain):
    """What it holds besides does not make its error."""

    def forward(self, x: Tensor) -> Tensor:
        return Projected.forward(self, x).masked_fill(torch.ones(4), 0.0)


def test_what_a_layer_holds_beside_its_contract_is_named_also_where_it_spoils_the_results() -> None:
    @as_cell
    def lines(r: Any, layer: type[nn.Module]) -> None:
        made = r.layer(layer, d_in=3, d_out=4)
        made.linear("W", "d_in -> d_out")
        made.outputs("any number of rows", r.normal(2, 3), r.normal(5, 3))
        made.gradients("everything it holds learns", r.normal(2, 3))

    key = make_key(lines, Projected, {"half": HalfProjected})
    for layer, name, told in (
        (HalfProjected, "half", 2),
        (ProjectedAgain, "has_more", 2),
        (NeverUsed, "has_more", 1),
        (OfAnotherType, "has_more", 1),
    ):
        (belief,) = judge(record(lines, layer), key, trusted=True).beliefs
        assert (belief.name, len(belief.lines)) == (name, told)


def test_wrong_numbers_do_not_explain_an_error_in_the_first_wrong_line() -> None:
    @as_cell
    def lines(r: Any, answer: Answer) -> None:
        r.call("a matrix", answer, r.normal(3, 4), 4.0)
        r.call("a square", answer, r.normal(3, 3), 2.0)
        r.call("another", answer, r.normal(4, 4), 2.0)

    def fails_first(x: Tensor, d_k: float) -> Tensor:
        return unscaled(x, d_k) if len(x) == x.shape[1] else x @ x

    key = make_key(lines, right, {"unscaled": unscaled})
    assert named_of(lines, key, unscaled) == ["unscaled"]
    assert named_of(lines, key, fails_first) == []


@pytest.mark.parametrize("any_order", [False, True])
def test_a_call_that_a_check_of_the_answer_should_not_refuse_is_named(any_order: bool) -> None:
    def doubled_after(check: str) -> Answer:
        names: dict[str, Any] = {}
        run(f"def it(x):\n    {check}\n    return 2 * x", names)
        return names["it"]

    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        asked = r.any_column_order if any_order else r
        asked.each("any size", answer, (r.normal(2, 3),), (r.normal(4, 4),))

    key = make_key(lines, lambda x: 2 * x, {"tripled": lambda x: 3 * x})
    for check, beliefs in (
        ("if len(x) < 3: raise ValueError('too small')", ["refused"]),
        ("assert len(x) > 2", ["refused"]),
        ("len(x) > 2 or int('what is called refuses it')", []),
    ):
        assert named_of(lines, key, doubled_after(check)) == beliefs


def test_no_slip_is_seen_in_numbers_for_what_has_no_order_or_size() -> None:
    numbers, plane = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0j, 1.0])
    times, texts = np.array([3, 2, 1], "M8[D]"), np.array(["c", "b", "a"])
    for expected in (plane, times, texts):
        case = Case("f()", (), Outcome(value=expected))
        of_results = [slip for slip in SLIPS if slip.kinds == (Call,)]
        assert not any(slip.shows(Outcome(value=numbers), case) for slip in of_results)


def test_no_slip_is_named_where_it_does_not_explain_every_wrong_line() -> None:
    assert slips_of(lambda x: 3 * doubled_matrix(x)) == ["tripled"]
    assert slips_of(lambda x: 5 + doubled_matrix(x)) == []
    assert slips_of(lambda x: 5 + x) == []
    assert slips_of(lambda x: 5 + x.detach()) == []
    assert slips_of(lambda x: doubled_matrix(x)[None] if len(x) < 3 else x + 1) == []
    assert slips_of(lambda x: 2 * x if x.ndim else ValueError("returned")) == []
    assert slips_of(lambda x: (2 * x).detach()) == ["without_gradient", "not_refused"]


def test_no_slip_makes_a_tensor_of_an_array() -> None:
    for times in (1, 5):
        assert slips_of(lambda x, times=times: times * doubled_matrix(x).detach().numpy()) == []
