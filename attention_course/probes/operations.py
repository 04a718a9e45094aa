"""Watches the operations that torch runs, and whether their tensors are on two devices."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from autograde.rubric.probes.calls import tensors_in

EMPTY = torch.device("meta")
CROSSES = ("copy_", "index", "index_put_")
"""PyTorch lets these take tensors of two devices: `x[mask]` may have its mask on the CPU."""


class Dispatched(TorchDispatchMode):
    """Base class of modes that see every operation that torch runs, with its tensors."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, for which a student waits a second


class Devices(Dispatched):
    """Note whether an operation was given tensors of two devices, one of which holds no numbers.

    Operations on tensors without numbers are done on zeros, for the shapes of their results.
    PyTorch's own operations on `meta` import its compiler, which takes a second.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mixed = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [*tensors_in([*args, *kwargs.values()])]
        devices = {t.device.type for t in tensors if t.ndim > 0 or t.is_meta}
        if len(devices) > 1 and func.overloadpacket.__name__ not in CROSSES:
            self.mixed = True
            raise RuntimeError("an operation on tensors of two devices")
        asked = kwargs.get("device")
        there = asked == EMPTY or (asked is None and "meta" in devices)
        if not there or not _only_computes(func):
            return func(*args, **kwargs)
        if asked:
            kwargs = {**kwargs, "device": "cpu"}
        result = func(*tree_map(_with_zeros, args), **tree_map(_with_zeros, kwargs))
        return args[0] if func._schema.is_mutable else tree_map(_without_numbers, result)


def _only_computes(func: Any) -> bool:
    """Return whether an operation gives only tensors, and neither a view nor an in-place one."""
    gives_tensors = all("Tensor" in str(given.type) for given in func._schema.returns)
    return gives_tensors and not func.is_view and torch.Tag.inplace_view not in func.tags


def _with_zeros(value: Any) -> Any:
    meta = isinstance(value, Tensor) and value.is_meta
    return _like(value, "cpu").zero_() if meta else value


def _without_numbers(value: Any) -> Any:
    return _like(value, EMPTY) if isinstance(value, Tensor) else value


def _like(tensor: Tensor, device: torch.device | str) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
