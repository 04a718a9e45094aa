"""The base of every figure: one look, PNG bytes that repeat, and a text alternative."""

import base64
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image, ImageOps

# Drawn at 144 dots an inch and shown at the 96 of a web page: sharp on laptop screens.
DPI = 144
SCREEN_DPI = 96
EDGE = 9  # pixels of white around a figure

STYLE = {
    "figure.dpi": DPI,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters on every machine
    "font.size": 9.5,
    "axes.titlesize": 11,
    "axes.titlepad": 8,
    "axes.labelsize": 9.5,
    "axes.labelcolor": "0.25",
    "axes.edgecolor": "0.45",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "0.45",
    "xtick.labelcolor": "0.1",
    "ytick.color": "0.45",
    "ytick.labelcolor": "0.1",
    "hatch.linewidth": 0.7,
}


class Picture:
    """A picture that `show` can draw: a frozen dataclass of all that it shows."""

    def figure(self) -> Figure:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"a picture: {type(self).__name__.lower()}"

    def _repr_png_(self) -> bytes:
        """Draw a picture that is the last line of a cell, though without a text alternative."""
        return png_of(self)


def chart(draw: Callable[..., Figure], *values: Any) -> Figure:
    """Return the figure that a function of your own makes of values, in the course's look."""
    with style():
        return draw(*values)


def show(picture: Picture | Figure, alt: str) -> None:
    """Display a picture as PNG, with `alt` for those who cannot see it.

    A figure of pyplot's is closed.

    Raises:
        ValueError: alt says nothing.
    """
    require(alt, "alt")
    display_png(png_of(picture), alt, alt)


def show_live(alt: str) -> Callable[[Picture | Figure], None]:
    """Display a place for a picture that changes; return a function that draws it there anew.

    A front end that cannot change what it displays shows `alt` alone.

    Raises:
        ValueError: alt says nothing.
    """
    require(alt, "alt")
    place = display({"text/plain": alt}, raw=True, display_id=True)

    def draw(picture: Picture | Figure) -> None:
        data, about = _data(png_of(picture), alt, alt)
        place.update(data, metadata=about, raw=True)

    return draw


def style(*, formulas: bool = True) -> AbstractContextManager[None]:
    """Set our look on top of matplotlib's defaults; the student's settings come back afterwards.

    Without formulas text is drawn as it is written: a token may be a dollar sign.
    """
    return plt.style.context(["default", {**STYLE, "text.parse_math": formulas}])


def require(text: str, name: str) -> None:
    if not text.strip():
        raise ValueError(f"{name} is empty; say what the figure shows")


def png_of(picture: Picture | Figure) -> bytes:
    """Render, then close. The same figure gives the same bytes on every run."""
    with style():
        figure = picture if isinstance(picture, Figure) else picture.figure()
        pixels = _drawn(figure)
    plt.close(figure)
    # 256 colours are a third of the bytes, and the lossy part cannot be seen.
    small = BytesIO()
    pixels.quantize(256, dither=Image.Dither.NONE).save(small, "png")
    return small.getvalue()


def _drawn(figure: Figure) -> Image.Image:
    """Return the figure's pixels, cut down to what is drawn and a narrow white edge."""
    whole = BytesIO()
    figure.savefig(whole, dpi=DPI, facecolor="white", bbox_inches="tight")
    pixels = Image.open(whole).convert("RGB")
    ink = ImageOps.invert(pixels).getbbox()
    return ImageOps.expand(pixels.crop(ink), EDGE, "white")


def screen_width(png: bytes) -> int:
    """Return the width a page should give this PNG; bytes 16 to 20 hold its pixels."""
    return round(int.from_bytes(png[16:20], "big") * SCREEN_DPI / DPI)


def display_png(png: bytes, alt: str, text: str, widget: dict[str, Any] | None = None) -> None:
    data, about = _data(png, alt, text)
    display({**(widget or {}), **data}, metadata=about, raw=True)


def _data(png: bytes, alt: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what displays a PNG, and the metadata that go with it."""
    data = {"image/png": base64.b64encode(png).decode(), "text/plain": text}
    picture = {"alt": alt, "width": screen_width(png)}
    return data, {"image/png": picture}
