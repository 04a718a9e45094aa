"""Weights of the contract, loaded into a layer by name."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from autograde.rubric.probes.calls import ContractBroken

Weights = dict[str, Tensor]

UNASKED = 0.5
"""The value of a bias that the contract does not have: not zero, so that outputs show it."""


def load(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Copy weights into a module's parameters by name; buffers are left alone.

    A bias that stands beside one of these weights, but not among them, is filled with UNASKED.

    Raises:
        ContractBroken: a parameter is missing, has another shape, or is not float32 as it should.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, weight in weights.items():
        there = parameter(module, name)
        if there.shape != weight.shape:
            raise ContractBroken(
                f"{name} has the shape {tuple(there.shape)}, expected {tuple(weight.shape)}"
            )
        if weight.dtype == torch.float32 != there.dtype:
            raise ContractBroken(f"{name} is {there.dtype}, expected torch.float32")
    module.to(next(iter(weights.values())))
    with torch.no_grad():
        for name, weight in weights.items():
            module.get_parameter(name).copy_(weight)
        for name in weights:
            bias = name.removesuffix("weight") + "bias"
            if bias in parameters and bias not in weights:
                module.get_parameter(bias).fill_(UNASKED)
    return module


def parameter(module: nn.Module, name: str) -> nn.Parameter:
    """Return a module's parameter.

    Raises:
        ContractBroken: none is registered under this name.
    """
    # `get_parameter` would take an attribute, such as a property, that an optimizer does not see
    found = dict(module.named_parameters(remove_duplicate=False)).get(name)
    if found is None:
        raise ContractBroken(f"there is no parameter called {name}{_instead(module, name)}")
    return found


def _instead(module: nn.Module, name: str) -> str:
    """Return what stands in a missing parameter's place, or "" where its name says enough."""
    place, _, part = name.partition(".")
    held = getattr(module, place, None)
    if held is not None and not (part and isinstance(held, nn.Module)):
        return f"; {place} is a {type(held).__name__}"
    return "" if [*module.parameters()] else "; the layer has no parameters"
