"""Each probe records what its sentence says: right answers pass, the mistake it is for does not."""

import random
from collections.abc import Callable
from datetime import date, timedelta
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import as_cell, make_key, record
from torch import Tensor, nn

import attention_course  # noqa: F401  # registers its probes and checks
from attention_course.probes.operations import EMPTY, Devices
from autograde.rubric.judge import judge

INF = float("inf")


def failing(lines: Callable[[Any, Any], None], reference: Any, answer: Any) -> list[str]:
    """Return the names of the lines that an answer fails."""
    return list(sentences(lines, reference, answer))


def sentences(lines: Callable[[Any, Any], None], reference: Any, answer: Any) -> dict[str, str]:
    """Return what the student reads of each line that an answer fails."""
    cell = as_cell(lines)
    verdict = judge(record(cell, answer), make_key(cell, reference), trusted=True)
    return {line.name: line.failure.sentence for line in verdict.lines if line.failure}


def test_a_day_is_typed_into_the_call_that_fails() -> None:
    def lines(r: Any, next_day: Callable[[date], date]) -> None:
        r.call("the next day", next_day, date(2026, 2, 28))

    said = sentences(lines, lambda day: day + timedelta(days=1), lambda day: day.replace(day=1))
    assert said["the next day"] == (
        "`<lambda>(datetime.date(2026, 2, 28))` is datetime.date(2026, 2, 1), "
        "expected datetime.date(2026, 3, 1)."
    )


def test_a_result_that_holds_itself_is_named() -> None:
    def into_itself(x: Tensor) -> Any:
        rows: list[Any] = []
        for _ in x:
            rows.append(rows)
        return rows

    said = sentences(lambda r, answer: r.call("rows", answer, r.normal(9, 2)), list, into_itself)
    assert "returned a list that holds itself, expected a tensor" in said["rows"]


class Attention(nn.Module):
    """Causal attention, with a knob for each mistake."""

    mistake = ""
    longest = 0

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        if self.mistake == "bias forgotten":
            qkv_bias = False
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.dropout = nn.Dropout(dropout)
        self.p = dropout
        future = torch.ones(context_length, context_length).triu(1) == 1
        if self.mistake == "mask as attribute":
            self.mask = future
        else:
            self.register_buffer("mask", future)
        self.cached: Tensor | None = None
        holder = type(self) if self.mistake == "limit in the class" else self
        holder.longest = context_length

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.mistake != "any length" and n > self.longest:
            raise ValueError(n)
        if x.ndim != 3:
            raise ValueError(x.shape)
        if self.mistake == "in place":
            x.mul_(1.5)
        if self.mistake == "float32 inside":
            return self.attend(x.float(), n).to(x.dtype)
        return self.attend(x, n)

    def attend(self, x: Tensor, n: int) -> Tensor:
        query = self.W_query.weight.to(x)
        if self.mistake == "weights cached":
            self.cached = query.detach().clone() if self.cached is None else self.cached
            query = self.cached
        bias = 0 if self.W_query.bias is None else self.W_query.bias.to(x)
        queries = x @ query.T + bias
        keys, values = (
            nn.functional.linear(x, w.weight.to(x), None if w.bias is None else w.bias.to(x))
            for w in (self.W_key, self.W_value)
        )
        scores = queries @ keys.mT / sqrt(keys.shape[-1])
        fill = -1e4 if self.mistake == "finite fill" else -INF
        weights = torch.softmax(scores.masked_fill(self.mask[:n, :n], fill), dim=-1)
        if self.mistake == "p read once":
            weights = nn.functional.dropout(weights, self.p, self.training)
        elif self.mistake == "dropout in eval()":
            weights = nn.functional.dropout(weights, self.dropout.p)
        elif self.mistake == "dropout off for good" and not self.training:
            self.dropout.p = 0.0
        else:
            weights = self.dropout(weights)
        return weights @ (values.detach() if self.mistake == "values cut off" else values)


