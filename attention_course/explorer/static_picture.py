"""The picture that is saved with the notebook: what the explorer shows first."""

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from PIL import Image

from attention_course.explorer.reading import Reading
from attention_course.language import VOCABULARY
from autograde.notebook.figures.canvas import DPI, Picture, style

# The picture is clear and holds on light and on dark pages: what is written has light ground of its
# own, and the blue of bars and arcs lies between white and black.
BLUE, NUMBER, GROUND, HATCH = "#1d7fc4", "#0b5c99", "#eef2f6", "#b9c4cf"
CHIP = {"boxstyle": "round,pad=0.2", "facecolor": GROUND, "edgecolor": "none"}
WIDTH, MARGIN = 590.0, 8.0  # points; the text of a story is as wide as the page of a notebook
SIZE, PAD, GAP = 12.0, 6.0, 5.0
ARCS, NUMBERS, LINE = 40.0, 15.0, 22.0  # heights above, below and of a line of the story
BAR, BARS = 19.0, 5
SHOWN, DRAWN = 0.005, 0.01
"""A weight below the first is 0.00; one below the second has no arc."""

Place = tuple[float, float]


@dataclass(frozen=True, repr=False)
class StillPicture(Picture):
    """A story, what one of its words looks at in one head, and the words that may come next."""

    words: list[str]
    at: int
    row: list[float]
    hidden: list[bool]
    name: str
    likely: dict[str, float]

    def figure(self) -> Figure:
        places = _places(self.words)
        below = places[-1][1] + LINE + NUMBERS + 30
        height = below + BAR * len(self.likely) + 6
        with style(formulas=False):
            figure = Figure(figsize=(WIDTH / 72, height / 72))
            ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
            ax.set_axis_off()
            title = f"Head {self.name}: what “{self.words[self.at]}” looks at"
            ax.text(MARGIN, 12, title, fontsize=11, bbox=CHIP)
            self._draw_story(ax, places)
            _draw_bars(ax, self.words, self.likely, below)
        return figure

    def _draw_story(self, ax: Axes, places: list[Place]) -> None:
        widths = [_width(word) for word in self.words]
        middle = [(x + width / 2, y) for width, (x, y) in zip(widths, places, strict=True)]
        for j, (word, weight) in enumerate(zip(self.words, self.row, strict=True)):
            center, y = middle[j]
            hatch = "////" if self.hidden[j] else None
            _draw_box(
                ax, places[j], widths[j], facecolor=_mixed(weight), edgecolor=HATCH, hatch=hatch
            )
            ax.text(center, y + LINE / 2, word, ha="center", va="center_baseline", fontsize=SIZE)
            if weight >= SHOWN:
                bold = "bold" if weight == max(self.row) else "normal"
                ax.text(
                    center, y + LINE + 11, f"{weight:.2f}", ha="center", fontsize=9, color=NUMBER,
                    fontweight=bold, bbox=CHIP,
                )  # fmt: skip
            if weight >= DRAWN and j != self.at:
                _draw_arc(ax, middle[self.at], middle[j], weight)
        pressed = {"facecolor": "none", "edgecolor": BLUE, "linewidth": 2}
        _draw_box(ax, places[self.at], widths[self.at], **pressed)


def still_picture(
    reading: Reading, layer: int, head: int, at: int = -1
) -> tuple[StillPicture, str]:
    """Return the picture of a story's word in one head, and the same in words."""
    at %= len(reading.words)
    row, name = reading.weights[layer][head][at], f"{layer + 1}.{head + 1}"
    by_chance = sorted(zip(VOCABULARY, reading.chances, strict=True), key=lambda pair: -pair[1])
    likely = dict(by_chance[:BARS])
    most = sorted(range(len(row)), key=lambda j: -row[j])[:4]
    looks = ", ".join(f"{reading.words[j]} {row[j]:.2f}" for j in most if row[j] >= SHOWN)
    alt = (
        f"The story “{' '.join(reading.words)}”. In head {name} the word {reading.words[at]} looks "
        f"at {looks}. "
        f"Next may come {', '.join(f'{word} {chance:.2f}' for word, chance in likely.items())}."
    )
    return StillPicture(reading.words, at, row, reading.hidden[at], name, likely), alt


def clear_png_of(picture: Picture) -> bytes:
    """Render what is drawn and leave the rest clear, for colours that hold on any page."""
    with style():
        figure = picture.figure()
        figure.set(facecolor="none", dpi=DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = Image.fromarray(np.asarray(canvas.buffer_rgba()))  # type: ignore[no-untyped-call]
    drawn = pixels.crop(pixels.getchannel("A").getbbox())
    small = BytesIO()
    drawn.quantize(256, Image.Quantize.FASTOCTREE).save(small, "png")
    return small.getvalue()


@cache
def _width(word: str) -> float:
    font = FontProperties(family="DejaVu Sans")
    return float(TextPath((0, 0), word, size=SIZE, prop=font).get_extents().width) + 2 * PAD


def _places(words: list[str]) -> list[Place]:
    """Return the left upper corner of each word, in points."""
    places, x, y = [], MARGIN, 24 + ARCS
    for word in words:
        if x + _width(word) > WIDTH - MARGIN:
            x, y = MARGIN, y + ARCS + LINE + NUMBERS
        places.append((x, y))
        x += _width(word) + GAP
    return places


def _draw_box(ax: Axes, corner: Place, width: float, **look: Any) -> None:
    box = FancyBboxPatch(
        corner, width, LINE, boxstyle="round,pad=0,rounding_size=4", **{"linewidth": 0, **look}
    )
    ax.add_patch(box)


def _draw_arc(ax: Axes, start: Place, end: Place, weight: float) -> None:
    x, y = start
    if end[1] == y:
        up, aside = y - min(ARCS, 14 + abs(end[0] - x) / 6) * 4 / 3, 0.15 * (end[0] - x)
        way = [start, (x + aside, up), (end[0] - aside, up), end]
    else:  # between lines, past the number of the word above
        above, below = sorted((start, end), key=lambda place: place[1])
        foot = above[1] + LINE + NUMBERS
        way = [below, (below[0], below[1] - ARCS), (above[0], foot + ARCS), (above[0], foot)]
    arc = PathPatch(
        Path(way, [Path.MOVETO, *[Path.CURVE4] * 3]), facecolor="none", edgecolor=BLUE,
        linewidth=0.8 + 5 * weight, alpha=0.45 + 0.5 * weight, capstyle="round",
    )  # fmt: skip
    ax.add_patch(arc)


def _draw_bars(ax: Axes, words: list[str], likely: dict[str, float], top: float) -> None:
    ax.text(MARGIN, top - 10, f"The next word, after “… {words[-1]}”", fontsize=11, bbox=CHIP)
    for place, (word, chance) in enumerate(likely.items()):
        y = top + BAR * (place + 0.5)
        ax.text(MARGIN + 52, y, word, ha="right", va="center_baseline", fontsize=10, bbox=CHIP)
        ax.barh(y, 300 * chance, height=BAR * 0.6, left=MARGIN + 60, color=BLUE)
        ax.text(
            MARGIN + 66 + 300 * chance, y, f"{chance:.2f}", va="center_baseline", fontsize=9,
            color="0.1", bbox=CHIP,
        )  # fmt: skip


def _mixed(weight: float) -> tuple[float, ...]:
    """Return the ground of a word: the more it is looked at, the bluer."""
    pairs = zip(to_rgb(GROUND), to_rgb(BLUE), strict=True)
    return tuple(ground + 0.5 * weight * (blue - ground) for ground, blue in pairs)
