"""Plain data to bytes and back: one safetensors blob, with JSON in its header.

Recordings that leave a student's kernel, and practice data, are packed here. Reading never runs
code (no pickle) and checks sizes before it allocates.
"""

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from safetensors import SafetensorError, deserialize

from autograde.values import exact
from autograde.values.base import EXACT_TYPES, MAX_KEYS, BadData, Plain, Structure, Unrecordable
from autograde.values.dispatch import STRUCTURES, module_named
from autograde.values.python import hashable
from autograde.values.text import well_formed

T = TypeVar("T")

MAX_BYTES = 32 * 1024 * 1024
MAX_HEADER = 2 * 1024 * 1024
MAX_DEPTH = 32
MALFORMED = (
    SafetensorError, struct.error, ImportError, ValueError, KeyError, TypeError, AttributeError,
    ArithmeticError, RuntimeError,  # of torch, for a shape whose product is too large
)  # fmt: skip

Blob = tuple[str, list[int], bytes]
"""A dtype as safetensors names it, a shape, and the entries."""


def pack(value: Any) -> bytes:
    """Return a plain value as bytes, a dataclass as a dict; the same value gives the same bytes."""
    blobs: dict[str, Blob] = {}
    tree = _to_tree(value, blobs)
    return _in_one({"tree": json.dumps(tree, sort_keys=True, allow_nan=False)}, blobs)


def _in_one(metadata: dict[str, str], blobs: dict[str, Blob]) -> bytes:
    """Return one blob of several, as safetensors lays them out, without torch or NumPy."""
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, (dtype, shape, data) in blobs.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(data for _, _, data in blobs.values())])


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
        blobs = {name: (b["dtype"], b["shape"], b["data"]) for name, b in _read(data)}
        return _from_tree(tree, blobs, MAX_DEPTH)
    except BadData:
        raise
    except MALFORMED as error:
        raise BadData(f"not a recording: {error}") from error
    except RecursionError as error:
        raise BadData("nested too deeply") from error


_read: Any = deserialize  # it has no types


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; a repeated name would cost far more than its own bytes."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise BadData("a header that has a name twice")
    return read


def from_plain(wanted: type[T], plain: Plain) -> T:
    """Return plain data as a value of a type: a dataclass, or a tuple or dict of dataclasses.

    A field that has a default may be missing: an earlier version may not have known it.

    Raises:
        BadData: the data do not fit the type.
    """
    return cast(T, _as(wanted, plain))


def _as(wanted: Any, plain: Plain) -> Any:
    if is_dataclass(wanted):
        return _object(wanted, plain)
    outer, inner = get_origin(wanted), get_args(wanted)
    if outer is UnionType:  # something | None
        return None if plain is None else _as(inner[0], plain)
    if outer is tuple and isinstance(plain, list | tuple):
        return tuple(_as(inner[0], item) for item in plain)
    if outer is dict and isinstance(plain, dict):
        return {inner[0](name): _as(inner[1], item) for name, item in plain.items()}
    if wanted is Any or isinstance(plain, int | float if wanted is float else outer or wanted):
        return plain
    raise BadData(f"a {wanted.__name__} was expected, not a {type(plain).__name__}")


def _object(wanted: Any, plain: Plain) -> Any:
    hints, name = _hints(wanted), wanted.__name__.lower()
    if not isinstance(plain, dict):
        raise BadData(f"a {name} was expected, not a {type(plain).__name__}")
    if missing := [each for each in _needed(wanted) if each not in plain]:
        raise BadData(f"a {name} lacks {missing[0]!r}")
    there = {each: hint for each, hint in hints.items() if each in plain}
    return wanted(**{each: _as(hint, plain[each]) for each, hint in there.items()})


_hints = cache(get_type_hints)


@cache
def _needed(wanted: Any) -> list[str]:
    return [f.name for f in fields(wanted) if f.default is MISSING and f.default_factory is MISSING]


