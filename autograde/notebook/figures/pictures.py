"""Pictures that `show` can draw, and charts of a lesson's own."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
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


@cache
def drawn_by() -> str:
    """Return a digest of the code that draws, so that a check of built lessons can compare it."""
    folder = Path(__file__).parent
    code = [
        (folder / f"{name}.py").read_bytes() for name in ("canvas", "heatmaps", "query_picture")
    ]
    return hashlib.sha256(b"\0".join(code)).hexdigest()[:16]