def attention_lines(r: Any, layer: Any) -> None:
    layer = r.layer(layer, d_in=4, d_out=6, context_length=8, dropout=0.0, qkv_bias=False)
    layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
    layer.idea.outputs("outputs", r.normal(1, 2, 4), r.normal(2, 8, 4))
    layer.outputs("bias", r.normal(3, 7, 4), qkv_bias=True)
    layer.first_token("first token", 100 * r.normal(8, 6, 4))
    layer.drops_weights("drops", p=0.3)
    layer.rereads_dropout("rereads", r.normal(3, 7, 4))
    layer.keeps_mask("mask", r.normal(2, 5, 4))
    layer.made_of("made of")
    layer.refuses("too long", r.normal(2, 9, 4))
    layer.conventions(r.normal(3, 7, 4))


LEFT_ALONE = "leaves its input as it was"
DOUBLE = "float64 in, float64 out, after .double()"
MISTAKES = {
    "": [],
    "bias forgotten": ["bias"],
    "mask as attribute": ["mask"],
    "any length": ["too long"],
    "limit in the class": ["too long"],
    "in place": ["outputs", "bias", "first token", "rereads", DOUBLE, LEFT_ALONE],
    "float32 inside": [DOUBLE],
    "weights cached": ["outputs", "everything it holds learns"],
    "finite fill": ["first token"],
    "p read once": ["rereads"],
    "dropout in eval()": ["drops"],
    "dropout off for good": ["drops"],
    "values cut off": ["everything it holds learns"],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_layer_s_lines_see_its_mistakes(mistake: str) -> None:
    answer = type("Answer", (Attention,), {"mistake": mistake})
    found = failing(attention_lines, Attention, answer)
    assert set(MISTAKES[mistake]) <= set(found)
    assert bool(found) == bool(mistake)
    assert len(found) <= len(MISTAKES[mistake]) + 2


class Matrices(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.W


class Frozen(Matrices):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__(d_in, d_out)
        self.W.requires_grad_(False)


def test_a_frozen_parameter_is_named() -> None:
    def lines(r: Any, layer: Any) -> None:
        layer = r.layer(layer, d_in=3, d_out=2)
        layer.parameters("W", "d_in d_out")
        layer.conventions(r.normal(4, 3))

    said = sentences(lines, Matrices, Frozen)
    assert set(said) == {"everything it holds learns"}
    assert "No gradient reaches W." in said["everything it holds learns"]


class Layers(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.W(x)
        return output


def match(two: Layers, one: Matrices) -> None:
    with torch.no_grad():
        one.W.copy_(two.W.weight.T)


def shared(two: Layers, one: Matrices) -> None:
    one.W = nn.Parameter(two.W.weight.detach().T)


def forgetful(two: Layers, one: Matrices) -> None:
    match(two, one)
    two.W.weight.data.zero_()


def frozen(two: Layers, one: Matrices) -> None:
    match(two, one)
    one.W.requires_grad_(False)


def in_use(two: Layers, one: Matrices) -> None:
    match(two.eval(), one)


def fixed(two: Layers, one: Matrices) -> None:
    matrix = two.W.weight.detach().T.clone()
    one.forward = lambda x: x @ matrix  # type: ignore[method-assign]


def untransposed(two: Layers, one: Matrices) -> None:
    with torch.no_grad():
        one.W.copy_(two.W.weight)


def copy_lines(r: Any, answer: Any) -> None:
    one, two = r.layer(Matrices, d_in=3, d_out=3), r.layer(Layers, d_in=3, d_out=3)
    one.parameters("W", "d_in d_out")
    two.linear("W", "d_in -> d_out")
    copy = r.copies(answer, two, one)
    copy.outputs("outputs", r.normal(2, 3))
    copy.shares_nothing("shares", r.normal(4, 3))


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (match, []),
        (shared, ["shares"]),
        (forgetful, ["shares"]),
        (frozen, ["shares"]),
        (fixed, ["shares"]),
        (in_use, ["shares"]),
        (untransposed, ["outputs", "shares"]),
    ],
)
def test_a_copy_s_lines_see_its_mistakes(answer: Callable[..., None], failed: list[str]) -> None:
    assert failing(copy_lines, match, answer) == failed


def test_a_parameter_that_a_copy_has_lost_is_named() -> None:
    def losing(two: Layers, one: Matrices) -> None:
        matrix = two.W.weight.detach().T.clone()
        del one.W
        one.W = matrix  # type: ignore[assignment]

    said = sentences(copy_lines, match, losing)["shares"]
    assert "breaks the contract: there is no parameter called W" in said


def drop(x: Tensor, p: float, training: bool, generator: torch.Generator | None = None) -> Tensor:
    if not training:
        return x
    keep = torch.rand(x.shape, generator=generator, dtype=x.dtype) >= p
    return x * keep / (1 - p)


def unscaled(x: Tensor, p: float, training: bool) -> Tensor:
    return drop(x, p, training) * (1 - p if training else 1)


def rows(x: Tensor, p: float, training: bool) -> Tensor:
    return x * drop(torch.ones_like(x[..., :1]), p, training)


def repeated(x: Tensor, p: float, training: bool) -> Tensor:
    return drop(x, p, training, torch.Generator().manual_seed(1))


def drop_lines(r: Any, answer: Any) -> None:
    r.drops("drops", answer, r.nonzero(40, 50), 0.3, True)
    r.drops_independently("independent", answer, r.nonzero(6, 5, 4), 0.5, True)
    r.drop_gradient("gradient", answer, r.nonzero(15, 16), 0.4, True)


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (drop, []),
        (unscaled, ["drops"]),
        (rows, ["independent"]),
        (repeated, ["independent"]),
    ],
)
def test_random_results_are_judged_by_their_statistics(
    answer: Callable[..., Tensor], failed: list[str]
) -> None:
    found = failing(drop_lines, drop, answer)
    assert set(failed) <= set(found)
    assert bool(found) == bool(failed)


