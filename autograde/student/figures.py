"""The lessons' figures: token heatmaps, what one query attends to, and sliders that redraw.

Text in a figure is drawn as it is written: a token may well be a dollar sign, which would
otherwise start a formula. Every figure is made without pyplot, so that none is shown twice.
"""

import base64
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from html import escape
from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
Limits = tuple[float, float]

# Drawn at 144 dots an inch and shown at the 96 of a web page: sharp on laptop screens.
DPI = 144
SCREEN_DPI = 96

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
    "text.parse_math": False,
}

BLUE, ORANGE = "#0072B2", "#F0A30A"
ONE_SIGN: Colormap = plt.get_cmap("cividis")
# Blue, grey, orange; lightness rises all the way, so that the sign survives without colour.
SIGNED: Colormap = LinearSegmentedColormap.from_list(
    "signed", ["#08245c", "#3670b8", "#b0b3b8", "#f7b24a", "#fff0b0"]
)

MOST_ANNOTATED = 12
SMALLEST_ANNOTATION = 5.5
STAR = "context vector: the sum of weight times value"
GAPS = np.array([1.0, 9.0, 18.0, 30.0, 44.0])  # between a disc and its label, in points
LINE = 11.0  # what a line of labels needs, in points
WHITESPACE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})


def show(figure: Figure, alt: str) -> None:
    """Display a figure as PNG, with `alt` for those who cannot see it, and close it.

    Raises:
        ValueError: alt says nothing.
    """
    _require(alt, "alt")
    _display(_png(figure), alt, alt)


