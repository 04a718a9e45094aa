"""Probes of functions that copy one layer's weights into another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from autograde.rubric.probes.layers import LayerProbe
from autograde.rubric.probes.plain import ContractBroken, parameter_names
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.probes.weights import Weights, load


class CopyProbe:
    """Lines of a function that copies weights from one layer, the source, into another."""

    def __init__(
        self,
        r: Recorder,
        answer: Callable[..., Any],
        layers: tuple[LayerProbe, ...],
        source: LayerProbe,
    ) -> None:
        self.r, self.answer, self.layers = r, answer, layers
        self._from = layers.index(source)

    @property
    def idea(self) -> Self:
        """Say that the next line holds the idea of the exercise; see `Recorder.idea`."""
        _ = self.r.idea
        return self

    def outputs(self, line: str, *inputs: Tensor, **sizes: Any) -> None:
        """Record the output of the target after the copy; both layers in eval().

        copy.outputs("v1 gives the output of v2", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> Any:
            _, target = self._copied(weights, sizes)
            return target.eval()(x)

        self._record(line, run, inputs, sizes, ".eval()(x)")

    def gives(self, line: str, x: Tensor, *names: str) -> None:
        """Record some of the target's weights after the copy.

        copy.gives("out_proj is the identity", r.normal(2, 5, 4), "out_proj.weight")
        """

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            _, target = self._copied(weights, {})
            return {name: target.get_parameter(name) for name in names}

        self._record(line, run, (x,), {})

    def shares_nothing(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the target's and the source's outputs after the other one has been changed.

        copy.shares_nothing("later changes of one do not reach the other", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            found = {}
            for changed in ("source", "target"):
                pair = dict(zip(("source", "target"), self._copied(weights, sizes), strict=True))
                with torch.no_grad():
                    for parameter in pair[changed].parameters():
                        parameter.mul_(-0.5)
                (other,) = (name for name in pair if name != changed)
                found[f"{other} after {changed} changed"] = pair[other].eval()(x)
            return found

        self._record(line, run, (x,), sizes)

    def keeps_source(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record whether the source keeps its weights, modes and gradients allowed.

        copy.keeps_source("v2 is unchanged", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> str:
            source, _ = self._copied(weights, sizes)
            kept = source.get_parameter
            if not all(torch.equal(kept(name), weight) for name, weight in weights.items()):
                raise ContractBroken("the weights of the source have changed")
            if not all(part.training for part in source.modules()):
                raise ContractBroken("the source is no longer in training mode")
            if not all(parameter.requires_grad for parameter in source.parameters()):
                raise ContractBroken("parameters of the source are frozen")
            return "unchanged"

        self._record(line, run, (x,), sizes)

    def learns(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the target's output after it has been given other weights: it is still itself.

        copy.learns("v1 still computes with its own matrices", r.normal(6, 3))
        """
        target_probe = self.layers[1 - self._from]
        others = target_probe.drawn(line, x.dtype, **sizes)

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            _, target = self._copied(weights, sizes)
            first = target.eval()(x)
            load(target, others)(x).square().sum().backward()
            slopes = [target.get_parameter(name).grad for name in others]
            return {"after the copy": first, "with other weights": target(x), "gradients": slopes}

        self._record(line, run, (x,), sizes)

    def _copied(self, weights: Weights, sizes: Mapping[str, Any]) -> tuple[nn.Module, nn.Module]:
        some = next(iter(weights.values()))
        made = [
            layer.build(**_known(layer, sizes)).to(some.device, some.dtype) for layer in self.layers
        ]
        source = load(made[self._from], weights)
        self.answer(*made)
        return source, made[1 - self._from]

    def _record(
        self,
        line: str,
        run: Callable[..., Any],
        inputs: Any,
        sizes: Mapping[str, Any],
        then: str = "",
    ) -> None:
        source = self.layers[self._from]
        weights = source.drawn(line, inputs[0].dtype, **_known(source, sizes))
        made = [layer.typed(**_known(layer, sizes)) for layer in self.layers]
        target, place = parameter_names(self.answer, 2)[1 - self._from], 1 - self._from
        made[place] = f"{target} := {made[place]}"
        typed = [f"{self.answer.__name__}({', '.join(made)}); {target}{then}"] * len(inputs)
        self.r.record(line, "call", [(run, (weights, x), {}) for x in inputs], typed)


def _known(layer: LayerProbe, sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if name in layer.sizes}
