"""What the heads of a model do with a story, as it is and with one head changed.

A model needs this course's parts, not its classes: each attention layer is a module with a layer
`W_value`; it has `num_heads`, or one head; it has an `out_proj` that reads what its heads hand on,
or returns that itself.

In shapes, b is the batch, n the words of the story, h the heads of a layer, d_h the size of a head.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attention_course.language import encode

Rows = list[list[float]]
Edit = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Change:
    """One head hands on something else: nothing, or what it hands on in another story."""

    layer: int
    head: int
    at: int | None = None
    """The place in the story; None for every place."""
    other: Sequence[str] | None = None
    """The words of the other story; None switches the head off."""


@dataclass(frozen=True)
class Reading:
    """What a model does with a story."""

    words: list[str]
    weights: list[list[Rows]]
    """[layer][head][i][j]: how much word i looks at word j."""
    chances: list[float]
    """How likely each word of the vocabulary is to come after the story."""

    @property
    def hidden(self) -> list[list[bool]]:
        """[i][j]: no head of any layer lets word i look at word j, not even a little."""
        n = range(len(self.words))
        heads = [head for layer in self.weights for head in layer]
        return [[all(head[i][j] == 0 for head in heads) for j in n] for i in n]


def attention_layers(model: nn.Module) -> list[nn.Module]:
    """Return the model's attention layers, first to last.

    Raises:
        ValueError: the model has none.
    """
    layers = [part for part in model.modules() if hasattr(part, "W_value")]
    if not layers:
        raise ValueError("this model has no attention layer: no part of it is called W_value")
    return layers


def heads_of(layer: nn.Module) -> int:
    """Return how many heads an attention layer has."""
    return int(getattr(layer, "num_heads", 1))


@torch.no_grad()
def read(model: nn.Module, words: Sequence[str], change: Change | None = None) -> Reading:
    """Read a story with a model in eval(), with one head changed if a change is given.

    The weights are read off what comes out. Beside the story the model reads copies of it. In a
    copy, the value of a word is 1 at a number of its own and 0 elsewhere, so that what a head hands
    on is its weights, however it computes them. After each layer the copies continue as the story.

    Raises:
        ValueError: the model has no attention layer, or one whose forward does not call the layers
            at which heads are read.
    """
    n, layers = len(words), attention_layers(model)
    sizes = [_value(layer).weight.shape[0] // heads_of(layer) for layer in layers]
    copies = math.ceil(n / min(sizes))
    weights: list[list[Rows]] = []
    valued: list[nn.Module] = []
    edits = {} if change is None else {change.layer: _edit(model, layers[change.layer], change)}
    with ExitStack() as hooks:
        for place, layer in enumerate(layers):
            hooks.enter_context(_own_values(layer, n, valued))
            hooks.enter_context(_edited(layer, _keep_weights(weights, n)))
            if place in edits:
                hooks.enter_context(_edited(layer, edits[place]))
        scores = model(_tokens(model, words).expand(1 + copies, -1))
    for name, calls in {"W_value": len(valued), "out_proj": len(weights)}.items():
        if calls < len(layers):
            raise ValueError(f"heads are read where forward calls self.{name}(…); yours does not")
    return Reading(list(words), weights, scores[0, -1].softmax(dim=-1).tolist())


def _tokens(model: nn.Module, words: Sequence[str]) -> Tensor:
    return torch.tensor([encode(words)], device=next(model.parameters()).device)  # (1, n)


def _value(layer: nn.Module) -> nn.Linear:
    return cast(nn.Linear, layer.W_value)


def _own_values(layer: nn.Module, n: int, valued: list[nn.Module]) -> RemovableHandle:
    """Let the copies have the values by which they are read, and note the layer that has them."""

    def replace(_: nn.Module, __: Any, values: Tensor) -> Tensor:  # (1 + c, n, h * d_h)
        valued.append(layer)
        size = values.shape[-1] // heads_of(layer)
        own = torch.zeros(len(values) - 1, n, size).to(values)
        places = torch.arange(n)
        own[places // size, places, places % size] = 1
        return torch.cat([values[:1], own.repeat(1, 1, heads_of(layer))])

    return _value(layer).register_forward_hook(replace)


def _edited(layer: nn.Module, edit: Edit) -> RemovableHandle:
    """Let a function see and replace what the heads of a layer hand on, (b, n, h, d_h)."""

    def edited(merged: Tensor) -> Tensor:
        return edit(merged.unflatten(-1, (heads_of(layer), -1))).flatten(2)

    out_proj = getattr(layer, "out_proj", None)
    if out_proj is None:
        return layer.register_forward_hook(lambda _, __, merged: edited(merged))
    hook: RemovableHandle = out_proj.register_forward_pre_hook(lambda _, x: (edited(x[0]),))
    return hook


def _keep_weights(weights: list[list[Rows]], n: int) -> Edit:
    def keep(handed: Tensor) -> Tensor:  # (1 + c, n, h, d_h)
        read_off = handed[1:].permute(2, 1, 0, 3).flatten(2)[..., :n]  # (h, n, n)
        weights.append(read_off.tolist())
        return handed[:1].expand_as(handed)

    return keep


def _edit(model: nn.Module, layer: nn.Module, change: Change) -> Edit:
    places = slice(None) if change.at is None else slice(change.at, change.at + 1)
    instead: Tensor | float = 0.0
    if change.other is not None:
        instead = _handed_on(model, layer, change.other)[:, places, change.head]

    def edit(handed: Tensor) -> Tensor:  # (b, n, h, d_h)
        handed = handed.clone()
        handed[:, places, change.head] = instead
        return handed

    return edit


def _handed_on(model: nn.Module, layer: nn.Module, words: Sequence[str]) -> Tensor:
    """Return what the heads of a layer hand on in a story, (1, n, h, d_h)."""
    seen: list[Tensor] = []

    def look(handed: Tensor) -> Tensor:
        seen.append(handed)
        return handed

    with _edited(layer, look):
        model(_tokens(model, words))
    return seen[0]