def test_modules_come_in_an_order_that_the_seed_draws() -> None:
    orders = set()
    for seed in range(6):
        cell = record(_shuffled, lambda m, x: type(m).__name__, seed)
        orders.add(tuple(case.outcome.value for case in cell.lines[0].cases))
    assert len(orders) > 2


@as_cell
def _shuffled(r: Any, answer: Callable[..., Any]) -> None:
    r.each("all", answer, *r.modules(r.normal(2, 5, 4), *r.examples.LAYERS))


def test_a_changed_argument_spoils_no_other_call() -> None:
    def lines(r: Any, answer: Any) -> None:
        x = r.normal(3, 3)
        r.each("a part of it, and twice the same input", answer, (x[:2],), (x,), (x,))
        r.call("and once more", answer, x)
        r.unchanged("leaves its arguments as they were")

    def changing(x: Tensor) -> Tensor:
        return x.mul_(2)

    assert failing(lines, lambda x: 2 * x, changing) == ["leaves its arguments as they were"]


@pytest.mark.parametrize("dtype", ["category", "Float64", "float32"])
def test_an_argument_of_another_dtype_has_changed(dtype: str) -> None:
    def lines(r: Any, answer: Any) -> None:
        r.call("the total", answer, pd.DataFrame({"x": r.rng.integers(9, size=4) / 2}))
        r.unchanged("leaves its arguments as they were")

    def changing(table: pd.DataFrame) -> float:
        total = float(table["x"].sum())
        table["x"] = table["x"].astype(dtype)
        return total

    found = failing(lines, lambda table: float(table["x"].sum()), changing)
    assert found == ["leaves its arguments as they were"]


def test_an_untouched_nan_among_keys_is_no_change() -> None:
    def lines(r: Any, answer: Any) -> None:
        r.call("how many", answer, {np.float64("nan"): r.integer(1, 9)})
        r.unchanged("leaves its arguments as they were")

    assert failing(lines, len, len) == []


