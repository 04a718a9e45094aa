"""Probes of a cache of keys and values, and of layers that are fed through one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attention_course.probes.attention_layers import AttentionProbe
from autograde.rubric.probes.calls import Args, ContractBroken, snapshot
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.probes.weights import Weights, load
from autograde.rubric.recording import REFUSAL, REFUSED

HEADS, SIZE = 3, 4
OTHER = "other"
"""The step of a plan or a cut that switches to the other of two caches."""
NONE = "none"
"""The step of a cut that gives the layer all tokens, and no cache."""
IN_WORDS = {OTHER: "(the other cache)", NONE: "(all, no cache)"}


class Cache:
    """A cache without a limit, which rubrics hand to layers of h heads of size d."""

    def __init__(self, h: int, d: int) -> None:
        self._h, self._d = h, d
        self._kept: list[tuple[Tensor, Tensor]] = []

    @property
    def length(self) -> int:
        return sum(k.shape[2] for k, _ in self._kept)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return all keys and values so far, (b, h, n, d). Raises ContractBroken for others."""
        for shape in (tuple(k.shape), tuple(v.shape)):
            if len(shape) != 4 or (shape[1], shape[3]) != (self._h, self._d):
                expected = f"(b, {self._h}, n, {self._d})"
                raise ContractBroken(f"append is given a tensor {shape}, expected {expected}")
        self._kept.append((k, v))
        keys, values = zip(*self._kept, strict=True)
        return torch.cat(keys, dim=2), torch.cat(values, dim=2)


