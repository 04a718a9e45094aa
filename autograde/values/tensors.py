"""torch's tensors; modules, which are given to answers, by their state."""

from __future__ import annotations

from copy import deepcopy
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograde.values import arrays, differences, dispatch, numbers, python
from autograde.values.base import (
    MAX_ENTRIES,
    TOO_MANY,
    BadData,
    Difference,
    Plain,
    Structure,
    Table,
    Tables,
    Unrecordable,
    Within,
)

MAX_DIMENSIONS = 64

CODES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
"""The dtypes that are recorded, by the names that safetensors gives them."""


def to_plain(value: Any, within: Within) -> Plain:
    match value:
        case Tensor():
            return _recorded(value)
        case nn.Module():
            return _module(value)
    return python.to_plain(value, within)


def _module(module: nn.Module) -> Plain:
    """Return a module's state and settings, so that any change to it shows."""
    parts = {
        "state": dispatch.to_plain(dict(module.state_dict())),
        "training": [part.training for part in module.modules()],
        "learns": [parameter.requires_grad for parameter in module.parameters()],
    }
    return Structure("module", type(module).__name__, parts)


def _recorded(tensor: Tensor) -> Plain:
    if tensor.ndim > MAX_DIMENSIONS:
        return Unrecordable(f"a tensor of {tensor.ndim} dimensions")
    if tensor.numel() > MAX_ENTRIES:
        return Unrecordable(f"a tensor of {TOO_MANY}")
    if tensor.dtype not in CODES.values() or tensor.layout != torch.strided or tensor.is_meta:
        return Unrecordable(f"a tensor of {tensor.dtype}, {tensor.layout}")
    return tensor.detach().as_subclass(Tensor).cpu().clone()


def copied(value: Any) -> Any:
    """Return a copy of a tensor with its own gradient; a module as it is."""
    if not isinstance(value, Tensor):
        return python.copied(value)
    return deepcopy(value if value.is_leaf else value.detach().requires_grad_())


def apart(got: Plain, expected: Tensor) -> Difference:
    if not isinstance(got, Tensor):
        return differences.other(got, expected)
    return numbers.apart(got, expected, _array)


def _array(tensor: Tensor) -> numbers.Array:
    """Return a tensor's entries as an array; bfloat16, which NumPy lacks, as float32."""
    wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return np.asarray(wide.numpy())


def describe(value: Plain) -> str:
    return f"a tensor of shape {tuple(value.shape)}"


def side_by_side(got: Tensor, expected: Tensor, where: str, near: float) -> Tables:
    return numbers.side_by_side(_array(got), _array(expected), where, near)


def in_full(value: Tensor) -> Table | None:
    return numbers.in_full(_array(value))


def cast_like(value: Plain, like: Tensor) -> Plain:
    return value.to(like.dtype) if isinstance(value, Tensor) else value


def says_much(value: Tensor) -> bool:
    return arrays.says_much(_array(value))


def to_bytes(value: Tensor) -> tuple[str, list[int], bytes]:
    """Return a tensor's dtype, as safetensors names it, its shape, and its entries as bytes."""
    code = next(code for code, dtype in CODES.items() if dtype == value.dtype)
    flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return code, list(value.shape), flat.numpy().tobytes()


def from_bytes(code: str, shape: list[int], data: bytes) -> Tensor:
    """Return the tensor that `to_bytes` made bytes of; safetensors has compared the sizes.

    Raises:
        BadData: the dtype, the shape or the number of dimensions is not allowed.
    """
    if code not in CODES:
        raise BadData(f"a tensor of {code} is not allowed")
    if len(shape) > MAX_DIMENSIONS:
        raise BadData(f"a tensor of {len(shape)} dimensions is not allowed")
    if prod(filter(None, shape)) > MAX_ENTRIES:  # it may have no entries, and many rows
        raise BadData(f"a tensor of the shape {tuple(shape)} is not allowed")
    if not data:
        return torch.empty(shape, dtype=CODES[code])
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if code == "BOOL":  # safetensors lets bytes other than 0 and 1 through
        return (flat != 0).reshape(shape)
    return flat.view(CODES[code]).reshape(shape)
