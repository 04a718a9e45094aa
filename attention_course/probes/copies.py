"""Probes of functions that copy one layer's weights into another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric.probes.calls import parameter_names
from autograde.rubric.probes.layers import LayerProbe
from autograde.rubric.probes.recorder import Probe, Recorder
from autograde.rubric.probes.weights import Weights, load, parameter


class CopyProbe(Probe):
    """Lines of a function that copies weights from one layer, the source, into another."""

    def __init__(
        self,
        r: Recorder,
        answer: Callable[..., Any],
        source: LayerProbe,
        target: LayerProbe,
    ) -> None:
        super().__init__(r)
        self.answer, self.source, self.target = answer, source, target

    def outputs(self, line: str, *inputs: Tensor, **sizes: Any) -> None:
        """Record the output of the target after the copy; both layers in eval().

        copy.outputs("v1 gives the output of v2", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> Any:
            _, target = self._copied(weights, **sizes)
            return target.eval()(x)

        self._record(line, run, *inputs, then=".eval()(x)", **sizes)

    def shares_nothing(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record both layers after the copy, each also once the other has been changed.

        The source keeps its weights and its mode; the target computes with any weights that are put
        into it, and learns them.

            copy.shares_nothing("later changes of one do not reach the other", r.normal(6, 3))
        """
        others = self.target.drawn(line, x.dtype, **_known(self.target, sizes))

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            source, target = self._copied(weights, **sizes)
            found: dict[str, Any] = {
                "original": {name: parameter(source, name).clone() for name in weights},
                "training": all(part.training for part in source.modules()),
                "learns": all(each.requires_grad for each in source.parameters()),
            }
            with torch.no_grad():
                for each in source.parameters():
                    each.mul_(-0.5)
            found["copy after a change of the original"] = target.eval()(x)
            output = load(target, others)(x)
            found["copy with other weights"] = output
            found["original after a change of the copy"] = source.eval()(x)
            output.sum().backward()
            slopes = {name: target.get_parameter(name).grad for name in others}
            found["without a gradient"] = [name for name, grad in slopes.items() if grad is None]
            return found

        self._record(line, run, x, **sizes)

    def _copied(self, weights: Weights, **sizes: Any) -> tuple[nn.Module, nn.Module]:
        """Return the source, built with these weights, and the target, after the copy."""
        like = next(iter(weights.values()))
        source, target = (
            layer.build(**_known(layer, sizes)).to(like) for layer in (self.source, self.target)
        )
        load(source, weights)
        self.answer(source, target)
        return source, target

    def _record(
        self, line: str, run: Callable[..., Any], *inputs: Tensor, then: str = "", **sizes: Any
    ) -> None:
        weights = self.source.drawn(line, inputs[0].dtype, **_known(self.source, sizes))
        cases = [(weights, x) for x in inputs]
        self.r.record(line, "call", run, cases, self._typed(sizes, then))

    def _typed(self, sizes: Mapping[str, Any], then: str) -> str:
        """Return the copy as one would type it, and what is done with the target then."""
        names = parameter_names(self.answer, 2)
        made = [
            f"{name} = {layer.built_as(**_known(layer, sizes))}"
            for name, layer in zip(names, (self.source, self.target), strict=True)
        ]
        call = f"{self.answer.__name__}({', '.join(names)})"
        return "\n".join([*made, call, f"{names[1]}{then}"])


def _known(layer: LayerProbe, sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if name in layer.sizes}