def side_by_side(n: int, *, width: float = 3.2, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A figure with n axes in a row, each about `width` by `height` inches, for `ax=`.

    Heatmaps in it with the same limits need only one colour scale: `bar=ax is axes[-1]`.
    """
    with _style():
        figure = Figure(figsize=(n * width, height), layout="constrained")
        return figure, list(figure.subplots(1, n, squeeze=False)[0])


def heatmap(
    values: Tensor,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    *,
    title: str,
    row_name: str = "query",
    column_name: str = "key",
    ax: Axes | None = None,
    hidden: Tensor | None = None,
    limits: Limits | None = None,
    bar: bool = True,
) -> Figure:
    """A matrix as coloured cells, each with its number where it fits.

    Numbers of one sign go from dark to light; where both signs occur, 0 is grey, less is blue
    and darker, more is orange and lighter. Infinities and nan have no colour.

    Args:
        values: (n, m).
        rows: n labels, None for 0 to n - 1.
        columns: m labels, None for 0 to m - 1.
        ax: where to draw; None makes a figure of its own.
        hidden: (n, m), True for cells to hatch instead: a hidden cell is no small number.
        limits: lowest and highest colour; give the same to heatmaps that are compared.
        bar: whether the colour scale is drawn beside it.

    Raises:
        ValueError: a size does not fit the others.
    """
    numbers = _numbers(values, 2, "values")
    n, m = numbers.shape
    row_names, column_names = _labels(rows, n, "rows"), _labels(columns, m, "columns")
    veil = _mask(hidden, (n, m))
    with _style():
        if ax is None:
            ax = _axes_for(row_names, column_names)
        colours, scale = _colours(numbers[~veil], limits)
        sns.heatmap(
            numbers,
            mask=veil | ~np.isfinite(numbers),
            ax=ax,
            cmap=colours,
            vmin=scale.vmin,
            vmax=scale.vmax,
            square=True,
            cbar=False,
            xticklabels=False,
            yticklabels=False,
            linewidths=0.5 if max(n, m) <= MOST_ANNOTATED else 0,
            linecolor="white",
        )
        _hatch(ax, veil, "////", "0.62")
        if not _annotate(ax, numbers, veil, lambda value: colours(scale(value))):
            _hatch(ax, ~np.isfinite(numbers) & ~veil, "xxxx", "0.35")
        _name_axes(ax, row_names, column_names)
        ax.set(xlabel=column_name, ylabel=row_name)
        ax.set_title(title, wrap=True)
        if bar:
            _bar(ax)
    return _figure_of(ax)


def attention_picture(
    weights_row: Tensor,
    values: Tensor,
    tokens: Sequence[str],
    query: int | str,
    *,
    title: str | None = None,
    widest: float | None = None,
) -> Figure:
    """What one query token attends to, and the context vector it gets from that.

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
    weights, points = _numbers(weights_row, 1, "weights_row"), _numbers(values, 2, "values")
    m = len(weights)
    if points.shape != (m, 2):
        raise ValueError(f"values must be ({m}, 2), one row a weight, not {points.shape}")
    names = _labels(tokens, m, "tokens")
    name = query if isinstance(query, str) else names[query]
    with _style():
        figure = Figure(figsize=(8.2, max(3.6, 1.2 + 0.24 * m)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
        figure.suptitle(title or f"What “{name}” attends to", fontsize=11)
        _weight_bars(left, weights, names, name)
        if widest is not None:
            left.set_xlim(0, 1.2 * widest)
        _value_plane(right, weights, points, names)
    return figure


def explore(
    draw: Callable[..., tuple[Figure, str]], /, *, alt: str, **choices: Sequence[str | float]
) -> None:
    """Display a figure with a slider for each choice; where no widgets run, its first state.

    Args:
        draw: called with one option of every choice by name; gives a figure and its description.
        alt: what the figure is about, for those who cannot see it.
        choices: the options of each slider, at least one.

    Raises:
        ValueError: alt says nothing, or there is nothing to choose.
    """
    if not choices or not all(len(options) for options in choices.values()):
        raise ValueError(f"every choice needs options, there are {choices}")
    _require(alt, "alt")
    figure, description = draw(**{name: options[0] for name, options in choices.items()})
    _require(description, "the description that draw returns")
    png = _png(figure)
    _display(png, alt, description, _panel(draw, choices, png, description))


# What a display is made of


def _style() -> AbstractContextManager[None]:
    """Our look on top of matplotlib's own, whatever the student has set; theirs comes back."""
    return plt.style.context(["default", STYLE])


def _require(text: str, name: str) -> None:
    if not text.strip():
        raise ValueError(f"{name} is empty; say what the figure shows")


def _png(figure: Figure) -> bytes:
    """Render, then close. The same figure gives the same bytes on every run."""
    raw, small = BytesIO(), BytesIO()
    with _style():
        figure.savefig(
            raw,
            format="png",
            dpi=DPI,
            facecolor="white",
            bbox_inches="tight",
            pad_inches=0.06,
            pil_kwargs={"compress_level": 1},
        )
    plt.close(figure)
    # 256 colours are a third of the bytes, and the lossy part cannot be seen.
    palette = Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(small, "png")
    return small.getvalue()


def _screen_width(png: bytes) -> int:
    """The width a page should give this PNG; bytes 16 to 20 hold its pixels."""
    return round(int.from_bytes(png[16:20], "big") * SCREEN_DPI / DPI)


def _display(png: bytes, alt: str, text: str, widget: dict[str, Any] | None = None) -> None:
    data = {"image/png": base64.b64encode(png).decode(), "text/plain": text}
    about = {"image/png": {"alt": alt, "width": _screen_width(png)}}
    display({**(widget or {}), **data}, metadata=about, raw=True)


def _panel(
    draw: Callable[..., tuple[Figure, str]],
    choices: dict[str, Sequence[str | float]],
    png: bytes,
    description: str,
) -> dict[str, Any]:
    """Sliders above the picture above its description, as a MIME bundle."""
    import ipywidgets as widgets

    sliders = {name: _slider(name, options) for name, options in choices.items()}
    picture = widgets.Image(value=png, format="png", width=_screen_width(png))
    picture.layout.max_width = "100%"
    caption = widgets.HTML(_caption(description))

    def redraw(_: object) -> None:
        try:
            figure, said = draw(**{name: slider.value for name, slider in sliders.items()})
            _require(said, "the description that draw returns")
            picture.value = _png(figure)
            picture.width = _screen_width(picture.value)
        except Exception as error:  # a front end shows nobody what a slider's change raises
            said = f"This could not be drawn: {type(error).__name__}: {error}"
        caption.value = _caption(said)

    for slider in sliders.values():
        slider.observe(redraw, "value")
    bundle: dict[str, Any] = widgets.VBox([*sliders.values(), picture, caption])._repr_mimebundle_()
    return bundle


def _slider(name: str, options: Sequence[str | float]) -> Any:
    import ipywidgets as widgets

    shown = [(f"{o:g}" if isinstance(o, float) else str(o), o) for o in options]
    return widgets.SelectionSlider(
        options=shown, description=name, style={"description_width": "initial"}
    )


def _caption(text: str) -> str:
    return f'<p style="max-width: 44em; line-height: 1.4">{escape(text)}</p>'


# What goes in


def _numbers(values: Tensor, dimensions: int, name: str) -> Numbers:
    if values.dim() != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, not {tuple(values.shape)}")
    array: Numbers = values.detach().cpu().double().numpy()
    return array


def _mask(hidden: Tensor | None, shape: tuple[int, int]) -> Mask:
    if hidden is None:
        return np.zeros(shape, bool)
    if tuple(hidden.shape) != shape:
        raise ValueError(f"hidden must be {shape} as the values are, not {tuple(hidden.shape)}")
    mask: Mask = hidden.detach().cpu().bool().numpy()
    return mask


def _labels(given: Sequence[str] | None, n: int, name: str) -> list[str]:
    """The labels, with whitespace made visible where a label is nothing else."""
    if given is None:
        return [str(i) for i in range(n)]
    if len(given) != n:
        raise ValueError(f"{name} must be {n} labels, not {len(given)}")
    return [text if text.strip() else text.translate(WHITESPACE) for text in given]


# Heatmaps


def _axes_for(rows: list[str], columns: list[str]) -> Axes:
    """Axes of their own; the cells are as large in every figure with as many of them."""
    n, m = len(rows), len(columns)
    cell = min(0.62, 5.0 / max(n, m))
    left, right, below, above = 0.5 + 0.08 * max(map(len, rows)), 0.8, 0.8, 0.4
    width, height = m * cell + left + right, n * cell + below + above
    place = (left / width, below / height, m * cell / width, n * cell / height)
    return Figure(figsize=(width, height)).add_axes(place)


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure")
    return figure


def _cell_points(ax: Axes, n: int, m: int) -> float:
    """Roughly the side of a cell, in points; the final layout may not be known yet."""
    box = ax.get_window_extent()
    return float(min(box.width / m, box.height / n)) * 72 / _figure_of(ax).dpi


def _colours(visible: Numbers, limits: Limits | None) -> tuple[Colormap, Normalize]:
    """The colour map and its ends: the limits, or else what the finite numbers span."""
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


def _annotate(
    ax: Axes, numbers: Numbers, veil: Mask, colour: Callable[[float], tuple[float, ...]]
) -> bool:
    """Write every visible number into its cell; False if they do not fit."""
    texts = {(i, j): _short(numbers[i, j]) for i, j in np.argwhere(~veil)}
    longest = max(map(len, texts.values()), default=1)
    size = min(9.5, 1.35 * _cell_points(ax, *numbers.shape) / longest)
    if max(numbers.shape) > MOST_ANNOTATED or size < SMALLEST_ANNOTATION:
        return False
    for (i, j), text in texts.items():
        ink = _ink(colour(numbers[i, j])) if np.isfinite(numbers[i, j]) else "black"
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", size=size, color=ink)
    return True


def _short(value: float) -> str:
    if not abs(value) >= 100:
        return f"{value:z.2f}"
    return f"{value:.0f}" if abs(value) < 1e5 else f"{value:.1e}"


def _ink(background: tuple[float, ...]) -> str:
    """Black or white, whichever has the higher contrast (WCAG): at least 4.5 to 1."""
    channels = np.asarray(background[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "black" if float(linear @ (0.2126, 0.7152, 0.0722)) > 0.179 else "white"


def _across(labels: list[str]) -> float:
    """Roughly the width of the widest label, in points."""
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
    """The colour scale, exactly as high as the cells."""
    inside = ax.inset_axes((1.03, 0, 0.045, 1))
    bar = _figure_of(ax).colorbar(ax.collections[0], cax=inside)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2)


# One query


def _weight_bars(ax: Axes, weights: Numbers, names: list[str], query: str) -> None:
    lengths = np.where(np.isfinite(weights), weights, 0)  # nan has no bar, yet is written
    bars = ax.barh(range(len(weights)), lengths, color=BLUE, height=0.68)
    ax.bar_label(bars, [f"{w:z.4f}" for w in weights], padding=3, size=9)
    ax.set_yticks(range(len(weights)), names)
    ax.invert_yaxis()
    ax.margins(x=0.24)
    ax.set(xlabel=f"weight for query “{query}”", ylabel="key")
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
    _lay_out(_figure_of(ax))
    unit = _figure_of(ax).dpi / 72
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
    """Where a label covers least of what is taken: near its disc, and turned from the star.

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
