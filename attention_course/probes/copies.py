"""Probes of functions that copy one layer's weights into another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric.probes.calls import ContractBroken, parameter_names
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

    def gives(self, line: str, x: Tensor, *names: str) -> None:
        """Record some of the target's weights after the copy.

        copy.gives("out_proj is the identity", r.normal(2, 5, 4), "out_proj.weight")
        """

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            _, target = self._copied(weights)
            return {name: parameter(target, name) for name in names}

        self._record(line, run, x)

    def shares_nothing(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the target's and the source's outputs after the other one has been changed.

        copy.shares_nothing("later changes of one do not reach the other", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            found = {}
            for changed, other in (("original", "copy"), ("copy", "original")):
                pair = dict(zip(("original", "copy"), self._copied(weights, **sizes), strict=True))
                with torch.no_grad():
                    for parameter in pair[changed].parameters():
                        parameter.mul_(-0.5)
                seen = f"the {other}'s output after a change of the {changed}"
                found[seen] = pair[other].eval()(x)
            return found

        self._record(line, run, x, **sizes)

    def keeps_source(self, line: str, x: Tensor) -> None:
        """Record whether the source keeps its parameters, their values, modes and requires_grad.

        copy.keeps_source("v2 is unchanged", r.normal(6, 3))
        """

        def run(weights: Weights, x: Tensor) -> str:
            source, _ = self._copied(weights)
            before = dict(self.source.build().named_parameters())
            if before.keys() != dict(source.named_parameters()).keys():
                raise ContractBroken("the source has other parameters than before")
            kept = source.get_parameter
            if not all(torch.equal(kept(name), weight) for name, weight in weights.items()):
                raise ContractBroken("the weights of the source have changed")
            if not all(part.training for part in source.modules()):
                raise ContractBroken("the source is no longer in training mode")
            if not all(parameter.requires_grad for parameter in source.parameters()):
                raise ContractBroken("parameters of the source are frozen")
            return "unchanged"

        self._record(line, run, x)

    def learns(self, line: str, x: Tensor) -> None:
        """Record the target's output and gradients with other weights: it uses weights of its own.

        copy.learns("v1 still computes with its own matrices", r.normal(6, 3))
        """
        others = self.target.drawn(line, x.dtype)

        def run(weights: Weights, x: Tensor) -> dict[str, Any]:
            _, target = self._copied(weights)
            if not all(parameter.requires_grad for parameter in target.parameters()):
                raise ContractBroken("parameters of the copy are frozen")
            first = target.eval()(x)
            load(target, others)(x).square().sum().backward()
            slopes = [target.get_parameter(name).grad for name in others]
            return {"after the copy": first, "with other weights": target(x), "gradients": slopes}

        self._record(line, run, x)

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
