"""The picture that is saved with the notebook: what the explorer shows first."""

from dataclasses import dataclass
from functools import cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from attention_course.explorer.reading import Reading
from attention_course.language import VOCABULARY
from autograde.notebook.figures.canvas import style
from autograde.notebook.figures.pictures import Picture

BLUE, GREY = "#0072B2", "0.4"
WIDTH, MARGIN = 590.0, 8.0  # points; the text of a story is as wide as the page of a notebook
SIZE, PAD, GAP = 12.0, 6.0, 5.0
ARCS, NUMBERS, LINE = 40.0, 15.0, 22.0  # heights above, below and of a line of the story
BAR, BARS = 15.0, 5
SHOWN = 0.005
"""A weight below this is 0.00."""


Place = tuple[float, float]


@dataclass(frozen=True, repr=False)
class StillPicture(Picture):
    """A story, what its last word looks at in one head, and the words that may come next."""

    words: list[str]
    row: list[float]
    name: str
    likely: dict[str, float]

    def figure(self) -> Figure:
        places = _places(self.words)
        below = places[-1][1] + LINE + NUMBERS + 30
        height = below + BAR * len(self.likely) + 26
        with style(formulas=False):
            figure = Figure(figsize=(WIDTH / 72, height / 72))
            ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
            ax.set_axis_off()
            ax.text(MARGIN, 12, f"Head {self.name}: what “{self.words[-1]}” looks at", fontsize=11)
            _draw_story(ax, self.words, self.row, places)
            _draw_bars(ax, self.words, self.likely, below)
        return figure


def still_picture(reading: Reading, layer: int, head: int) -> tuple[StillPicture, str]:
    """Return the picture of a story's last word in one head, and the same in words."""
    row, name, last = reading.weights[layer][head][-1], f"{layer + 1}.{head + 1}", reading.words[-1]
    by_chance = sorted(zip(VOCABULARY, reading.chances, strict=True), key=lambda pair: -pair[1])
    likely = dict(by_chance[:BARS])
    most = sorted(range(len(row)), key=lambda j: -row[j])[:4]
    looks = ", ".join(f"{reading.words[j]} {row[j]:.2f}" for j in most if row[j] >= SHOWN)
    alt = (
        f"The story “{' '.join(reading.words)}”. In head {name} the word {last} looks at {looks}. "
        f"Next may come {', '.join(f'{word} {chance:.2f}' for word, chance in likely.items())}."
    )
    return StillPicture(reading.words, row, name, likely), alt


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


def _draw_story(ax: Axes, words: list[str], row: list[float], places: list[Place]) -> None:
    middle = [(x + _width(word) / 2, y) for word, (x, y) in zip(words, places, strict=True)]
    for word, weight, (x, y), (center, _) in zip(words, row, places, middle, strict=True):
        box = FancyBboxPatch(
            (x, y), _width(word), LINE, boxstyle="round,pad=0,rounding_size=4",
            facecolor=(*_rgb(BLUE), 0.45 * weight), edgecolor="none",
        )  # fmt: skip
        ax.add_patch(box)
        ax.text(center, y + LINE / 2, word, ha="center", va="center_baseline", fontsize=SIZE)
        if weight >= SHOWN:
            bold = "bold" if weight == max(row) else "normal"
            ax.text(
                center, y + LINE + 11, f"{weight:.2f}", ha="center", fontsize=9, color=BLUE,
                fontweight=bold,
            )  # fmt: skip
    x, y = places[-1]
    last = FancyBboxPatch(
        (x, y), _width(words[-1]), LINE, boxstyle="round,pad=0,rounding_size=4",
        facecolor="none", edgecolor=BLUE, linewidth=2,
    )  # fmt: skip
    ax.add_patch(last)
    for weight, end in zip(row[:-1], middle[:-1], strict=True):
        if weight >= 0.01:
            _draw_arc(ax, middle[-1], end, weight)


def _draw_arc(ax: Axes, start: Place, end: Place, weight: float) -> None:
    x, y = start
    if end[1] == y:
        up, aside = y - min(ARCS, 14 + abs(end[0] - x) / 6) * 4 / 3, 0.15 * (end[0] - x)
        way = [start, (x + aside, up), (end[0] - aside, up), end]
    else:  # from the line below, past the number of the word it ends at
        end = end[0], end[1] + LINE + NUMBERS
        way = [start, (x, y - ARCS), (end[0], end[1] + ARCS), end]
    arc = PathPatch(
        Path(way, [Path.MOVETO, *[Path.CURVE4] * 3]), facecolor="none", edgecolor=BLUE,
        linewidth=0.8 + 5 * weight, alpha=0.25 + 0.7 * weight, capstyle="round",
    )  # fmt: skip
    ax.add_patch(arc)


def _draw_bars(ax: Axes, words: list[str], likely: dict[str, float], top: float) -> None:
    ax.text(MARGIN, top - 10, f"The next word, after “… {words[-1]}”", fontsize=11)
    for place, (word, chance) in enumerate(likely.items()):
        y = top + BAR * (place + 0.5)
        ax.text(MARGIN + 52, y, word, ha="right", va="center_baseline", fontsize=10)
        ax.barh(y, 300 * chance, height=BAR * 0.7, left=MARGIN + 60, color=BLUE)
        ax.text(
            MARGIN + 66 + 300 * chance, y, f"{chance:.2f}", va="center_baseline", fontsize=9,
            color="0.1",
        )  # fmt: skip
    ax.text(
        MARGIN, top + BAR * len(likely) + 16, "A still picture. Run the cell to press words and to "
        "change heads.", fontsize=8.5, color=GREY,
    )  # fmt: skip


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
