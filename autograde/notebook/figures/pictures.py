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
SAME_ENTRY = 1e-4
"""The share of a number that no picture shows."""
SAME_PLACE = 1e-3
"""The share of the way from the least number to the largest that no picture shows."""


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


class NoContent(Exception):
    """A picture holds a value that cannot be compared with another."""


@dataclass(frozen=True)
class Content:
    """What a picture shows: a digest of all but its fractions, and those as text, list by list.

    Processors differ in the last bits of what they compute, so fractions are compared, and whole
    numbers, words and code are in the digest. It is plain text, which a notebook's file can hold.
    """

    rest: str
    fractions: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for the picture, short enough to be sent in its place."""
        return hashlib.sha256("\n".join([self.rest, *self.fractions]).encode()).hexdigest()

    def looks_like(self, other: "Content") -> bool:
        """Return whether nobody could tell two pictures apart."""
        if self.rest != other.rest or len(self.fractions) != len(other.fractions):
            return False
        return all(map(_look_alike, self.fractions, other.fractions))


def content_of(picture: Picture | Figure) -> Content | None:
    """Return what a picture shows; None where that is not known, as for a figure already drawn."""
    fractions: list[str] = []
    try:
        facts = repr(_facts(picture, fractions))
    except Exception:  # whatever strange values do: what is not known is drawn, that is all
        return None
    digest = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()
    return Content(f"{look()}-{digest}", tuple(fractions))


def _look_alike(these: str, those: str) -> bool:
    """Return whether two lists of numbers look alike.

    Axes and colours may reach from the least to the largest, however near these are.
    """
    a, b = (np.array(text.split(), float) for text in (these, those))
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    apart, span = np.abs(a - b)[finite], np.ptp(b[finite]) if finite.any() else 0.0
    allowed = SAME_ENTRY * np.abs(b[finite])
    return bool((apart <= (np.minimum(allowed, SAME_PLACE * span) if span else allowed)).all())


@cache
def look() -> str:
    """Return a digest of the code that draws; content includes it, so new code draws anew."""
    folder = Path(__file__).parent
    code = [
        (folder / f"{name}.py").read_bytes() for name in ("canvas", "heatmaps", "query_picture")
    ]
    return hashlib.sha256(b"\0".join(code)).hexdigest()[:16]


def _facts(value: Any, fractions: list[str]) -> Any:
    """Return a value as nested tuples, with its fractions in a list of their own."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return kind.__name__, value
    if isinstance(value, float):
        return _entries([value], fractions)
    if isinstance(value, Tensor):
        return "tensor", _facts(_plain(value), fractions)
    if kind is np.ndarray and value.dtype.kind in "bif":
        return "array", value.shape, value.dtype.kind, _entries(value.ravel().tolist(), fractions)
    if kind in (list, tuple, range):
        return kind.__name__, _entries(value, fractions)
    if kind is dict:
        return "dict", tuple(
            (_facts(name, fractions), _facts(each, fractions)) for name, each in value.items()
        )
    if is_dataclass(value) and kind.__module__.startswith("autograde."):
        parts = (getattr(value, field.name) for field in fields(value))
        return kind.__name__, tuple(_facts(part, fractions) for part in parts)
    return _code_facts(value, fractions)


def _plain(tensor: Tensor) -> Any:
    if tensor.is_complex() or tensor.layout != torch.strided or tensor.numel() > MOST:
        raise NoContent
    tensor = tensor.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _entries(values: Any, fractions: list[str]) -> Any:
    if len(values) > MOST:
        raise NoContent
    if not values or not all(isinstance(value, float) for value in values):
        return tuple(_facts(value, fractions) for value in values)
    fractions.append(" ".join(f"{value + 0.0:.7g}" for value in values))
    return "fractions", len(values)


def _code_facts(value: Any, fractions: list[str]) -> Any:
    """Return a package's name for code, else the steps of the code and all that it refers to."""
    if isinstance(value, ModuleType):
        return "module", _known(value.__name__)
    if not isinstance(value, CODE):
        raise NoContent
    # a method belongs to an object; what C has belongs to its module or to a class
    if not isinstance(getattr(value, "__self__", None), (ModuleType, type, NoneType)):
        raise NoContent
    if not isinstance(value, FunctionType) or value.__module__ != "__main__":
        return "code", _known(value.__module__), value.__qualname__
    names = sorted(_looked_up(value.__code__) & value.__globals__.keys())
    outer = [cell.cell_contents for cell in value.__closure__ or ()]
    used = [*outer, value.__defaults__, value.__kwdefaults__]
    return (
        _steps(value.__code__),
        tuple((name, _facts(value.__globals__[name], fractions)) for name in names),
        tuple(_facts(each, fractions) for each in used),
    )


def _known(module: str) -> str:
    if module.partition(".")[0] not in KNOWN:
        raise NoContent
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
