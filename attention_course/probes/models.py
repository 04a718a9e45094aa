"""Probes of a model and its parts, and of functions that train a model or generate with it.

A model may name its layers freely. Its parameters are told apart by their shapes and by the order
in which they are used; those of an attention layer, whose names are fixed, by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric.probes.calls import Args, ContractBroken, tensors_in
from autograde.rubric.probes.layers import LayerProbe
from autograde.rubric.probes.recorder import Recorder
from autograde.rubric.probes.torch_functions import Functions
from autograde.rubric.probes.weights import Weights

ATTENTION = ("W_query.weight", "W_key.weight", "W_value.weight", "out_proj.weight", "out_proj.bias")
MAY_LACK = "head.bias"
"""The one optional parameter of a model."""
TURNED = (".T", ".mT", ".H", ".mH")
"""The attributes that hold the same numbers, so that reading one is a use."""


def shapes_of(kind: str, sizes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the parameters of a "feed-forward", a "block" or a "gpt", in order of use."""
    d: int = sizes["d_model"]
    feed_forward = {
        "up.weight": (4 * d, d), "up.bias": (4 * d,),
        "down.weight": (d, 4 * d), "down.bias": (d,),
    }  # fmt: skip
    if kind == "feed-forward":
        return feed_forward
    block = {
        "norm1.weight": (d,), "norm1.bias": (d,),
        **{f"attention.{name}": (d, d) if name.endswith("weight") else (d,) for name in ATTENTION},
        "norm2.weight": (d,), "norm2.bias": (d,),
        **feed_forward,
    }  # fmt: skip
    if kind == "block":
        return block
    layers, vocab_size = range(sizes["num_layers"]), sizes["vocab_size"]
    return {
        "token.weight": (vocab_size, d),
        "position.weight": (sizes["context_length"], d),
        **{f"blocks.{i}.{name}": shape for i in layers for name, shape in block.items()},
        "norm.weight": (d,), "norm.bias": (d,),
        "head.weight": (vocab_size, d), MAY_LACK: (vocab_size,),
    }  # fmt: skip


def parameters_by_use(
    module: nn.Module, wanted: Mapping[str, Tensor], x: Tensor
) -> dict[str, nn.Parameter]:
    """Return the module's parameters by the names of `wanted`, which is in order of use.

    Raises:
        ContractBroken: the module uses an unexpected parameter on x, or lacks one.
    """
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    uses: list[str] = []

    def look(name: str, given: list[Any]) -> None:
        if not name.startswith(".") or name in TURNED:  # reading a shape or device is not a use
            uses.extend(names[id(t)] for t in tensors_in(given) if id(t) in names)

    with torch.no_grad(), Functions(look):
        module(x.clone())
    left, found = {name: _shape(weight) for name, weight in wanted.items()}, {}
    for own in dict.fromkeys(uses):
        parameter, role = module.get_parameter(own), _role_in_attention(module, own)
        fits = [
            name
            for name, shape in left.items()
            if shape == _shape(parameter) and _in_attention(name) == role
        ]
        if not fits:
            what = role or "a parameter"  # not its own name: known mistakes call it otherwise
            raise ContractBroken(f"{what} of shape {_shape(parameter)} is not in the contract")
        found[fits[0]] = parameter
        del left[fits[0]]
    for name, shape in left.items():
        if name != MAY_LACK:
            alike = [each for each, weight in wanted.items() if _shape(weight) == shape]
            missing = f"no parameter plays the part of {name}, of shape {shape}"
            counted = f"; {len(alike)} of this shape are needed, {len(found.keys() & alike)} used"
            raise ContractBroken(missing + (counted if len(alike) > 1 else ""))
    return found


def load_by_use(module: nn.Module, weights: Mapping[str, Tensor], x: Tensor) -> nn.Module:
    """Copy weights, given in order of use, into a module that is run on x to see that order.

    Raises:
        ContractBroken: the module uses an unexpected parameter, or lacks one.
    """
    module.to(next(iter(weights.values())))
    with torch.no_grad():
        for name, parameter in parameters_by_use(module, weights, x).items():
            parameter.copy_(weights[name].view_as(parameter))
    return module


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(size for size in tensor.shape if size != 1)


