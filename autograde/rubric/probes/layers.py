"""Probes of layers: built from sizes, loaded with drawn weights, judged by their outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric.probes.calls import ContractBroken, HasMore, refusal, turned
from autograde.rubric.probes.draws import Draws
from autograde.rubric.probes.recorder import Probe, Recorder
from autograde.rubric.probes.weights import Weights, load
from autograde.rubric.recording import REFUSAL


class LayerProbe(Probe):
    """One layer's lines: `sizes` are its constructor's arguments, in order; a line may change some.

    Weights are drawn anew for each line and loaded by parameter name. Buffers are left alone.
    """

    float64_line = "float64 in, float64 out, after .double()"
    reused = True
    """One layer gets each input's weights in turn, so that one that keeps old weights is found."""

    def __init__(self, r: Recorder, module: type[nn.Module], sizes: Mapping[str, Any]) -> None:
        super().__init__(r)
        self.module, self.sizes = module, dict(sizes)
        self._parts: list[tuple[str, str, str]] = []  # parameter, its shape, when it exists
        self._linear: list[str] = []

    def linear(self, names: str, shape: str, bias: str = "") -> None:
        """Declare nn.Linear layers; `bias` names the size that switches it on, or is "always".

        layer.linear("first second", "d_in -> d_out", bias="with_bias")
        """
        d_in, d_out = shape.split(" -> ")
        for name in names.split():
            self._linear.append(name)
            self._parts.append((f"{name}.weight", f"{d_out} {d_in}", "always"))
            if bias:
                self._parts.append((f"{name}.bias", d_out, bias))

    def parameters(self, names: str, shape: str) -> None:
        """Say which nn.Parameter tensors there are.

        layer.parameters("weight scale", "d_in d_out")
        """
        self._parts += [(name, shape, "always") for name in names.split()]

    def outputs(
        self,
        line: str,
        *inputs: Tensor | tuple[Tensor, ...],
        training: bool = True,
        dtype: torch.dtype | None = None,
        **sizes: Any,
    ) -> None:
        """Record the outputs for each input, smallest first, each time with other weights.

        Inputs of a layer that takes several come as tuples.

            layer.outputs("one row, three rows", r.normal(1, 1, 4), r.normal(3, 5, 4))
        """
        made: list[nn.Module] = []
        several = [each if isinstance(each, tuple) else (each,) for each in inputs]

        def run(weights: Weights, *given: Tensor) -> Any:
            if not made:
                made.append(self.build(**sizes).train(training))
            return self.loaded(made[-1], weights, given[0])(*given)

        mode = "" if training else ".eval()"
        typed = [f"{self.typed(**sizes)}{mode}({', '.join(_named(given))})" for given in several]
        cases = [
            (self.drawn(f"{line} {i}", dtype or given[0].dtype, **sizes), *given)
            for i, given in enumerate(several)
        ]
        self.r.record(line, "call", run, cases, typed)

    def conventions(self, *given: Tensor, **sizes: Any) -> None:
        """Record three lines that most layers need: float64, gradients, its input left alone.

        layer.conventions(r.normal(2, 5, 4))
        """
        double = tuple(turned(x.double()) if x.is_floating_point() else x for x in given)
        self.outputs(self.float64_line, double, dtype=torch.float64, **sizes)
        self.gradients("everything it holds learns", *given, **sizes)
        self.r.unchanged("leaves its input as it was")

    def gradients(self, line: str, *given: Tensor, **sizes: Any) -> None:
        """Record the gradients at every weight, and at each input of floats.

        layer.gradients("all three layers learn", r.normal(3, 7, 4))
        """

        def run(weights: Weights, *given: Tensor) -> dict[str, Tensor | None]:
            layer = self.loaded(self.build(**sizes), weights, given[0])
            leaves = self.learned(layer, weights, given[0])
            named = _named(given)
            for name, x in named.items():
                if x.is_floating_point():
                    named[name] = leaves[name] = x.detach().clone().requires_grad_()
            found = self.r.gradients(line, first_of(layer(*named.values())), leaves)
            shaped = {**weights, **named}
            return {name: g if g is None else g.view_as(shaped[name]) for name, g in found.items()}

        cases = [(self.drawn(line, given[0].dtype, **sizes), *given)]
        self.r.record(
            line, "gradient", run, cases, f"{self.typed(**sizes)}({', '.join(_named(given))})"
        )

    def refuses(self, line: str, *inputs: Tensor, **sizes: Any) -> None:
        """Record for each input whether the layer raises a ValueError, in training and not.

        layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4))
        """

        def run(x: Tensor) -> str:
            layer = self.build(**sizes).to(x if x.is_floating_point() else x.device)
            said = [refusal(layer.train(training), x) for training in (True, False)]
            return next((each for each in said if each != REFUSAL), REFUSAL)

        typed = [f"{self.typed(**sizes)}(x) with x of shape {tuple(x.shape)}" for x in inputs]
        self.r.record(line, "refuses", run, [(x,) for x in inputs], typed)

    def build(self, **sizes: Any) -> nn.Module:
        """Return a new layer; another one is built after it, to show state kept in the class.

        Raises:
            ContractBroken: the layer is no nn.Module.
        """
        arguments = self._arguments(**sizes).values()
        layer = self.module(*arguments)
        if self.reused:  # a larger model takes long to build
            self.module(*(2 * size if type(size) is int else size for size in arguments))
        if not isinstance(layer, nn.Module):
            raise ContractBroken(f"a {type(layer).__name__} was built, expected an nn.Module")
        return layer

    def typed(self, **sizes: Any) -> str:
        """Return the line that builds the layer, then its name, as calls of it begin."""
        return f"layer = {self.built_as(**sizes)}\nlayer"

    def built_as(self, **sizes: Any) -> str:
        """Return the text that builds the layer."""
        named = (f"{name}={value!r}" for name, value in self._arguments(**sizes).items())
        return f"{self.module.__name__}({', '.join(named)})"

    def _arguments(self, **sizes: Any) -> dict[str, Any]:
        """Return what the layer is built with; a False at the end is left to its default."""
        arguments = {**self.sizes, **sizes}
        while arguments and [*arguments.values()][-1] is False:
            arguments.popitem()
        return arguments

    def shapes(self, **sizes: Any) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every parameter of the contract."""
        known = {**self.sizes, **sizes}
        return {
            name: tuple(_size_of(word, known) for word in shape.split())
            for name, shape, when in self._parts
            if when == "always" or known[when]
        }

    def drawn(self, line: str, dtype: torch.dtype = torch.float32, **sizes: Any) -> Weights:
        """Draw weights for every parameter of the contract."""
        draws = Draws(self.r.seed, f"{self.r.exercise} {line} weights")
        dtype = dtype if dtype.is_floating_point else torch.float32
        weights = {
            name: self.scaled(name, draws.normal(*shape, dtype=dtype))
            for name, shape in self.shapes(**sizes).items()
        }
        return dict(self.r.widened(weights))

    def scaled(self, name: str, weight: Tensor) -> Tensor:
        """Return drawn numbers as a weight: small enough for moderate scores."""
        return 0.7 * weight

    def loaded(self, layer: nn.Module, weights: Weights, x: Tensor) -> nn.Module:
        """Return the layer with these weights; x is an input that it can take."""
        return load(layer, weights)

    def learned(self, layer: nn.Module, weights: Weights, x: Tensor) -> Weights:
        """Return the layer's own parameters by the names of the weights put into it.

        Raises:
            HasMore: the layer has parameters besides these; outputs do not show them all.
        """
        own: Weights = {name: layer.get_parameter(name) for name in weights}
        known = {id(parameter) for parameter in own.values()}
        for name, parameter in layer.named_parameters():
            if parameter.requires_grad and id(parameter) not in known:
                raise HasMore(f"it has a parameter {name}, which it should not have")
        return own


def first_of(output: Any) -> Any:
    """Return the output itself, or the first of a pair (output, weights)."""
    return output[0] if isinstance(output, tuple | list) else output


def _named(given: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return a layer's inputs by the names that students read: x, y, ..."""
    return dict(zip("xyzuvw"[: len(given)], given, strict=True))


def _size_of(word: str, known: Mapping[str, Any]) -> int:
    """Return a size written as `d_out`, or as `3*d_out`."""
    times, _, name = word.rpartition("*")
    return int(times or 1) * int(known[name])