class CacheProbes(Recorder):
    """Lines on a class with `append`, `length` and `reset`.

    A plan is a text such as "2 1 reset 3 other 4": append 2 tokens, then 1, reset, append 3, go on
    with another cache and append 4. The batch has two sentences.
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
        """Record for each plan the result of every step, and the length after it.

        Each reset adds a sentence to the batch. With `later` it does not, so that a cache may
        reuse its memory, and the results are read only after the last step.

            r.appends("raises ValueError, and is then as before", KVCache, 5, "3 3 2", "6 5")
        """

        def run(plan: str, *pairs: tuple[Tensor, Tensor]) -> dict[str, Any]:
            made, beside, left = cache(max_length), cache(max_length), list(pairs)
            found: dict[str, Any] = {}
            for place, step in enumerate(plan.split(), start=1):
                if step == OTHER:
                    made, beside = beside, made
                    continue
                if step == "reset":
                    made.reset()
                else:
                    result = _or_refused(made.append, *left.pop(0))
                    now = result if later else snapshot(result)
                    found[f"what step {place} gives"] = now
                found[f"length after step {place}"] = _length(made)
            return found

        typed = [_typed(cache, max_length, plan) for plan in plans]
        cases = [self._drawn(plan, dtype, larger=not later) for plan in plans]
        self.record(line, "call", run, cases, typed)

    def _drawn(self, plan: str, dtype: torch.dtype, *, larger: bool = True) -> Args:
        batch, pairs = 2, []
        for step in plan.split():
            if step == "reset":
                batch += larger
            elif step != OTHER:
                shape = (batch, HEADS, int(step), SIZE)
                pairs.append((self.normal(*shape, dtype=dtype), self.normal(*shape, dtype=dtype)))
        return (plan, *pairs)


class CachedLayerProbe(AttentionProbe):
    """Lines of a layer that takes a cache.

    Cuts are texts such as "3 1 other 2 none": parts of 3 tokens, of 1, of 2 with another cache, and
    all tokens without a cache.
    """

    def fed(self, line: str, x: Tensor, *cuts: str, **sizes: Any) -> None:
        """Record the outputs for x when it is fed in parts, for each way to cut it.

        layer.fed("one at a time, in chunks, all at once", r.normal(2, 4, 6), "1 1 1 1", "3 1", "4")
        """

        def run(layer: nn.Module, x: Tensor, cut: str) -> Tensor:
            cache, beside = self.cache(**sizes), self.cache(**sizes)
            left, found = _parts(x, cut), []
            for step in cut.split():
                if step == OTHER:
                    cache, beside = beside, cache
                elif step == NONE:
                    found.append(layer(x))
                else:
                    found.append(layer(left.pop(0), cache))
            return torch.cat(found, dim=1)

        self._record(line, run, sizes, *((_in_parts(cut), _fed(x, cut), cut) for cut in cuts))

    def fed_gradients(self, line: str, x: Tensor, cut: str, **sizes: Any) -> None:
        """Record the gradients at every weight and at x when it is fed in parts.

        layer.fed_gradients("gradients pass through the cache", r.normal(2, 6, 4), "3 1 2")
        """

        def run(weights: Weights, x: Tensor) -> dict[str, Tensor | None]:
            layer, cache = load(self.build(**sizes), weights), self.cache(**sizes)
            leaves = self.learned(layer, weights, x)
            x = leaves["x"] = x.detach().clone().requires_grad_()
            outputs = [layer(part, cache) for part in _parts(x, cut)]
            return self.r.gradients(line, torch.cat(outputs, dim=1), leaves)

        cases = [(self.drawn(line, x.dtype, **sizes), x)]
        self.r.record(line, "gradient", run, cases, f"{self.typed(**sizes)}{_in_parts(cut)}")

    def overfed(self, line: str, x: Tensor, *cuts: str, **sizes: Any) -> None:
        """Record the refusal of the last part but one, the length after it, and the last result.

        layer.overfed("refused, the cache is as before", r.normal(2, 11, 4), "6 3 2")
        """

        def run(layer: nn.Module, x: Tensor, cut: str) -> dict[str, Any]:
            cache, (*first, long, last) = self.cache(**sizes), _parts(x, cut)
            for part in first:
                layer(part, cache)
            return {
                "the result of the part before the last": _or_refused(layer, long, cache),
                "cache.length then": cache.length,
                "the result of the last part": layer(last, cache),
            }

        self._record(line, run, sizes, *((_in_parts(cut), _fed(x, cut), cut) for cut in cuts))

    def cache(self, **sizes: Any) -> Cache:
        """Return a new cache for a layer of these sizes."""
        known = {**self.sizes, **sizes}
        return Cache(known["num_heads"], known["d_out"] // known["num_heads"])


def _in_parts(cut: str) -> str:
    said = [IN_WORDS.get(word, word) for word in cut.split()]
    return f"(part, cache) with parts of {', '.join(said)} tokens"


def _fed(x: Tensor, cut: str) -> Tensor:
    """Return what a cut takes of x: an error is told with its shape."""
    return x if NONE in cut.split() else torch.cat(_parts(x, cut), dim=1)


def _parts(x: Tensor, cut: str) -> list[Tensor]:
    lengths = [int(word) for word in cut.split() if word not in (OTHER, NONE)]
    return list(x[:, : sum(lengths)].split(lengths, dim=1))


def _or_refused(call: Callable[..., Any], *args: Any) -> Any:
    """Return what a call returns, or REFUSAL when it raises a ValueError."""
    try:
        return call(*args)
    except REFUSED:
        return REFUSAL


def _length(cache: Any) -> int:
    """Return the length of an answer's cache. Raises ContractBroken when it is a method."""
    if callable(cache.length):
        raise ContractBroken("length is a method, expected an attribute or a property")
    return int(cache.length)


def _typed(cache: Callable[..., Any], max_length: int, plan: str) -> str:
    """Return the steps of a plan as a list: `KVCache(5): append 2, reset, append 4`."""
    steps = [
        f"append {step}" if step.isdigit() else IN_WORDS.get(step, step) for step in plan.split()
    ]
    return f"{getattr(cache, '__name__', 'cache')}({max_length}): {', '.join(steps)}"
