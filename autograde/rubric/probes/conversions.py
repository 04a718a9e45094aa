"""Probes of functions that turn a layer of the course into one of PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograde.rubric.probes.copies import CopyProbe
from autograde.rubric.probes.plain import ContractBroken
from autograde.rubric.probes.weights import Weights, load


class ConversionProbe(CopyProbe):
    """Lines of a function from one layer to an nn.MultiheadAttention, called with a causal mask."""

    def _copied(self, weights: Weights, sizes: Mapping[str, Any]) -> tuple[nn.Module, nn.Module]:
        some = next(iter(weights.values()))
        source = load(self.layers[0].build(**sizes).to(some.device, some.dtype), weights)
        made = self.answer(source)
        if not isinstance(made, nn.MultiheadAttention):
            kind = type(made).__name__
            raise ContractBroken(f"a {kind} came back, expected an nn.MultiheadAttention")
        return source, _Causal(made)


class _Causal(nn.Module):
    """PyTorch's layer as a function of x alone, every token seeing itself and those before it."""

    def __init__(self, made: nn.MultiheadAttention) -> None:
        super().__init__()
        self.made = made

    def forward(self, x: Tensor) -> Any:
        n = x.shape[1]
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)
        return self.made(x, x, x, attn_mask=future)[0]
