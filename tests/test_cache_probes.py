"""The probes of caches: right answers pass, the mistake that each is for does not."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from test_probes import failing, sentences
from torch import Tensor, nn


class Box:
    """A cache that keeps one tensor for keys and values, with a knob for each mistake."""

    mistake = ""
    all: ClassVar[list[tuple[Tensor, Tensor]]] = []

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length
        self.reset()

    def reset(self) -> None:
        Box.all.clear()
        self.kept = Box.all if self.mistake == "shared" else []
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        longer = self.length + k.shape[2]
        if self.mistake != "late" and longer > self.max_length:
            raise ValueError(longer)
        self.kept.append((k, v))
        self.length = longer
        if longer > self.max_length:
            raise ValueError(longer)
        if self.mistake == "changes results":
            for results in self.kept[:-1]:
                results[0].data.zero_()
        return tuple(torch.cat(parts, dim=2) for parts in zip(*self.kept, strict=True))


class Layer(nn.Module):
    """Every token adds up the values of those before it, with a knob for each mistake."""

    mistake = ""

    def __init__(self, d_out: int, longest: int, num_heads: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_out, d_out, bias=False)
        self.longest = longest
        self.heads = 1 if self.mistake == "unsplit" else num_heads
        self.past = 0

    def forward(self, x: Tensor, cache: Any = None) -> Tensor:
        values = self.linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (b, h, n, d)
        past = 0 if cache is None else self.past if self.mistake == "counts" else cache.length
        self.past = past + x.shape[1]
        if self.mistake != "late" and past + x.shape[1] > self.longest:
            raise ValueError(past)
        if cache is not None:
            kept = values.detach() if self.mistake == "detached" else values
            values = cache.append(kept, kept)[1]
        if past + x.shape[1] > self.longest:
            raise ValueError(past)
        sums = values.cumsum(dim=2).transpose(1, 2).flatten(2)  # (b, n, h * d)
        return sums if self.mistake == "all" else sums[:, past:][:, -x.shape[1] :]


def appending(r: Any, cache: Any) -> None:
    r.appends("in parts", cache, 9, "2 1 3", "2 reset 4")
    r.appends("refused", cache, 5, "3 3 2")
    r.appends("later", cache, 9, "2 1 3", later=True)
    r.appends("two caches", cache, 9, "2 other 1 other 3")


def feeding(r: Any, module: Any) -> None:
    layer = r.cached_layer(module, d_out=4, longest=8, num_heads=2)
    layer.linear("linear", "d_out -> d_out")
    layer.fed("in parts", r.normal(2, 6, 4), "6", "3 1 2")
    layer.fed("two caches", r.normal(2, 6, 4), "2 other 1 other 3")
    layer.fed_gradients("gradients", r.normal(2, 6, 4), "3 1 2")
    layer.overfed("refused", r.normal(2, 12, 4), "6 3 2")


@pytest.mark.parametrize(
    ("lines", "right", "mistake", "failed"),
    [
        (appending, Box, "", []),
        (appending, Box, "late", ["refused"]),
        (appending, Box, "changes results", ["in parts", "refused", "later", "two caches"]),
        (appending, Box, "shared", ["two caches"]),
        (feeding, Layer, "", []),
        (feeding, Layer, "all", ["in parts", "two caches", "gradients", "refused"]),
        (feeding, Layer, "counts", ["two caches", "refused"]),
        (feeding, Layer, "detached", ["gradients"]),
        (feeding, Layer, "late", ["refused"]),
        (feeding, Layer, "unsplit", ["in parts", "two caches", "gradients", "refused"]),
    ],
)
def test_each_mistake_fails_its_lines(
    lines: Callable[[Any, Any], None], right: Any, mistake: str, failed: list[str]
) -> None:
    answer = type(right.__name__, (right,), {"mistake": mistake})
    assert failing(lines, right, answer) == failed


def test_an_error_is_told_with_the_shape_of_what_was_fed() -> None:
    def lines(r: Any, module: Any) -> None:
        layer = r.cached_layer(module, d_out=4, longest=8, num_heads=2)
        layer.linear("linear", "d_out -> d_out")
        layer.fed("in parts", r.normal(2, 6, 4), "3 1")

    unsplit = type("Layer", (Layer,), {"mistake": "unsplit"})
    said = sentences(lines, Layer, unsplit)["in parts"]
    assert said.endswith("Its input has the shape (2, 4, 4).")


class Kept(NamedTuple):
    keys: Tensor
    values: Tensor


class Named(Box):
    """Its results have names."""

    def append(self, k: Tensor, v: Tensor) -> Kept:
        return Kept(*super().append(k, v))


def test_results_may_have_names() -> None:
    assert failing(appending, Box, Named) == []


class Early(Box):
    """Refuses what would just fit."""

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        if self.length + k.shape[2] == self.max_length:
            raise ValueError("full")
        return super().append(k, v)


class Method(Box):
    """Its length has to be called."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, (lambda: value) if name == "length" else value)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        self.kept.append((k, v))
        return k, v


SAID = {
    "a tuple too early": (Early, "3 2", "append 3, append 2`, what step 2 gives is a ValueError, "),
    "a refusal left out": (
        type("Endless", (Box,), {"__init__": lambda self, _: Box.__init__(self, 99)}),
        "3 3",
        "append 3, append 3`, what step 2 gives is a tuple, expected a ValueError.",
    ),
    "kept too much": (
        type("Late", (Box,), {"mistake": "late"}),
        "3 3 reset 2",
        "append 3, append 3, reset, append 2`, length after step 2 is 6, expected 3.",
    ),
    "a method": (Method, "3", "length is a method, expected an attribute or a property."),
}


@pytest.mark.parametrize("name", SAID)
def test_a_wrong_step_is_said_in_words(name: str) -> None:
    answer, plan, said = SAID[name]
    found = sentences(lambda r, cache: r.appends("it", cache, 5, plan), Box, answer)
    assert said in found["it"]
