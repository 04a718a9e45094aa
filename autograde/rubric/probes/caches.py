"""Probes of a cache of keys and values, and of layers that are fed through one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograde.rubric.probes.layers import LayerProbe
from autograde.rubric.probes.plain import ContractBroken, family, to_plain
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.probes.weights import Weights, load
from autograde.rubric.recording import REFUSALS

HEADS, SIZE = 3, 4


class Cache:
    """A cache without a limit, which rubrics hand to layers; tensors are (b, h, n, d)."""

    def __init__(self) -> None:
        self._kept: list[tuple[Tensor, Tensor]] = []

    @property
    def length(self) -> int:
        return sum(k.shape[2] for k, _ in self._kept)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return all keys and values so far. Raises ContractBroken for other shapes."""
        if k.ndim != 4 or v.ndim != 4:
            shape = tuple((v if k.ndim == 4 else k).shape)
            raise ContractBroken(f"append is given a tensor {shape}, expected (b, h, n, d)")
        self._kept.append((k, v))
        keys, values = zip(*self._kept, strict=True)
        return torch.cat(keys, dim=2), torch.cat(values, dim=2)


class CacheProbes(Recorder):
    """Lines on a class with `append`, `length` and `reset`.

    A plan is a text such as "2 1 reset 3": append 2 tokens, then 1, reset, append 3. The batch has
    two sentences, and one more after each reset.
    """

    def appends(
        self,
        line: str,
        cache: Callable[[int], Any],
        max_length: int,
        *plans: str,
        later: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Record for each plan what every step gives, and the length after it.

        With `later` the results are read after the last step.

            r.appends("raises ValueError, and is then as before", KVCache, 5, "3 3 2", "6 5")
        """

        def run(plan: str, *pairs: tuple[Tensor, Tensor]) -> list[Any]:
            made, left, found = cache(max_length), list(pairs), []
            for step in plan.split():
                if step == "reset":
                    made.reset()
                    result: Any = "reset"
                else:
                    result = _refused_or(lambda: made.append(*left.pop(0)))
                found.append([result if later else to_plain(result), int(made.length)])
            return found

        typed = [f"{_name(cache)}({max_length}): append {plan}" for plan in plans]
        self.record(line, "call", [(run, self._drawn(p, dtype), {}) for p in plans], typed)

    def append_gradients(
        self, line: str, cache: Callable[[int], Any], max_length: int, plan: str
    ) -> None:
        """Record the gradients that the last keys and values send to each that was appended.

        r.append_gradients("gradients reach all that was appended", KVCache, 9, "2 1 4")
        """
        _, *drawn = self.widened(self._drawn(plan, torch.float32))
        leaves = [part.requires_grad_() for pair in drawn for part in pair]

        def run(*pairs: tuple[Tensor, Tensor]) -> dict[str, Tensor | None]:
            made, result = cache(max_length), ()
            for pair in pairs:
                result = made.append(*pair)
            found = self.gradients(line, torch.cat(result, dim=-1), leaves)
            names = [f"{name} of append {i + 1}" for i in range(len(pairs)) for name in "kv"]
            return dict(zip(names, found, strict=True))

        typed = [f"{_name(cache)}({max_length}): append {plan}"]
        self.record(line, "gradient", [(run, tuple(drawn), {})], typed)

    def _drawn(self, plan: str, dtype: torch.dtype) -> tuple[Any, ...]:
        batch, pairs = 2, []
        for step in plan.split():
            if step == "reset":
                batch += 1
            else:
                shape = (batch, HEADS, int(step), SIZE)
                pairs.append((self.normal(*shape, dtype=dtype), self.normal(*shape, dtype=dtype)))
        return (plan, *pairs)


class CachedLayerProbe(LayerProbe):
    """Lines of a layer that takes a cache; cuts are texts such as "3 1 2": so many tokens each."""

    def fed(self, line: str, x: Tensor, *cuts: str, **sizes: Any) -> None:
        """Record the outputs for x when it is fed in parts, for each way to cut it.

        layer.fed("one at a time, in chunks, all at once", r.normal(2, 4, 6), "1 1 1 1", "3 1", "4")
        """

        def run(weights: Weights, x: Tensor, cut: str) -> Any:
            return self._fed(weights, x, cut, sizes)

        weights = self.drawn(line, x.dtype, **sizes)
        typed = [f"{self.typed(**sizes)}(part, cache) with parts of {cut} tokens" for cut in cuts]
        self.r.record(line, "call", [(run, (weights, x, cut), {}) for cut in cuts], typed)

    def fed_gradients(self, line: str, x: Tensor, cut: str, **sizes: Any) -> None:
        """Record the gradients at every weight and at x when it is fed in parts.

        layer.fed_gradients("gradients pass through the cache", r.normal(2, 6, 4), "3 1 2")
        """
        weights = self.drawn(line, x.dtype, **sizes)

        def run(weights: Weights, x: Tensor) -> dict[str, Tensor | None]:
            layer, cache = load(self.build(**sizes), weights), Cache()
            x = x.detach().clone().requires_grad_()
            outputs = [layer(part, cache) for part in _parts(x, cut)]
            leaves = [layer.get_parameter(name) for name in weights]
            found = self.r.gradients(line, torch.cat(outputs, dim=1), [*leaves, x])
            return dict(zip([*weights, "x"], found, strict=True))

        typed = f"{self.typed(**sizes)}(part, cache) with parts of {cut} tokens"
        self._record(line, "gradient", run, weights, (x,), typed)

    def overfed(self, line: str, x: Tensor, *cuts: str, **sizes: Any) -> None:
        """Record a refusal of the part before the last, the cache's length then, and the last part.

        layer.overfed("refused, the cache is as before", r.normal(2, 11, 4), "6 3 2")
        """

        def run(weights: Weights, x: Tensor, cut: str) -> list[Any]:
            layer, cache = load(self.build(**sizes), weights), Cache()
            *first, long, last = _parts(x, cut)
            for part in first:
                layer(part, cache)
            tried = _refused_or(lambda: layer(long, cache))
            return [tried, cache.length, layer(last, cache)]

        weights = self.drawn(line, x.dtype, **sizes)
        typed = [f"{self.typed(**sizes)}(part, cache) with parts of {cut} tokens" for cut in cuts]
        self.r.record(line, "call", [(run, (weights, x, cut), {}) for cut in cuts], typed)

    def _fed(self, weights: Weights, x: Tensor, cut: str, sizes: dict[str, Any]) -> Tensor:
        layer, cache = load(self.build(**sizes), weights), Cache()
        return torch.cat([layer(part, cache) for part in _parts(x, cut)], dim=1)


def _parts(x: Tensor, cut: str) -> list[Tensor]:
    lengths = [int(word) for word in cut.split()]
    return list(x[:, : sum(lengths)].split(lengths, dim=1))


def _refused_or(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or "refused" when it raises a ValueError."""
    try:
        return call()
    except NotImplementedError:
        raise
    except Exception as error:
        if family(error) not in REFUSALS:
            raise
        return "refused"


def _name(answer: Callable[..., Any]) -> str:
    return getattr(answer, "__name__", "cache")
