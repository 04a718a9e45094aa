"""A picture as data: what it shows is known before it is drawn, so equal ones need one drawing."""

import dis
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

CODE = (type, FunctionType, BuiltinFunctionType)
KNOWN = {"autograde", "builtins", "math", "matplotlib", "numpy", "torch"}
"""Packages whose functions draw the same wherever they are installed."""
LOOKED_UP = {"LOAD_GLOBAL", "LOAD_NAME"}
MOST = 100_000  # entries; to look at more would cost more than to draw them


class Picture:
    """A picture that `show` can draw: a frozen dataclass of all that it shows."""

    def figure(self) -> Figure:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"a picture: {type(self).__name__.lower()}"

    def _repr_png_(self) -> bytes:
        """Draw a picture that is the last line of a cell, though without words."""
        from autograde.notebook.figures.canvas import png_of

        return png_of(self)


@dataclass(frozen=True, repr=False)
class Chart(Picture):
    """A picture that a function of the lesson's draws from values."""

    draw: Callable[..., Figure]
    values: tuple[Any, ...]

    def figure(self) -> Figure:
        with mpl.rc_context({"text.parse_math": True}):
            figure = self.draw(*self.values)
        if not isinstance(figure, Figure):
            raise TypeError(
                f"{self.draw.__name__} returned a {type(figure).__name__}; a chart's function "
                "must return the figure that it drew"
            )
        return figure


def chart(draw: Callable[..., Figure], *values: Any) -> Chart:
    """Return a picture of your own: `draw(*values)` makes a figure when it is shown."""
    return Chart(draw, values)


class NoKey(Exception):
    """A picture holds a value that cannot be compared with another."""


def key_of(picture: Picture | Figure) -> str:
    """Return a picture's key: two pictures that look the same have the same one.

    Two right answers differ in the last bits, and no picture shows those. The key is "" where it
    is not known, as for a figure that has been drawn already.
    """
    try:
        facts = repr(_facts(picture))
    except Exception:  # whatever strange values do: without a key the picture is drawn, that is all
        return ""
    return f"{look()}-{hashlib.sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()}"


@cache
def look() -> str:
    """Return a digest of the code that draws; each key begins with it, so new code draws anew."""
    folder = Path(__file__).parent
    code = [
        (folder / f"{name}.py").read_bytes() for name in ("canvas", "heatmaps", "query_picture")
    ]
    return hashlib.sha256(b"\0".join(code)).hexdigest()[:16]


def _facts(value: Any) -> Any:
    """Return a value as nested tuples that are equal when the values look the same."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return kind.__name__, value
    if isinstance(value, float):
        return "float", _digits(value)
    if isinstance(value, Tensor):
        return "tensor", _facts(_plain(value))
    if kind is np.ndarray and value.dtype.kind in "bif":
        return "array", value.shape, value.dtype.kind, _entries(value.ravel().tolist())
    if kind in (list, tuple, range):
        return kind.__name__, _entries(value)
    if kind is dict:
        return "dict", tuple((_facts(name), _facts(each)) for name, each in value.items())
    if is_dataclass(value) and kind.__module__.startswith("autograde."):
        return kind.__name__, tuple(_facts(getattr(value, f.name)) for f in fields(value))
    return _code_facts(value)


def _plain(tensor: Tensor) -> Any:
    if tensor.is_complex() or tensor.layout != torch.strided or tensor.numel() > MOST:
        raise NoKey
    tensor = tensor.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _entries(values: Any) -> Any:
    """Return entries one by one, and where numbers lie between the least and the largest.

    Axes and colours may reach from one to the other, however near they are.
    """
    if len(values) > MOST:
        raise NoKey
    if not values or not all(isinstance(value, float) for value in values):
        return tuple(map(_facts, values))
    numbers = np.array(values)
    finite = numbers[np.isfinite(numbers)]
    span = np.ptp(finite) if finite.size else 0.0
    places = (numbers - finite.min()) / span if span > 0 else []
    return tuple(map(_digits, values)), tuple(f"{place:.3f}" for place in places)


def _digits(number: float) -> str:
    return f"{number + 0.0:.4e}"


def _code_facts(value: Any) -> Any:
    """Return a package's name for code, else the steps of the code and all that it refers to."""
    if isinstance(value, ModuleType):
        return "module", _known(value.__name__)
    if not isinstance(value, CODE):
        raise NoKey
    # a method belongs to an object; what C has belongs to its module or to a class
    if not isinstance(getattr(value, "__self__", None), (ModuleType, type, NoneType)):
        raise NoKey
    if not isinstance(value, FunctionType) or value.__module__ != "__main__":
        return "code", _known(value.__module__), value.__qualname__
    names = sorted(_looked_up(value.__code__) & value.__globals__.keys())
    outer = [cell.cell_contents for cell in value.__closure__ or ()]
    used = [*outer, value.__defaults__, value.__kwdefaults__]
    return (
        _steps(value.__code__),
        tuple((name, _facts(value.__globals__[name])) for name in names),
        tuple(map(_facts, used)),
    )


def _known(module: str) -> str:
    if module.partition(".")[0] not in KNOWN:
        raise NoKey
    return module


def _steps(code: CodeType) -> Any:
    """Return the steps of code, wherever it stands."""
    constants = tuple(
        _steps(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    )
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def _looked_up(code: CodeType) -> set[str]:
    """Return the global names that code and the functions in it look up."""
    inner: Iterable[set[str]] = (
        _looked_up(each) for each in code.co_consts if isinstance(each, CodeType)
    )
    own = {str(i.argval) for i in dis.get_instructions(code) if i.opname in LOOKED_UP}
    return own.union(*inner)
