"""A picture of one query: its weights, and the context vector among the values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from torch import Tensor

from autograde.notebook.figures.canvas import Numbers, figure_of, labels_of, numbers_of, style
from autograde.notebook.figures.pictures import Picture

BLUE, ORANGE = "#0072B2", "#F0A30A"
STAR = "context vector: the sum of weight times value"
GAPS = np.array([1.0, 9.0, 18.0, 30.0, 44.0])  # between a disc and its label, in points


@dataclass(frozen=True, repr=False)
class QueryPicture(Picture):
    """The weights of one query, and its context vector; see `attention_picture`."""

    weights: Numbers
    values: Numbers
    names: list[str]
    query: str
    title: str
    widest: float | None

    def figure(self) -> Figure:
        with style(formulas=False):
            height = max(3.6, 1.2 + 0.24 * len(self.weights))
            figure = Figure(figsize=(8.2, height), layout="constrained")
            left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
            figure.suptitle(self.title, fontsize=11)
            _weight_bars(left, self.weights, self.names, self.query)
            if self.widest is not None:
                left.set_xlim(0, 1.2 * self.widest)
            _value_plane(right, self.weights, self.values, self.names)
        return figure


def attention_picture(
    weights_row: Tensor,
    values: Tensor,
    tokens: Sequence[str],
    query: int | str,
    *,
    widest: float | None = None,
) -> QueryPicture:
    """Return a picture of what one query attends to, and the context vector it gets from that.

    Left, its weights. Right, the value vectors as discs whose area is the weight; the star is
    the sum of weight times value, each line to it as wide as the weight.

    Args:
        weights_row: (m,), the query's row of the attention weights.
        values: (m, 2).
        tokens: m labels of the keys.
        query: its index in `tokens`, or its text where it is not one of them.
        widest: the weight at which the bars' axis ends, so that several pictures can be compared.

    Raises:
        ValueError: a size does not fit the others, or a value does not have two numbers.
    """
    weights, points = numbers_of(weights_row, 1, "weights_row"), numbers_of(values, 2, "values")
    m = len(weights)
    if points.shape != (m, 2):
        raise ValueError(f"values must be ({m}, 2), one row a weight, not {points.shape}")
    names = labels_of(tokens, m, "tokens")
    name = query if isinstance(query, str) else names[query]
    title = f"What “{name}” attends to"
    return QueryPicture(weights, points, names, name, title, widest)


def _weight_bars(ax: Axes, weights: Numbers, names: list[str], query: str) -> None:
    lengths = np.where(np.isfinite(weights), weights, 0)  # nan has no bar, yet is written
    bars = ax.barh(range(len(weights)), lengths, color=BLUE, height=0.68)
    ax.bar_label(bars, [f"{w:z.4f}" for w in weights], padding=3, size=9)
    ax.set_yticks(range(len(weights)), names)
    ax.invert_yaxis()
    ax.margins(x=0.24)
    ax.set(xlabel=f"weight for query “{query}”", ylabel="key", xticks=[])  # the bars say how much
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _value_plane(ax: Axes, weights: Numbers, points: Numbers, names: list[str]) -> None:
    shares = np.nan_to_num(weights).clip(0, 1)
    context = weights @ points  # nan where a weight is, and then no star is drawn
    for share, point in zip(shares, points, strict=True):
        ax.plot(*zip(point, context, strict=True), color="0.6", linewidth=7 * share, zorder=1)
    areas = 1600 * shares
    for i in np.argsort(-areas, kind="stable"):  # a small disc lies on top of a large one
        x, y = points[i]
        ax.scatter(x, y, s=areas[i], color=BLUE, edgecolor="white", linewidth=0.8, zorder=2)
        ax.scatter(x, y, s=5, color=BLUE, zorder=3)  # a weight of 0 has a place as well
    x, y = context
    ax.scatter(x, y, s=330, marker="*", color=ORANGE, edgecolor="black", zorder=4, label=STAR)
    ax.margins(0.16)
    ax.set(xlabel="value, first number", ylabel="value, second number")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9.5)
    _label_points(ax, points, np.sqrt(areas / np.pi), names, np.nan_to_num(context))


def _label_points(
    ax: Axes, points: Numbers, radii: Numbers, names: list[str], context: Numbers
) -> None:
    """Put each name beside its disc where it covers least; a line leads to it from afar.

    Args:
        points: (m, 2), in the numbers of the axes.
        radii: (m,), of the discs, in points (1/72 inch).
        context: (2,), the star, which labels avoid as well.
    """
    _lay_out(figure_of(ax))
    unit = figure_of(ax).dpi / 72
    centres = ax.transData.transform(np.vstack([points, context])) / unit
    reach = np.append(radii.clip(3), 11.0)[:, None]
    taken = np.hstack([centres - reach, centres + reach])
    frame = np.array(ax.get_window_extent().extents) / unit
    for centre, radius, point, name in zip(centres, reach, points, names, strict=False):
        note = _note(ax, name, point)
        size = np.array(Text.get_window_extent(note).size) / unit + 2  # without the line to it
        place, gap = _free_place(centre, float(radius[0]), size, taken, frame, centres[-1])
        note.set_position((float(place[0] - centre[0]), float(place[1] - centre[1])))
        if note.arrow_patch:
            note.arrow_patch.set_visible(gap > GAPS[0])
        taken = np.vstack([taken, np.hstack([place - size / 2, place + size / 2])])


def _lay_out(figure: Figure) -> None:
    """Settle where the axes are, for good: only then is it known where their points lie."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def _note(ax: Axes, name: str, point: Numbers) -> Annotation:
    note = ax.annotate(
        name,
        (float(point[0]), float(point[1])),
        (0, 0),
        textcoords="offset points",
        ha="center",
        va="center",
        zorder=5,
        arrowprops={"arrowstyle": "-", "color": "0.3", "linewidth": 0.8, "shrinkB": 0},
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )
    note.set_in_layout(False)
    return note


def _free_place(
    centre: Numbers, radius: float, size: Numbers, taken: Numbers, frame: Numbers, star: Numbers
) -> tuple[Numbers, float]:
    """Find where a label covers least of what is taken: near its disc, and turned from the star.

    Args:
        centre: (2,) of the disc.
        size: (2,) of the label.
        taken: (k, 4), boxes: left, bottom, right, top.
        frame: (4,), the box of the axes.
        star: (2,), where the lines from all discs meet.

    Returns:
        The label's middle (2,) and the gap between the two.
    """
    angles = np.arange(16) * np.pi / 8
    ways = np.tile(np.stack([np.cos(angles), np.sin(angles)], axis=1), (len(GAPS), 1))
    far = np.repeat(GAPS, len(angles))
    middles = centre + ways * (radius + far[:, None] + size / 2)
    boxes = np.hstack([middles - size / 2, middles + size / 2])
    shared = np.minimum(boxes[:, None, 2:], taken[:, 2:])
    shared -= np.maximum(boxes[:, None, :2], taken[:, :2])
    covered = shared.clip(0).prod(axis=2).sum(axis=1)
    outside = (frame[:2] - boxes[:, :2]).clip(0) + (boxes[:, 2:] - frame[2:]).clip(0)
    inward = ways @ (star - centre) / (np.linalg.norm(star - centre) + 1)
    best = int(np.argmin(covered + 50 * outside.sum(axis=1) + far + 5 * inward))
    return middles[best], float(far[best])