def _to_tree(value: Any, blobs: dict[str, Blob]) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return {"int": str(value)}
        case float():
            return {"float": repr(float(value))}
        case complex():
            return {"complex": [repr(value.real), repr(value.imag)]}
        case bytes():
            return {"bytes": b64encode(value).decode()}
        case list():
            return {"list": [_to_tree(item, blobs) for item in value]}
        case tuple():
            return {"tuple": [_to_tree(item, blobs) for item in value]}
        case set() | frozenset():
            items = (_to_tree(item, blobs) for item in value)
            return {type(value).__name__: sorted(items, key=json.dumps)}
        case dict() if all(isinstance(key, str) for key in value):
            return {"dict": [[key, _to_tree(item, blobs)] for key, item in value.items()]}
        case dict():
            return {"map": [[_to_tree(k, blobs), _to_tree(v, blobs)] for k, v in value.items()]}
        case Structure():
            parts = [[name, _to_tree(part, blobs)] for name, part in value.parts.items()]
            return {"record": [value.what, value.name, parts]}
        case Unrecordable():
            return {"unrecordable": value.what}
        case _ if isinstance(value, EXACT_TYPES):
            name, text = exact.to_text(value)
            return {name: text}
        case _ if is_dataclass(value):
            return _to_tree(vars(value), blobs)
    return _to_blob(value, blobs)


def _to_blob(value: Any, blobs: dict[str, Blob]) -> Any:
    key = f"t{len(blobs):04d}"
    library = type(value).__module__.partition(".")[0]
    if library == "torch":
        blobs[key] = module_named("tensors").to_bytes(value)
        return {"tensor": key}
    if library == "numpy":
        form, data = module_named("arrays").to_bytes(value)
        blobs[key] = ("U8", [len(data)], data)
        return {"array": [key, *form]}
    raise TypeError(f"cannot pack a {type(value).__name__}")


def _from_tree(tree: Any, blobs: dict[str, Blob], depth: int) -> Plain:
    if depth == 0:
        raise BadData("nested too deeply")
    if tree is None or isinstance(tree, bool):
        return tree
    if isinstance(tree, str):
        return well_formed(tree)

    def inner(item: Any) -> Plain:
        return _from_tree(item, blobs, depth - 1)

    ((tag, content),) = tree.items()
    match tag:
        case "tensor":  # named twice, a blob would cost twice its bytes
            return module_named("tensors").from_bytes(*blobs.pop(content))
        case "array":
            key, *form = content
            return module_named("arrays").from_bytes(form, bytes(blobs.pop(key)[2]))
        case "int":
            return int(content)
        case "float":
            return float(content)
        case "complex":
            return complex(*map(float, content))
        case "bytes":
            return b64decode(content, validate=True)
        case "list":
            return [inner(item) for item in content]
        case "tuple":
            return tuple(inner(item) for item in content)
        case "set":
            return set(_keys(content, inner))
        case "frozenset":
            return frozenset(_keys(content, inner))
        case "dict":
            return {well_formed(str(key)): inner(item) for key, item in content}
        case "map":
            keys = _keys([key for key, _ in content], inner)
            return dict(zip(keys, [inner(item) for _, item in content], strict=True))
        case "record":
            name, of, parts = content
            parts_by_name = {well_formed(str(part)): inner(item) for part, item in parts}
            found = Structure(well_formed(name), well_formed(of), parts_by_name)
            by = STRUCTURES.get(found.what)
            if by and not module_named(by).is_whole(found):
                raise BadData(f"a {found.what} that lacks a part")
            return found
        case "unrecordable":
            return Unrecordable(well_formed(content))
        case _ if tag in exact.READ:
            return exact.from_text(tag, content)
    raise BadData(f"unknown value {tag!r}")


def _keys(items: list[Any], read: Callable[[Any], Plain]) -> list[Plain]:
    """Return items that will be hashed, if they are not so many that it could be made slow."""
    if len(items) > MAX_KEYS:
        raise BadData(f"a set or dict of {len(items)} keys that may not be text")
    return [hashable(read(item)) for item in items]
