"""Pictures that `show` can draw, and charts of a lesson's own."""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


class Picture:
    """A picture that `show` can draw: a frozen dataclass of all that it shows."""

    def figure(self) -> Figure:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"a picture: {type(self).__name__.lower()}"

    def _repr_png_(self) -> bytes:
        """Draw a picture that is the last line of a cell, though without a text alternative."""
        from autograde.notebook.figures.canvas import png_of

        return png_of(self)


def chart(draw: Callable[..., Figure], *values: Any) -> Figure:
    """Return the figure that a function of your own makes of values, in the course's look."""
    from autograde.notebook.figures.canvas import style

    with style():
        return draw(*values)


@cache
def drawn_by() -> str:
    """Return a digest of the code that draws, so that a check of built lessons can compare it.

    That is the canvas and every module with a picture of its own, the course's too.
    """
    modules = {"autograde.notebook.figures.canvas"}
    modules |= {each.__module__ for each in Picture.__subclasses__()}
    files = [sys.modules[name].__file__ for name in sorted(modules - {"__main__"})]
    code = [Path(file).read_bytes() for file in files if file]
    return hashlib.sha256(b"\0".join(code)).hexdigest()[:16]