@pytest.mark.parametrize(
    "breaking",
    [
        lambda: np.random.set_bit_generator(np.random.PCG64(3)),  # type: ignore[attr-defined]
        lambda: np.random.set_state(np.random.RandomState(5).get_state()),
        lambda: random.setstate(random.Random(5).getstate()),  # noqa: S311
    ],
)
def test_an_answer_that_sets_up_generators_spoils_no_other_call(
    breaking: Callable[[], None],
) -> None:
    def lines(r: Any, answer: Any) -> None:
        r.each("draws", answer, (1,), (2,))

    def drawing(number: int) -> list[float]:
        return [number * random.random(), number * float(np.random.random())]  # noqa: S311

    def answer(number: int) -> list[float]:
        result = drawing(number)
        breaking()
        return result

    before = np.random.random.__self__, random.getstate()
    assert failing(lines, drawing, answer) == []
    assert (np.random.random.__self__, random.getstate()) == before


def test_an_argument_that_was_turned_is_put_back() -> None:
    def lines(r: Any, answer: Any) -> None:
        x = r.normal(2, 3)
        r.each("twice the same input", answer, (x,), (x,))
        r.unchanged("leaves its arguments as they were")

    def turning(x: Tensor) -> Tensor:
        return x.t_().T * 1.0

    assert failing(lines, lambda x: x * 1.0, turning) == ["leaves its arguments as they were"]


def test_gradients_that_an_answer_switched_off_are_on_for_the_next_call() -> None:
    def switching(x: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        return 2 * x

    def lines(r: Any, answer: Any) -> None:
        r.call("an earlier call", switching, r.normal(3))
        r.gradient("lets gradients through", answer, r.normal(3))

    assert failing(lines, lambda x: 2 * x, lambda x: x + x) == []
    assert torch.is_grad_enabled()


FOLLOWS: dict[str, Callable[[Tensor], Tensor]] = {
    "a new mask": lambda x: (x @ x.mT).masked_fill_(torch.eye(3, device=x.device).bool(), 0.0),
    "like x": lambda x: (x @ x.mT + x.new_ones(3, 3).tril()).softmax(-1) @ x,
    "zeros like x": lambda x: torch.zeros_like(x, device=x.device) + x,
    "sent there": lambda x: torch.where(torch.ones(3, 5).bool().to(x.device), x, -torch.inf),
    "dropout of a view": lambda x: nn.functional.dropout(x.mT.chunk(3, -1)[0], 0.5),
    "turned in place": lambda x: x.clone().t_() + 1,
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "a mask as index": lambda x: x.clone().index_put_((torch.ones(3).bool(),), torch.tensor(0.0)),
    "one number": lambda x: x * torch.tensor(2.0),
}
STAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "ones": lambda x: x * torch.ones(3, 5),
    "a mask by numbers": lambda x: x.masked_fill(torch.arange(5) > torch.arange(3)[:, None], 0.0),
    "joined to zeros": lambda x: torch.cat([x * 2, torch.zeros(3, 5)]),
    "after a turn in place": lambda x: x.clone().t_() + torch.ones(5, 3),
    "beside one number": lambda x: torch.where(torch.ones(3, 5).bool(), x.sum(), 0.0),
}


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_is_computed_on_another_device_has_its_shape(name: str) -> None:
    x = torch.ones(3, 5)
    with Devices() as devices:
        there = FOLLOWS[name](x.to(EMPTY))
    here = FOLLOWS[name](x)
    assert not devices.mixed
    assert there.is_meta
    assert (there.shape, there.dtype, there.stride()) == (here.shape, here.dtype, here.stride())


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_behind_is_seen(name: str) -> None:
    with pytest.raises(RuntimeError, match="two devices"), Devices() as devices:
        STAYS[name](torch.ones(3, 5, device=EMPTY))
    assert devices.mixed
