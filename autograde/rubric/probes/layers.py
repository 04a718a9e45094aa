"""Probes of layers: built with sizes in order, given drawn weights by name, seen in outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from autograde.rubric.probes.draws import Draws, device
from autograde.rubric.probes.plain import ContractBroken, family, tensors_in
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.probes.weights import Weights, each_head, load, size_of
from autograde.rubric.recording import REFUSALS


class LayerProbe:
    """One layer's lines: `sizes` are its constructor's arguments, in order; a line may change some.

    Weights are drawn anew for each line and loaded by parameter name. Buffers are left alone.
    """

    def __init__(self, r: Recorder, module: type[nn.Module], sizes: Mapping[str, Any]) -> None:
        self.r, self.module, self.sizes = r, module, dict(sizes)
        self._parts: list[tuple[str, str, str]] = []  # parameter, its shape, the size it hangs on
        self._linear: list[str] = []

    @property
    def idea(self) -> Self:
        """Say that the next line holds the idea of the exercise; see `Recorder.idea`."""
        _ = self.r.idea
        return self

    def linear(self, names: str, shape: str, bias: str = "") -> None:
        """Say which nn.Linear layers there are; `bias` is a size that is True, or "always".

        A name with a `*` stands for one layer a head.

            layer.linear("W_query W_key W_value", "d_in -> d_out", bias="qkv_bias")
        """
        d_in, d_out = shape.split(" -> ")
        for name in names.split():
            self._linear.append(name)
            self._parts.append((f"{name}.weight", f"{d_out} {d_in}", "always"))
            if bias:
                self._parts.append((f"{name}.bias", d_out, bias))

    def parameters(self, names: str, shape: str) -> None:
        """Say which nn.Parameter tensors there are.

        layer.parameters("W_query W_key W_value", "d_in d_out")
        """
        self._parts += [(name, shape, "always") for name in names.split()]

    def outputs(self, line: str, *inputs: Tensor, training: bool = True, **sizes: Any) -> None:
        """Record the outputs for each input, smallest first: one layer, each time other weights.

        layer.outputs("shorter sentences, one token alone", r.normal(1, 1, 4), r.normal(3, 5, 4))
        """
        made: list[nn.Module] = []

        def run(weights: Weights, x: Tensor) -> Any:
            if not made:
                made.append(self.build(**sizes).train(training))
            return load(made[0], weights)(x)

        typed = f"{self.typed(**sizes)}{'' if training else '.eval()'}(x)"
        weights = [self.drawn(f"{line} {i}", x.dtype, **sizes) for i, x in enumerate(inputs)]
        pairs = zip(weights, inputs, strict=True)
        self.r.record(line, "call", [(run, pair, {}) for pair in pairs], [typed] * len(inputs))

    def conventions(self, x: Tensor, **sizes: Any) -> None:
        """Record three lines that most layers need: float64, gradients, its input left alone.

        layer.conventions(r.normal(2, 5, 4))
        """
        double = x.double().mT.contiguous().mT
        self.outputs("float64 in, float64 out, after .double()", double, **sizes)
        self.gradients("everything it holds learns", x, **sizes)
        self.r.unchanged("leaves its input as it was")

    def first_token(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the output at the first token, which sees itself alone, whatever the scores are.

        layer.first_token("hides the future, however large the scores", 100 * r.normal(8, 6, 4))
        """

        def run(weights: Weights, x: Tensor) -> Any:
            return first_of(load(self.build(**sizes), weights)(x))[:, 0]

        weights = self.drawn(line, x.dtype, **sizes)
        self._record(line, "call", run, weights, (x,), f"{self.typed(**sizes)}(x)[:, 0]")

    def gradients(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the gradients at every weight and at the input.

        layer.gradients("all three layers learn", r.normal(3, 7, 4))
        """
        weights = self.drawn(line, x.dtype, **sizes)

        def run(weights: Weights, x: Tensor) -> dict[str, Tensor | None]:
            layer = load(self.build(**sizes), weights)
            x = x.detach().clone().requires_grad_()
            leaves = [layer.get_parameter(name) for name in weights]
            found = self.r.gradients(line, first_of(layer(x)), [*leaves, x])
            return dict(zip([*weights, "x"], found, strict=True))

        self._record(line, "gradient", run, weights, (x,), f"{self.typed(**sizes)}(x)")

    def drops_weights(self, line: str, p: float, **sizes: Any) -> None:
        """Record outputs, in training and in eval(), that show the attention weights after dropout.

        layer.drops_weights("drops weights in training, each by itself, none in eval()", p=0.3)
        """
        n, heads = 10, int({**self.sizes, **sizes}.get("num_heads", 1))
        shared = "*" in self._parts[0][0]  # one layer a head: d_out is that of one head
        own = {"d_in": n + 3, "d_out": 2 * n * (1 if shared else heads), "context_length": n + 2}
        eye = torch.eye(n, device=device())
        x = torch.cat([eye.expand(4, n, n), self.r.normal(4, n, 3)], dim=-1)  # (4, n, n + 3)
        seen = self._showing(n, heads)
        weights = self._arranged(seen, heads)
        sizes = {**sizes, **own, "dropout": p}

        def run(_seen: Weights, x: Tensor, *_: Any) -> list[Tensor]:
            layer = load(self.build(**sizes), weights)
            dropped = [first_of(layer(x)) for _ in range(8)]
            layer.eval()
            return [*dropped, first_of(layer(x))]

        typed = [f"{self.typed(**sizes)}(x), 8 times in training, then in eval()"]
        self.r.record(line, "drops_weights", [(run, (seen, x, p, heads), {})], typed)

    def rereads_dropout(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record outputs while `dropout.p` changes from 0 to 0.5 and back.

        layer.rereads_dropout("reads dropout.p at each call", r.normal(3, 7, 4))
        """
        weights = self.drawn(line, x.dtype, **sizes)

        def run(weights: Weights, x: Tensor) -> Any:
            layer: Any = load(self.build(**sizes), weights)
            never = layer(x)
            layer.dropout.p = 0.5
            if torch.equal(first_of(layer(x)), first_of(layer(x))):
                raise ContractBroken("with dropout.p set to 0.5 afterwards nothing is dropped")
            layer.dropout.p = 0.0
            return {"p = 0": never, "p = 0 again": layer(x)}

        self._record(line, "call", run, weights, (x,), f"{self.typed(**sizes)}(x)")

    def keeps_mask(self, line: str, **attributes: Any) -> None:
        """Record whether `mask` is a buffer that is saved and hides the future; also attributes.

        layer.keeps_mask("keeps num_heads, and mask as a buffer that is saved", num_heads=2)
        """

        def run(n: int) -> dict[str, Any]:
            layer = self.build(context_length=n)
            for name, value in attributes.items():
                if getattr(layer, name, None) != value:
                    raise ContractBroken(f"{name} is not kept as an attribute")
            learned = "mask" in dict(layer.named_parameters())
            return {"mask": layer.state_dict().get("mask"), "learned": learned}

        typed = f'{self.typed()}.state_dict()["mask"]'
        self.r.record(line, "masks_the_future", [(run, (self.r.integer(5, 9),), {})], [typed])

    def moves(self, line: str, x: Tensor) -> None:
        """Record whether everything that forward uses moves with the layer.

        layer.moves("works after .to(device)", r.normal(2, 5, 4))
        """

        def run(x: Tensor) -> str:
            layer = self.build().to("meta")
            with _Devices() as devices:
                try:
                    layer(x.to("meta"))
                except Exception:
                    if not devices.mixed:  # code that asks for numbers cannot run there: no fault
                        return f"mask on {layer.mask.device}"
            if devices.mixed:
                raise ContractBroken("forward uses a tensor that stayed behind")
            return f"mask on {layer.mask.device}"

        self.r.record(line, "call", [(run, (x,), {})], [f"{self.typed()}.to(device)(x)"])

    def made_of(self, line: str, kinds: Mapping[str, type[nn.Module]] | None = None) -> None:
        """Record whether the linear layers, and others by name, are what they should be.

        layer.made_of("three nn.Linear and an nn.Dropout", {"dropout": nn.Dropout})
        """
        wanted: dict[str, type[nn.Module]] = dict.fromkeys(self._linear, nn.Linear)
        wanted |= kinds or {}

        def run() -> dict[str, str]:
            layer = self.build()
            return {name: _kinds(layer, name, kind) for name, kind in wanted.items()}

        self.r.record(line, "call", [(run, (), {})], [self.typed()])

    def saves_nothing(self, line: str, x: Tensor) -> None:
        """Record how many parameters and saved tensors a layer has after a call.

        layer.saves_nothing("nothing in parameters() or state_dict()", r.normal(3, 4))
        """

        def run(x: Tensor) -> list[int]:
            layer = self.build()
            layer(x)
            return [len(list(layer.parameters())), len(layer.state_dict())]

        self.r.record(line, "call", [(run, (x,), {})], [self.typed()])

    def weights_before_dropout(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the second of the two results of a layer that returns (output, weights).

        layer.weights_before_dropout("weights are those before dropout", x, dropout=0.5)
        """
        weights = self.drawn(line, x.dtype, **sizes)

        def run(weights: Weights, x: Tensor) -> Any:
            return load(self.build(**sizes), weights)(x)[1]

        self._record(line, "call", run, weights, (x,), f"{self.typed(**sizes)}(x)[1]")

    def starts_uniform(self, line: str, **sizes: Any) -> None:
        """Record the starting values of two new layers, which should be torch.rand's.

        layer.starts_uniform("starts from torch.rand", d_in=40, d_out=30)
        """

        def run() -> list[Tensor]:
            made = self.build(**sizes), self.build(**sizes)
            return [p for m in made for p in _weights_of(m, self.drawn(line))]

        self.r.record(line, "starts_uniform", [(run, (), {})], [self.typed(**sizes)])

    def refuses(self, line: str, *inputs: Tensor, **sizes: Any) -> None:
        """Record for each input whether the layer raises a ValueError, in training and not.

        layer.refuses("raises ValueError for more tokens than context_length", r.normal(2, 9, 4))
        """

        def run(x: Tensor) -> str:
            layer, said = self.build(**sizes).to(x if x.is_floating_point() else x.device), []
            for training in (True, False):
                try:
                    layer.train(training)(x)
                    said.append("returns a result")
                except NotImplementedError:
                    raise
                except Exception as error:
                    kind = family(error)
                    said.append("refused" if kind in REFUSALS else f"raises {kind}: {error}")
            return max(said, key=lambda text: text != "refused")

        typed = [f"{self.typed(**sizes)}(x) with x of shape {tuple(x.shape)}" for x in inputs]
        self.r.record(line, "refuses", [(run, (x,), {}) for x in inputs], typed)

    def build(self, **sizes: Any) -> nn.Module:
        """Return a new layer; raises ContractBroken when it is no nn.Module."""
        layer = self.module(*{**self.sizes, **sizes}.values())
        if not isinstance(layer, nn.Module):
            raise ContractBroken(f"a {type(layer).__name__} was built, expected an nn.Module")
        return layer

    def typed(self, **sizes: Any) -> str:
        """Return the text that builds the layer."""
        values = {**self.sizes, **sizes}
        while values and values[last := [*values][-1]] is False:
            del values[last]
        return f"{self.module.__name__}({', '.join(map(repr, values.values()))})"

    def drawn(self, line: str, dtype: torch.dtype = torch.float32, **sizes: Any) -> Weights:
        """Draw weights for every parameter of the contract; small enough for moderate scores."""
        draws = Draws(self.r.seed, f"{self.r.exercise} {line} weights")
        known = {**self.sizes, **sizes}
        weights = {}
        for name, shape, when in self._parts:
            if when != "always" and not known[when]:
                continue
            size = [size_of(word, known) for word in shape.split()]
            for one in each_head(name, known):
                weights[one] = 0.7 * draws.normal(*size, dtype=dtype)
        return {name: w.double() for name, w in weights.items()} if self.r.double else weights

    def _showing(self, n: int, heads: int) -> Weights:
        """Return weights with which head h's outputs are row t of its attention weights, twice."""
        size = 2 * n * heads
        weights = {
            f"W_{name}.weight": 0.5 * self.r.normal(size, n + 3) for name in ("query", "key")
        }
        eye = torch.eye(n, device=device())
        weights["W_value.weight"] = nn.functional.pad(eye.repeat(2 * heads, 1), (0, 3))
        return weights

    def _arranged(self, weights: Weights, heads: int) -> Weights:
        """Return the same weights under this layer's names, with an out_proj that does nothing."""
        names = [name for name, _, when in self._parts if when == "always"]
        size = len(weights["W_value.weight"])
        found: Weights = {}
        for name in names:
            last = name.replace("heads.*.", "")
            if last == "out_proj.weight":
                found[name] = torch.eye(size, device=device())
            elif last == "out_proj.bias":
                found[name] = torch.zeros(size, device=device())
            elif last == "qkv.weight":
                found[name] = torch.cat([*weights.values()])
            elif "*" in name:
                for h, part in enumerate(weights[last].chunk(heads)):
                    found[name.replace("*", str(h))] = part
            else:
                found[name] = weights[last]
        return found

    def _record(
        self, line: str, kind: str, run: Callable[..., Any], weights: Any, inputs: Any, typed: str
    ) -> None:
        self.r.record(line, kind, [(run, (weights, x), {}) for x in inputs], [typed] * len(inputs))


def first_of(output: Any) -> Any:
    """Return the output itself, or the first of a pair (output, weights)."""
    return output[0] if isinstance(output, tuple | list) else output


def _kinds(layer: nn.Module, name: str, kind: type[nn.Module]) -> str:
    """Return the kind's name when every part of that name is of it, else what the parts are."""
    parts: list[Any] = [layer]
    for step in name.split("."):
        parts = [
            child
            for part in parts
            for child in (list(part) if step == "*" else [getattr(part, step, None)])
        ]
    others = {type(part).__name__ for part in parts if not isinstance(part, kind)}
    return " and ".join(sorted(others)) or kind.__name__


def _weights_of(layer: nn.Module, like: Weights) -> list[Tensor]:
    return [layer.get_parameter(name).detach() for name in like if not name.endswith("bias")]


class _Devices(TorchDispatchMode):
    """Note whether an operation was given tensors of two devices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mixed = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [t for t in tensors_in([*args, *(kwargs or {}).values()]) if t.ndim > 0]
        self.mixed |= len({tensor.device.type for tensor in tensors}) > 1
        return func(*args, **(kwargs or {}))
