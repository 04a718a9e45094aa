"""Plain values and tensors to bytes and back: one safetensors blob, with JSON in its header.

Recordings that leave a student's kernel, and practice data, are packed here. Reading never runs
code (no pickle) and checks sizes before it allocates.
"""

import json
import struct
from dataclasses import is_dataclass
from functools import cache
from math import prod
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from autograde.rubric.text import well_formed

MAX_BYTES = 32 * 1024 * 1024
MAX_HEADER = 2 * 1024 * 1024
MAX_DEPTH = 12
MAX_DIMENSIONS = 64

FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
DTYPES = FLOATS | INTEGERS | {torch.bool}
MALFORMED = (
    SafetensorError, struct.error, ValueError, KeyError, TypeError, AttributeError, OverflowError,
    RuntimeError,  # of torch, for a shape whose product is too large
)  # fmt: skip

Plain = Any
"""A tensor, float, int, bool, str, None, or a list, tuple or dict (str keys) of such."""


class BadData(ValueError):
    """The bytes are not what `pack` writes; the message says why."""


def pack(value: Any) -> bytes:
    """Return a plain value as bytes, a dataclass as a dict; the same value gives the same bytes."""
    tensors: dict[str, Tensor] = {}
    tree = _to_tree(value, tensors)
    return save(tensors, metadata={"tree": json.dumps(tree, sort_keys=True, allow_nan=False)})


def unpack(data: bytes) -> Plain:
    """Return the value that `pack` made bytes of.

    Raises:
        BadData: the bytes are malformed or larger than this module allows.
    """
    if len(data) > MAX_BYTES:
        raise BadData(f"{len(data)} bytes are more than the {MAX_BYTES} allowed")
    try:
        (header_size,) = struct.unpack("<Q", data[:8])
        if header_size > MAX_HEADER:
            raise BadData(f"a header of {header_size} bytes is more than the {MAX_HEADER} allowed")
        header = json.loads(data[8 : 8 + header_size], object_pairs_hook=_no_name_twice)
        tree = json.loads(header["__metadata__"]["tree"])
        return _from_tree(tree, load(data), MAX_DEPTH)
    except BadData:
        raise
    except RecursionError as error:
        raise BadData("nested too deeply") from error
    except MALFORMED as error:
        raise BadData(f"not a recording: {error}") from error


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; a repeated name would cost far more than its own bytes."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise BadData("a header that has a name twice")
    return read


def from_plain(kind: Any, plain: Plain) -> Any:
    """Return plain data as a value of a type: a dataclass, or a tuple or dict of dataclasses.

    Raises:
        BadData: the data do not fit the type.
    """
    if is_dataclass(kind):
        return _object(kind, plain)
    outer, inner = get_origin(kind), get_args(kind)
    if outer is UnionType:  # something | None
        return None if plain is None else from_plain(inner[0], plain)
    if outer is tuple and isinstance(plain, list | tuple):
        return tuple(from_plain(inner[0], item) for item in plain)
    if outer is dict and isinstance(plain, dict):
        return {inner[0](name): from_plain(inner[1], item) for name, item in plain.items()}
    if kind is Any or isinstance(plain, int | float if kind is float else outer or kind):
        return plain
    raise BadData(f"a {kind.__name__} was expected, not a {type(plain).__name__}")


def _object(kind: Any, plain: Plain) -> Any:
    hints, name = _hints(kind), kind.__name__.lower()
    if not isinstance(plain, dict):
        raise BadData(f"a {name} was expected, not a {type(plain).__name__}")
    if missing := [each for each in hints if each not in plain]:
        raise BadData(f"a {name} lacks {missing[0]!r}")
    return kind(**{each: from_plain(hint, plain[each]) for each, hint in hints.items()})


_hints = cache(get_type_hints)


def _to_tree(value: Any, tensors: dict[str, Tensor]) -> Any:
    match value:
        case Tensor():
            key = f"t{len(tensors):04d}"
            tensors[key] = value.detach().cpu().contiguous().clone()
            return {"tensor": key}
        case None | bool() | str():
            return value
        case int():
            return {"int": str(value)}
        case float():
            return {"float": repr(float(value))}
        case list():
            return {"list": [_to_tree(item, tensors) for item in value]}
        case tuple():
            return {"tuple": [_to_tree(item, tensors) for item in value]}
        case dict():
            return {"dict": [[k, _to_tree(item, tensors)] for k, item in value.items()]}
        case _ if is_dataclass(value):
            return _to_tree(vars(value), tensors)
    raise TypeError(f"cannot pack a {type(value).__name__}")


def _from_tree(tree: Any, tensors: dict[str, Tensor], depth: int) -> Plain:
    if depth == 0:
        raise BadData("nested too deeply")
    if tree is None or isinstance(tree, bool):
        return tree
    if isinstance(tree, str):
        return well_formed(tree)
    ((kind, content),) = tree.items()
    match kind:
        case "tensor":
            return _clean(tensors.pop(content))  # named twice, it would cost twice its bytes
        case "int":
            return int(content)
        case "float":
            return float(content)
        case "list":
            return [_from_tree(item, tensors, depth - 1) for item in content]
        case "tuple":
            return tuple(_from_tree(item, tensors, depth - 1) for item in content)
        case "dict":
            pairs = ((k, _from_tree(item, tensors, depth - 1)) for k, item in content)
            return {well_formed(str(k)): item for k, item in pairs}
    raise BadData(f"unknown kind of value {kind!r}")


def _clean(tensor: Tensor) -> Tensor:
    if tensor.dtype not in DTYPES:
        raise BadData(f"a tensor of {tensor.dtype} is not allowed")
    if tensor.ndim > MAX_DIMENSIONS:
        raise BadData(f"a tensor of {tensor.ndim} dimensions is not allowed")
    if prod(filter(None, tensor.shape)) > MAX_BYTES:  # it may have no entries, and many rows
        raise BadData(f"a tensor of the shape {tuple(tensor.shape)} is not allowed")
    if tensor.dtype == torch.bool:  # safetensors lets bytes other than 0 and 1 through
        return tensor.view(torch.uint8) != 0
    return tensor
