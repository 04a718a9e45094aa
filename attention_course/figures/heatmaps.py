"""Token heatmaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from autograde.notebook.figures.canvas import Picture, style

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
Limits = tuple[float, float]

# A high number is far from the page's own colour, on a dark page too, where figures are inverted.
ONE_SIGN: Colormap = LinearSegmentedColormap.from_list(
    "one sign", ["#e4eef7", "#93bfe2", "#1d7fc4", "#08245c"]
)
# Orange, grey, blue; lightness falls all the way, so that the sign survives without colour.
SIGNED: Colormap = LinearSegmentedColormap.from_list(
    "signed", ["#fff0b0", "#f7b24a", "#b0b3b8", "#3670b8", "#08245c"]
)
MOST_ANNOTATED = 12
SMALLEST_ANNOTATION = 5.5
WHITESPACE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})
LINE = 11.0  # what a line of labels needs, in points


@dataclass(frozen=True, repr=False)
class Heatmap(Picture):
    """A matrix as coloured cells; see `heatmap`."""

    numbers: Numbers
    rows: list[str]
    columns: list[str]
    veil: Mask
    title: str
    limits: Limits | None
    bar: bool

    def figure(self) -> Figure:
        """Draw it alone, in a figure that pyplot does not know."""
        with style(formulas=False):
            figure = _figure_for(self.rows, self.columns)
            self.on(figure.axes[0])
        return figure

    def on(self, ax: Axes) -> None:
        """Draw it on these axes, beside what else their figure shows."""
        numbers, veil = self.numbers, self.veil
        n, m = numbers.shape
        with style(formulas=False):
            colours, scale = _colours(numbers[~veil], self.limits)
            ax.pcolormesh(
                np.ma.masked_array(numbers, mask=veil | ~np.isfinite(numbers)),
                cmap=colours,
                norm=scale,
                linewidth=0.5 if max(n, m) <= MOST_ANNOTATED else 0,
                edgecolor="white",
            )
            ax.set(xlim=(0, m), ylim=(n, 0), aspect="equal")
            ax.spines[:].set_visible(False)
            _hatch(ax, veil, "////", "0.62")
            if not _annotate(ax, numbers, veil, colours(scale(numbers))):
                _hatch(ax, ~np.isfinite(numbers) & ~veil, "xxxx", "0.35")
            _name_axes(ax, self.rows, self.columns)
            ax.set(xlabel="key", ylabel="query")
            ax.set_title(self.title, wrap=True, y=1)  # without y its place is searched for, slowly
            if self.bar:
                _bar(ax)


@dataclass(frozen=True, repr=False)
class Panels(Picture):
    """Heatmaps side by side; see `panels`."""

    heatmaps: tuple[Heatmap, ...]
    size: tuple[float, float]

    def figure(self) -> Figure:
        widths = [len(each.columns) for each in self.heatmaps]
        with style(formulas=False):
            figure = Figure(figsize=self.size, layout="constrained")
            grid = figure.add_gridspec(1, len(widths), width_ratios=widths)
            for i, each in enumerate(self.heatmaps):
                each.on(figure.add_subplot(grid[i]))
        return figure


def heatmap(
    values: Tensor,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    *,
    title: str,
    hidden: Tensor | None = None,
    limits: Limits | None = None,
    bar: bool = True,
) -> Heatmap:
    """Return a matrix as coloured cells, each with its number where it fits.

    Numbers of one sign go from light to dark; where both signs occur, 0 is grey, less is orange
    and lighter, more is blue and darker. Infinities and nan have no colour.

    Args:
        values: (n, m).
        rows: n labels, None for 0 to n - 1.
        columns: m labels, None for 0 to m - 1.
        hidden: (n, m), True for cells to hatch instead: a hidden cell is no small number.
        limits: lowest and highest colour; give the same to heatmaps that are compared.
        bar: whether the colour scale is drawn beside it.

    Raises:
        ValueError: a size does not fit the others.
    """
    numbers = numbers_of(values, 2, "values")
    n, m = numbers.shape
    veil = np.zeros((n, m), bool) if hidden is None else hidden.detach().cpu().bool().numpy().copy()
    if veil.shape != (n, m):
        raise ValueError(f"hidden must be {(n, m)} as the values are, not {veil.shape}")
    return Heatmap(
        numbers,
        labels_of(rows, n, "rows"),
        labels_of(columns, m, "columns"),
        veil,
        title,
        limits,
        bar,
    )


def numbers_of(values: Tensor, dimensions: int, name: str) -> Numbers:
    if values.dim() != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, not {tuple(values.shape)}")
    array: Numbers = values.detach().cpu().double().numpy().copy()
    return array


def labels_of(given: Sequence[str] | None, n: int, name: str) -> list[str]:
    """Return the labels, with whitespace made visible where a label is nothing else."""
    if given is None:
        return [str(i) for i in range(n)]
    if len(given) != n:
        raise ValueError(f"{name} must be {n} labels, not {len(given)}")
    return [text if text.strip() else text.translate(WHITESPACE) for text in given]


def panels(*heatmaps: Heatmap, size: tuple[float, float]) -> Panels:
    """Return heatmaps side by side in one picture; cells are about as large in all of them.

    Args:
        size: width and height of the picture in inches.

    Raises:
        ValueError: there is none.
    """
    if not heatmaps:
        raise ValueError("panels needs at least one heatmap, there is none")
    return Panels(heatmaps, size)


def _figure_for(rows: list[str], columns: list[str]) -> Figure:
    """Return a figure with empty axes; as many cells are as large in every figure."""
    n, m = len(rows), len(columns)
    cell = min(0.62, 5.0 / max(n, m))
    left, right, below, above = 0.5 + 0.08 * max(map(len, rows)), 0.8, 0.8, 0.4
    width, height = m * cell + left + right, n * cell + below + above
    place = (left / width, below / height, m * cell / width, n * cell / height)
    figure = Figure(figsize=(width, height))
    figure.add_axes(place)
    return figure


def _cell_points(ax: Axes, n: int, m: int) -> float:
    """Return roughly the side of a cell, in points; the final layout may not be known yet."""
    box = ax.get_window_extent()
    return float(min(box.width / m, box.height / n)) * 72 / ax.figure.dpi


def _colours(visible: Numbers, limits: Limits | None) -> tuple[Colormap, Normalize]:
    """Return the colour map and its ends: the limits, or else the range of the finite numbers."""
    finite = visible[np.isfinite(visible)]
    if limits is None:
        limits = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = limits
    if low < 0 < high:
        end = max(-low, high)
        return SIGNED, Normalize(-end, end)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return ONE_SIGN, Normalize(low, high)


def _hatch(ax: Axes, cells: Mask, pattern: str, colour: str) -> None:
    if cells.any():
        face = np.ma.masked_array(np.zeros(cells.shape), mask=~cells)
        white = ListedColormap(["white"])
        ax.pcolor(face, cmap=white, hatch=pattern, edgecolor=colour, linewidth=0)


def _annotate(ax: Axes, numbers: Numbers, veil: Mask, backgrounds: Numbers) -> bool:
    """Write every visible number into its cell; return False if they do not fit.

    Args:
        backgrounds: the colours of the cells, (n, m, 4).
    """
    texts = {(i, j): _short(numbers[i, j]) for i, j in np.argwhere(~veil)}
    longest = max(map(len, texts.values()), default=1)
    size = min(9.5, 1.35 * _cell_points(ax, *numbers.shape) / longest)
    if max(numbers.shape) > MOST_ANNOTATED or size < SMALLEST_ANNOTATION:
        return False
    light = _is_light(backgrounds) | ~np.isfinite(numbers)
    # the layout need not measure what lies inside the cells
    look: dict[str, Any] = {"ha": "center", "va": "center", "size": size, "in_layout": False}
    for (i, j), text in texts.items():
        ax.text(j + 0.5, i + 0.5, text, color="black" if light[i, j] else "white", **look)
    return True


def _short(value: float) -> str:
    if not abs(value) >= 100:
        return f"{value:z.2f}"
    return f"{value:.0f}" if abs(value) < 1e5 else f"{value:.1e}"


def _is_light(colours: Numbers) -> Mask:
    """Return where black has a higher contrast than white (WCAG), at least 4.5 to 1."""
    channels = colours[..., :3]
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    light: Mask = linear @ np.array([0.2126, 0.7152, 0.0722]) > 0.179
    return light


def _across(labels: list[str]) -> float:
    """Return roughly the width of the widest label, in points."""
    return 5.6 * max(map(len, labels)) + 3


def _name_axes(ax: Axes, rows: list[str], columns: list[str]) -> None:
    """Label the cells, every second or third one where they are too small for all."""
    cell = _cell_points(ax, len(rows), len(columns))
    step = int(np.ceil(LINE / cell))
    ax.set_yticks(np.arange(0, len(rows), step) + 0.5, rows[::step], rotation=0)
    # Words turn sideways before any is left out; short labels and indices stay upright.
    across = _across(columns)
    step = int(np.ceil((across if across < 2 * LINE + 1 else LINE) / cell))
    slanted = across > step * cell
    ax.set_xticks(
        np.arange(0, len(columns), step) + 0.5,
        columns[::step],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else None,
    )
    ax.tick_params(length=0, pad=3)


def _bar(ax: Axes) -> None:
    """Draw the colour scale, exactly as high as the cells."""
    inside = ax.inset_axes((1.03, 0, 0.045, 1))
    bar = ax.figure.colorbar(ax.collections[0], cax=inside)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2)
