"""Probes of attention layers: their masks, their dropout, the weights that they start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attention_course.checks.of_attention import UNSAVED
from attention_course.probes.operations import EMPTY, Devices
from autograde.rubric.probes.calls import ContractBroken, outcome_of
from autograde.rubric.probes.draws import device
from autograde.rubric.probes.layers import LayerProbe, first_of
from autograde.rubric.probes.weights import Weights, load


class AttentionProbe(LayerProbe):
    """One attention layer's lines. A declared name with a `*` stands for one layer per head."""

    def shapes(self, **sizes: Any) -> dict[str, tuple[int, ...]]:
        known, whole = {**self.sizes, **sizes}, super().shapes(**sizes)
        return {own: shape for name, shape in whole.items() for own in _each_head(name, known)}

    def first_token(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the output at the first token, which sees itself alone, whatever the scores are.

        A large negative number in place of -inf shows only beside a score far below 0. With some
        weights no token has such a score, so the layer is tried with two sets of weights.

        layer.first_token("hides the future, however large the scores", 100 * r.normal(8, 6, 4))
        """

        def run(weights: Weights, x: Tensor) -> Any:
            return first_of(self.loaded(self.build(**sizes), weights, x)(x))[:, 0]

        cases = [(self.drawn(f"{line} {i}", x.dtype, **sizes), x) for i in range(2)]
        self.r.record(line, "call", run, cases, f"{self.typed(**sizes)}(x)[:, 0]")

    def drops_weights(self, line: str, p: float, **sizes: Any) -> None:
        """Record outputs, in training and in eval(), that show the attention weights after dropout.

        layer.drops_weights("drops weights in training, each by itself, none in eval()", p=0.3)
        """
        n, heads = 10, int({**self.sizes, **sizes}.get("num_heads", 1))
        shared = "*" in self._parts[0][0]  # one layer a head: d_out is that of one head
        own = {"d_in": n + 3, "d_out": 2 * n * (1 if shared else heads), "context_length": n + 2}
        eye = torch.eye(n, device=device())
        x = torch.cat([eye.expand(4, n, n), self.r.normal(4, n, 3)], dim=-1)  # (4, n, n + 3)
        sizes = {**sizes, **own, "dropout": p}
        seen = self._showing(n, heads)
        weights = self._arranged(seen, heads, **sizes)

        def run(_seen: Weights, x: Tensor, _p: float, _heads: int) -> list[Tensor]:
            layer = load(self.build(**sizes), weights)
            dropped = [first_of(layer(x)) for _ in range(4)]
            layer.eval()
            used = first_of(layer(x))
            layer.train()  # training goes on after a look at the loss
            return [*dropped, *(first_of(layer(x)) for _ in range(4)), used]

        typed = f"{self.typed(**sizes)}(x), 8 times in training, and once in eval() in between"
        self.r.record(line, "drops_weights", run, [(seen, x, p, heads)], typed)

    def rereads_dropout(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record outputs while `dropout.p` changes from 0 to 0.5 and back.

        layer.rereads_dropout("reads dropout.p at each call", r.normal(3, 7, 4))
        """

        def run(layer: Any, x: Tensor) -> dict[str, Any]:
            never = layer(x)
            if not hasattr(layer.dropout, "p"):
                kind = type(layer.dropout).__name__
                raise ContractBroken(f"dropout is a {kind}, expected an nn.Dropout")
            layer.dropout.p = 0.5
            if torch.equal(first_of(layer(x)), first_of(layer(x))):
                raise ContractBroken("with dropout.p set to 0.5 afterwards nothing is dropped")
            layer.dropout.p = 0.0
            return {"p = 0": never, "p = 0 again": layer(x)}

        self._record(line, run, sizes, ("(x)", x))

    def keeps_mask(self, line: str, x: Tensor, **attributes: Any) -> None:
        """Record whether `mask` is a saved buffer that hides the future; also other attributes.

        With the mask, everything else that forward uses has to follow `.to(device)`.

            layer.keeps_mask("mask is a saved buffer; works after .to(device)", r.normal(2, 5, 4))
        """

        def run(n: int, x: Tensor) -> dict[str, Any]:
            layer = self.build(context_length=n).to(x.device)
            for name, value in attributes.items():
                if getattr(layer, name, None) != value:
                    raise ContractBroken(f"{name} is not kept as an attribute")
            self._require_moving(x)
            learned = "mask" in dict(layer.named_parameters())
            missing = UNSAVED if "mask" in dict(layer.named_buffers()) else None
            return {"mask": layer.state_dict().get("mask", missing), "learned": learned}

        typed = f"{self.typed()}.to(device)(x)"
        self.r.record(line, "masks_the_future", run, [(self.r.integer(5, 9), x)], typed)

    def _require_moving(self, x: Tensor) -> None:
        """Raises ContractBroken when forward uses a tensor that does not move with the layer."""
        layer = self.build().to(EMPTY)
        with Devices() as devices:
            try:
                layer(x.to(EMPTY))
            except Exception as error:  # code that asks for numbers cannot run there: no fault
                if outcome_of(error).not_attempted:
                    raise
        if devices.mixed:
            raise ContractBroken("forward uses a tensor that stayed behind")

    def made_of(self, line: str) -> None:
        """Record the types of the declared layers, and of the list that holds the heads.

        layer.made_of("W_query, W_key and W_value are nn.Linear")
        """

        def run() -> dict[str, str]:
            layer, found = self.build(), {}
            for name in self._linear:
                name, _, in_heads = name.partition(".*")
                kind = nn.ModuleList if in_heads else nn.Linear
                if not hasattr(layer, name):
                    raise ContractBroken(f"there is no attribute called {name}")
                part = getattr(layer, name)
                right = isinstance(part, kind)
                found[name] = f"nn.{kind.__name__}" if right else type(part).__name__
            return found

        self.r.record(line, "call", run, [()], self.typed())

    def saves_nothing(self, line: str, x: Tensor) -> None:
        """Record the names of the parameters and saved tensors that a layer has after a call.

        layer.saves_nothing("nothing in parameters() or state_dict()", r.normal(3, 4))
        """

        def run(x: Tensor) -> dict[str, list[str]]:
            layer = self.build()
            layer(x)
            learned = [name for name, _ in layer.named_parameters()]
            return {"parameters()": learned, "state_dict()": [*layer.state_dict()]}

        self.r.record(line, "call", run, [(x,)], self.typed())

    def weights_before_dropout(self, line: str, x: Tensor, **sizes: Any) -> None:
        """Record the second of the two results of a layer that returns (output, weights).

        layer.weights_before_dropout("weights are those before dropout", x, dropout=0.5)
        """
        self._record(line, lambda layer, x: layer(x)[1], sizes, ("(x)[1]", x))

    def starts_uniform(self, line: str, **sizes: Any) -> None:
        """Record the starting values of two new layers, which should be torch.rand's.

        layer.starts_uniform("starts from torch.rand", d_in=40, d_out=30)
        """

        def run() -> list[Tensor]:
            layers = self.build(**sizes), self.build(**sizes)
            names = [name for name in self.shapes(**sizes) if not name.endswith("bias")]
            return [layer.get_parameter(name).detach() for layer in layers for name in names]

        self.r.record(line, "starts_uniform", run, [()], self.typed(**sizes))

    def _showing(self, n: int, heads: int) -> Weights:
        """Return weights with which head h's outputs are row t of its attention weights, twice."""
        size = 2 * n * heads
        weights = {
            f"W_{name}.weight": 0.5 * self.r.normal(size, n + 3) for name in ("query", "key")
        }
        eye = torch.eye(n, device=device())
        weights["W_value.weight"] = nn.functional.pad(eye.repeat(2 * heads, 1), (0, 3))
        return weights

    def _arranged(self, weights: Weights, heads: int, **sizes: Any) -> Weights:
        """Return the same weights under this layer's names, with an out_proj that does nothing."""
        size = len(weights["W_value.weight"])
        known = {
            **weights,
            "qkv.weight": torch.cat([*weights.values()]),
            "out_proj.weight": torch.eye(size, device=device()),
            "out_proj.bias": torch.zeros(size, device=device()),
        }
        for name, weight in weights.items():
            known |= {f"heads.{h}.{name}": part for h, part in enumerate(weight.chunk(heads))}
        return {name: known[name] for name in self.shapes(**sizes)}

    def _record(
        self,
        line: str,
        run: Callable[..., Any],
        sizes: dict[str, Any],
        *cases: tuple[Any, ...],
    ) -> None:
        """Record what `run` gives for a new layer with drawn weights and each case's arguments.

        Each case begins with the text that follows the layer in the call, and x.
        """

        def built(weights: Weights, x: Tensor, *rest: str) -> Any:
            return run(load(self.build(**sizes), weights), x, *rest)

        _, first, *_ = cases[0]
        weights, layer = self.drawn(line, first.dtype, **sizes), self.typed(**sizes)
        given = [(weights, *rest) for _, *rest in cases]
        self.r.record(line, "call", built, given, [f"{layer}{text}" for text, *_ in cases])


def _each_head(name: str, known: Mapping[str, Any]) -> list[str]:
    """Return the name, or for one with a `*` the name of each head's part."""
    if "*" not in name:
        return [name]
    return [name.replace("*", str(h)) for h in range(known["num_heads"])]