def _in_attention(name: str) -> str:
    """Return the last two steps of a wanted name that belongs to an attention layer, else ""."""
    return next((part for part in ATTENTION if name.endswith(f".{part}")), "")


def _role_in_attention(module: nn.Module, own: str) -> str:
    """Return the last two steps of an own name, when what holds them is an attention layer."""
    holder, _, last = own.rpartition(".")
    holder, _, layer = holder.rpartition(".")
    inside = layer and hasattr(module.get_submodule(holder), "W_query")
    return f"{layer}.{last}" if inside else ""


class ModelProbe(LayerProbe):
    """One model's lines. Weights are drawn for each line and loaded by order of use."""

    float64_line = "float64 throughout, after .double()"
    reused = False

    def __init__(
        self, r: Recorder, module: type[nn.Module], kind: str, sizes: Mapping[str, Any]
    ) -> None:
        super().__init__(r, module, sizes)
        self.kind = kind

    def keeps(self, line: str, name: str, *values: int) -> None:
        """Record an attribute of models that are built with these values of the same name.

        gpt.keeps("keeps context_length as an attribute", "context_length", 6, 123)
        """

        def run(value: int) -> Any:
            model = self.build(**{name: value})
            if not hasattr(model, name):
                raise ContractBroken(f"there is no attribute called {name}")
            return getattr(model, name)

        typed = [f"{self.typed(**{name: value})}.{name}" for value in values]
        self.r.record(line, "call", run, [(value,) for value in values], typed)

    def shapes(self, **sizes: Any) -> dict[str, tuple[int, ...]]:
        return shapes_of(self.kind, {**self.sizes, **sizes})

    def scaled(self, name: str, weight: Tensor) -> Tensor:
        """Return drawn numbers as a weight: so large that every part is seen in the output."""
        if name == MAY_LACK:
            return torch.zeros_like(weight)
        if "norm" in name and name.endswith("weight"):
            return 1 + 0.4 * weight
        if weight.ndim == 2 and name not in ("token.weight", "position.weight"):
            return 1.2 * weight / sqrt(weight.shape[1])
        return weight

    def loaded(self, layer: nn.Module, weights: Weights, x: Tensor) -> nn.Module:
        return load_by_use(layer, weights, x)

    def learned(self, layer: nn.Module, weights: Weights, x: Tensor) -> Weights:
        used = parameters_by_use(layer, weights, x)
        return {name: used[name] for name in weights if name != MAY_LACK}


