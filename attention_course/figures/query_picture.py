"""A picture of the mechanism: a query asks, keys answer, values are added to the word's vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from attention_course.figures.heatmaps import Numbers, labels_of, numbers_of
from autograde.notebook.figures.canvas import Picture, style

BLUE, ORANGE, INK, GREY = "#0072B2", "#C4650A", "0.1", "0.4"
COLOURS = "PuOr"  # of the numbers in a vector: below 0, around 0, above 0
LABELS, COLUMN, STRIP = 96.0, 46.0, 17.0  # points: the names at the left, a word, a vector
HEIGHT, BARS = 66.0, 40.0  # of a vector, of a weight of 1
KEYS, SCORES, WEIGHTS, VALUES = 62.0, 146.0, 212.0, 248.0  # from the top; of weights, the foot
SIZE = 9.5


@dataclass(frozen=True, repr=False)
class QueryPicture(Picture):
    """One query, the keys it asks, and the values it is answered with; see `attention_picture`."""

    names: list[str]
    query: Numbers
    keys: Numbers
    scores: Numbers
    weights: Numbers
    values: Numbers

    def figure(self) -> Figure:
        width, height = LABELS + COLUMN * (len(self.names) + 2.1), VALUES + HEIGHT + 44
        with style(formulas=False):
            figure = Figure(figsize=(width / 72, height / 72))
            ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
            ax.set_axis_off()
            self._name_rows(ax)
            self._draw_words(ax)
            self._draw_asking(ax)
            self._draw_answer(ax)
        return figure

    def _shares(self) -> list[float]:
        """Return the weights as widths: what is no share is drawn as the nearest one, nan as 0."""
        return [float(share) for share in np.nan_to_num(self.weights).clip(0, 1)]

    def _column(self, place: int) -> float:
        """Return the middle of a word; past the last word stands the one that asks."""
        aside = 0.6 if place == len(self.names) else 0
        return LABELS + COLUMN * (place + 0.5 + aside)

    def _name_rows(self, ax: Axes) -> None:
        rows = (
            (KEYS + HEIGHT / 2, "key"),
            (SCORES, "score / √d_k"),
            (WEIGHTS - BARS / 2, "weight"),
            (VALUES + HEIGHT / 2, "value"),
        )
        said = ("", "score: query · key", "softmax of that row", "what is handed on")
        for (y, name), more in zip(rows, said, strict=True):
            _write(ax, 2, y - 6 * bool(more), name, ha="left", weight="bold", color=INK)
            _write(ax, 2, y + 6, more, ha="left", color=GREY, size=8)

    def _draw_words(self, ax: Axes) -> None:
        furthest = _furthest(np.vstack([self.keys, self.query])), _furthest(self.values)
        most, size = int(np.argmax(self.weights)), min(10.5, 66 / max(map(len, self.names)))
        for place, (name, weight) in enumerate(zip(self.names, self._shares(), strict=True)):
            x = self._column(place)
            bold = "bold" if place == most else "normal"
            _write(ax, x, KEYS - 12, name, size=size, weight=bold)
            _strip(ax, x, KEYS, self.keys[place], furthest[0])
            _write(ax, x, SCORES, f"{self.scores[place]:z.1f}", weight=bold)
            bar = Rectangle((x - STRIP / 2, WEIGHTS), STRIP, -BARS * weight, color=BLUE)
            ax.add_patch(bar)
            said = f"{self.weights[place]:z.2f}"
            _write(ax, x, WEIGHTS + 9, said, color=BLUE, weight=bold)
            _strip(ax, x, VALUES, self.values[place], furthest[1], shown=0.15 + 0.85 * weight)
        context = self.weights @ self.values
        _strip(ax, self._column(len(self.names)), KEYS, self.query, furthest[0], edge=ORANGE)
        _strip(ax, self._column(len(self.names)), VALUES, context, furthest[1], edge=ORANGE)

    def _draw_asking(self, ax: Axes) -> None:
        """Draw an arc from the query to each key, as wide as the weight that it gets there."""
        x, asks = self._column(len(self.names)), self.names[-1]
        _write(ax, x, KEYS - 24, f"“{asks}” asks", color=ORANGE, weight="bold", size=10.5)
        _write(ax, x, KEYS - 12, "query", color=ORANGE)
        for place, weight in enumerate(self._shares()):
            end = self._column(place), KEYS - 22
            bend = 0.06 + 0.02 * (len(self.names) - place) / len(self.names)
            arc = FancyArrowPatch(
                (x - 34, KEYS - 28), end, connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>", mutation_scale=6 + 5 * weight, color=ORANGE,
                linewidth=0.6 + 3 * weight, alpha=0.3 + 0.7 * weight, shrinkA=0, shrinkB=0,
            )  # fmt: skip
            ax.add_patch(arc)

    def _draw_answer(self, ax: Axes) -> None:
        """Draw a line from each value to the context vector, as wide as its weight."""
        x, foot = self._column(len(self.names)), VALUES + HEIGHT
        for place, weight in enumerate(self._shares()):
            start = self._column(place), foot + 2
            flow = FancyArrowPatch(
                start, (x - STRIP / 2 - 3, foot - 8), arrowstyle="-",
                connectionstyle="arc3,rad=0.12", color=BLUE,
                linewidth=0.5 + 6 * weight, alpha=0.2 + 0.7 * weight, shrinkA=0, shrinkB=0,
            )  # fmt: skip
            ax.add_patch(flow)
        _write(ax, x, VALUES - 12, "context vector", color=ORANGE)
        _write(ax, x, foot + 12, "is added to", color=ORANGE)
        _write(ax, x, foot + 24, f"the vector of “{self.names[-1]}”", color=ORANGE)


def attention_picture(
    tokens: Sequence[str],
    query: Tensor,
    keys: Tensor,
    scores: Tensor,
    weights: Tensor,
    values: Tensor,
) -> QueryPicture:
    """Return a picture of what the last token asks, and what it is answered.

    Every vector is a strip of colours. The sum of weight times value is drawn as it comes out.

    Args:
        tokens: m labels.
        query: (d_k,), of the last token.
        keys: (m, d_k).
        scores: (m,), of this query.
        weights: (m,), of this query.
        values: (m, d_v).

    Raises:
        ValueError: a size does not fit the others.
    """
    m = len(tokens)
    rows = {"keys": keys, "scores": scores, "weights": weights, "values": values}
    for name, given in rows.items():
        if len(given) != m:
            raise ValueError(f"{name} must be {m}, one for each token, not {len(given)}")
    if keys.shape[1:] != query.shape:
        raise ValueError(f"a key has {keys.shape[1]} numbers, the query {tuple(query.shape)}")
    return QueryPicture(
        labels_of(tokens, m, "tokens"),
        numbers_of(query, 1, "query"),
        numbers_of(keys, 2, "keys"),
        numbers_of(scores, 1, "scores"),
        numbers_of(weights, 1, "weights"),
        numbers_of(values, 2, "values"),
    )


def _strip(
    ax: Axes, x: float, top: float, vector: Numbers, furthest: float, shown: float = 1.0,
    edge: str = "0.5",
) -> None:  # fmt: skip
    """Draw a vector as a column of coloured cells."""
    corners = (x - STRIP / 2, x + STRIP / 2, top + HEIGHT, top)
    ax.imshow(
        vector[:, None], COLOURS, vmin=-furthest, vmax=furthest, extent=corners, aspect="auto",
        alpha=shown, interpolation="nearest",
    )  # fmt: skip
    frame = Rectangle(
        (x - STRIP / 2, top), STRIP, HEIGHT, fill=False, edgecolor=edge, linewidth=0.8,
        alpha=max(shown, 0.4),
    )  # fmt: skip
    ax.add_patch(frame)


def _furthest(numbers: Numbers) -> float:
    """Return how far from 0 the scale of the colours reaches."""
    return float(np.abs(np.nan_to_num(numbers)).max()) or 1.0


def _write(ax: Axes, x: float, y: float, text: str, **look: Any) -> None:
    ax.text(x, y, text, **{"ha": "center", "va": "center", "size": SIZE, **look})