class SmallModel(nn.Module):
    """A model (b, n) -> (b, n, v) that is not a GPT: a token's scores are its row of a table.

    Rows of earlier tokens are added, the fainter the farther, and a bias that starts at 0. Scores
    in training differ from those in eval(), as with dropout, but not at random. As in a GPT, a
    layer inside decides on that, not the model's own `training`.
    """

    def __init__(self, table: Tensor, context_length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(table.clone())
        self.bias = nn.Parameter(torch.zeros_like(table[0]))
        self.layer = nn.Identity()
        self.context_length = context_length
        self.with_gradient = False

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens fit, got {n}")
        self.with_gradient |= torch.is_grad_enabled()
        places = torch.arange(n, device=tokens.device)
        faint = (0.9 ** (places[:, None] - places)).tril().to(self.table)  # (n, n)
        scores = faint @ self.table[tokens] + self.bias  # (b, n, v)
        return scores.flip(-1) if self.layer.training else scores


class ModelProbes(Recorder):
    """Lines on models, and on functions whose first argument is a model."""

    def tokens(self, vocab_size: int, *shape: int) -> Tensor:
        """Draw tokens, whole numbers from 0 to vocab_size - 1."""
        share = (self.uniform(*shape) + 1) / 2
        return (share * vocab_size).long().clamp(max=vocab_size - 1)

    def model(self, module: type[nn.Module], kind: str, **sizes: Any) -> ModelProbe:
        """Return a probe of a "feed-forward", a "block" or a "gpt", built with these sizes.

        gpt = r.model(TinyGPT, "gpt", vocab_size=13, d_model=8, context_length=6, ...)
        gpt.outputs("two sentences", r.tokens(13, 2, 5))
        """
        return ModelProbe(self, module, kind, sizes)

    def losses(
        self, line: str, answer: Callable[..., Any], *cases: Args, training: bool = True
    ) -> None:
        """Record the loss of a model for each (table, inputs, targets).

        `training` is the mode that the model is in.

            r.losses("the mean over every position", loss_of, (r.normal(9, 9), inputs, targets))
        """

        def run(table: Tensor, inputs: Tensor, targets: Tensor) -> Any:
            return answer(SmallModel(table, 99).train(training), inputs, targets)

        self.record(line, "call", run, cases, f"{answer.__name__}(model, inputs, targets)")

    def loss_gradient(self, line: str, answer: Callable[..., Any], *case: Tensor) -> None:
        """Record the gradient of a model's loss at its table, for (table, inputs, targets).

        r.loss_gradient("lets gradients through", loss_of, r.normal(9, 9), inputs, targets)
        """

        def run(table: Tensor, inputs: Tensor, targets: Tensor) -> dict[str, Tensor | None]:
            model = SmallModel(table, 99)
            loss = answer(model, inputs, targets)
            return self.gradients(line, loss, {"the model's table": model.table})

        self.record(line, "gradient", run, [case], f"{answer.__name__}(model, inputs, targets)")

    def trains(
        self,
        line: str,
        answer: Callable[..., Any],
        *cases: Args,
        training: bool = True,
        once: bool = False,
    ) -> None:
        """Record losses and the trained table for each (table, batches, lr).

        `training` is the mode that the model is in before. `once` gives the batches as a generator,
        which has no length and can be read once.

            r.trains("each loss, and the table at the end", train, (table, [(x, y), (x, y)], 0.1))
        """

        def run(table: Tensor, batches: list[tuple[Tensor, Tensor]], lr: float) -> dict[str, Any]:
            model = SmallModel(table, 99).train(training)
            losses = answer(model, (batch for batch in batches) if once else batches, lr)
            return {"losses": losses, "the model's table": model.table}

        typed = [f"{answer.__name__}(model, batches, {case[2]})" for case in cases]
        self.record(line, "call", run, cases, typed)

    def writes(
        self, line: str, answer: Callable[..., Any], *cases: Args, training: bool | None = None
    ) -> None:
        """Record what a model writes for each (table, context_length, tokens, max_new_tokens).

        The model starts in eval(), or in the mode that `training` gives; then its mode afterwards
        is recorded too, and that of its layers.

            r.writes("crops to the context", generate, (r.normal(9, 9), 4, tokens, 6))
        """

        def run(table: Tensor, context_length: int, *rest: Any) -> Any:
            model = SmallModel(table, context_length).train(bool(training))
            written = answer(model, *rest)
            if training is None:
                return written
            modes = {"training": model.training, "training of its layers": model.layer.training}
            return {"tokens": written, **modes}

        typed = [f"{answer.__name__}(model, tokens, {case[3]})" for case in cases]
        self.record(line, "call", run, cases, typed)

    def writes_without_gradient(self, line: str, answer: Callable[..., Any], *case: Any) -> None:
        """Record what a model writes, and whether gradients were kept on the way or stay off.

        r.writes_without_gradient("no gradient", generate, r.normal(9, 9), 4, tokens, 6)
        """

        def run(table: Tensor, context_length: int, *rest: Any) -> dict[str, Any]:
            model = SmallModel(table, context_length).eval()
            return {
                "tokens": answer(model, *rest),
                "keeps gradients": model.with_gradient,
                "gradients stay off": not torch.is_grad_enabled(),
            }

        self.record(line, "call", run, [case], f"{answer.__name__}(model, tokens, {case[3]})")
