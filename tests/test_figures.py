"""Figures: what they show, to whom, and that they come out the same every time."""

import base64
import struct
from collections.abc import Callable
from io import BytesIO
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from displays import displayed, png_of
from IPython.utils.capture import capture_output
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Text
from PIL import Image
from torch import Tensor

from attention_course import attention_picture, heatmap, panels, show, show_live
from attention_course.figures import heatmaps
from attention_course.figures import query_picture as query
from autograde.notebook.figures import canvas
from autograde.notebook.figures.canvas import Picture

TOKENS = ["Your", "journey", "starts", "with", "one", "step"]
WEIGHTS = torch.tensor(
    [
        [0.1921, 0.1646, 0.1652, 0.1550, 0.1721, 0.1510],
        [0.2041, 0.1659, 0.1662, 0.1496, 0.1665, 0.1477],
        [0.2036, 0.1659, 0.1662, 0.1498, 0.1664, 0.1480],
        [0.1869, 0.1667, 0.1668, 0.1571, 0.1661, 0.1564],
        [0.1830, 0.1669, 0.1670, 0.1588, 0.1658, 0.1585],
        [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
    ]
)
SCORES = torch.linspace(-2, 3, 36).reshape(6, 6)
FUTURE = torch.ones(6, 6).triu(1).bool()
VALUES = torch.tensor(
    [[0.76, 0.28], [0.40, 0.35], [0.41, 0.35], [0.74, 0.63], [0.36, 0.86], [0.74, 0.01]]
)
KEYS = torch.linspace(-1, 2, 12).reshape(6, 2)


def weights_picture() -> Picture:
    return heatmap(WEIGHTS, TOKENS, TOKENS, title="Attention weights")


def causal_picture() -> Picture:
    return heatmap(WEIGHTS, TOKENS, TOKENS, title="Causal weights", hidden=FUTURE)


def scores_picture() -> Picture:
    return heatmap(SCORES, TOKENS, TOKENS, title="Scores")


def large_picture() -> Picture:
    return heatmap(torch.linspace(0, 1, 400).reshape(20, 20), None, None, title="Large")


def row_of_two() -> Picture:
    return panels(
        heatmap(WEIGHTS, TOKENS, TOKENS, title="one", limits=(0, 1), bar=False),
        heatmap(WEIGHTS, TOKENS, TOKENS, title="two", limits=(0, 1)),
        size=(6.4, 3.2),
    )


def query_picture(**other: Any) -> Picture:
    given = {
        "tokens": TOKENS, "query": KEYS[-1], "keys": KEYS, "scores": SCORES[-1],
        "weights": WEIGHTS[-1], "values": VALUES,
    }  # fmt: skip
    return attention_picture(**given | other)


EVERY_PICTURE = [
    weights_picture, causal_picture, scores_picture, large_picture, row_of_two, query_picture
]  # fmt: skip


def chunks(png: bytes) -> set[str]:
    names, at = set(), 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        names.add(png[at + 4 : at + 8].decode())
        at += length + 12
    return names


def cell_texts(figure: Figure) -> dict[tuple[int, int], Text]:
    """What is written into the cells of a heatmap, by row and column."""
    return {(int(t.get_position()[1]), int(t.get_position()[0])): t for t in figure.axes[0].texts}


def lightness(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance (WCAG) of sRGB colours (..., 3)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


# show


@pytest.mark.usefixtures("shell")
def test_a_figure_is_displayed_once_with_its_text_alternative() -> None:
    data, about = displayed(lambda: show(weights_picture(), "six rows of nearly equal weights"))
    assert data["text/plain"] == "six rows of nearly equal weights"
    assert about["image/png"]["alt"] == "six rows of nearly equal weights"
    image = Image.open(BytesIO(base64.b64decode(data["image/png"])))
    assert set(data) == {"image/png", "text/plain"}
    assert about["image/png"]["width"] == pytest.approx(image.width / 1.5, abs=1)


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_figure_without_text_alternative_is_refused(alt: str) -> None:
    with capture_output() as captured, pytest.raises(ValueError, match="alt is empty"):
        show(weights_picture(), alt)
    assert not captured.outputs


@pytest.mark.usefixtures("shell")
def test_a_live_figure_is_drawn_anew_in_its_place() -> None:
    with capture_output() as captured:
        draw = show_live("the loss, as it falls")
        draw(weights_picture())
        draw(causal_picture())
    first, *drawn = captured.outputs
    assert first.data == {"text/plain": "the loss, as it falls"}
    assert [set(one.data) for one in drawn] == [{"image/png", "text/plain"}] * 2
    assert drawn[0].data["image/png"] != drawn[1].data["image/png"]
    assert [one.update for one in captured.outputs] == [False, True, True]
    assert len({one.transient["display_id"] for one in captured.outputs}) == 1


@pytest.mark.usefixtures("shell")
def test_a_figure_of_pyplot_is_closed() -> None:
    before = plt.get_fignums()
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    displayed(lambda: show(figure, "a line"))
    assert plt.get_fignums() == before


@pytest.mark.parametrize("make", EVERY_PICTURE)
def test_our_figures_are_unknown_to_pyplot(make: Callable[[], Picture]) -> None:
    before = plt.get_fignums()
    make().figure()
    assert plt.get_fignums() == before


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("make", EVERY_PICTURE)
def test_the_same_figure_is_the_same_bytes(make: Callable[[], Picture]) -> None:
    png = png_of(make())
    with plt.rc_context({"font.size": 20, "axes.facecolor": "black", "savefig.bbox": "standard"}):
        assert png_of(make()) == png
    assert chunks(png) <= {"IHDR", "PLTE", "IDAT", "IEND"}, "no date, no version"
    assert len(png) < 60_000


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("make", EVERY_PICTURE)
def test_a_figure_brings_its_own_light_ground_for_pages_that_are_dark(
    make: Callable[[], Picture],
) -> None:
    image = Image.open(BytesIO(png_of(make())))
    assert not image.has_transparency_data
    pixels = np.asarray(image.convert("RGB"))
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert all((edge == 255).all() for edge in edges)


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("place", np.linspace(0.7, 1.02, 9))
def test_what_sticks_out_is_drawn_whole(place: float) -> None:
    def width(x: float) -> int:
        figure = Figure(figsize=(3, 1))
        figure.text(x, 0.5, "one two")
        return Image.open(BytesIO(png_of(figure))).width

    assert abs(width(place) - width(0.3)) <= 2


@pytest.mark.usefixtures("shell")
def test_the_students_settings_stay() -> None:
    with plt.rc_context({"font.size": 21}):
        before = dict(plt.rcParams)
        for make in EVERY_PICTURE:
            png_of(make())
        assert dict(plt.rcParams) == before


# heatmap


def test_axes_and_cells_are_named() -> None:
    figure = heatmap(WEIGHTS[:2], ["le", "chat"], TOKENS, title="Cross-attention").figure()
    ax = figure.axes[0]
    assert (ax.get_title(), ax.get_ylabel(), ax.get_xlabel()) == (
        "Cross-attention", "query", "key",
    )  # fmt: skip
    assert [t.get_text() for t in ax.get_yticklabels()] == ["le", "chat"]
    assert [t.get_text() for t in ax.get_xticklabels()] == TOKENS
    assert cell_texts(figure)[0, 5].get_text() == "0.15"
    assert cell_texts(figure)[1, 0].get_text() == "0.20"


def test_row_0_is_at_the_top() -> None:
    ax = weights_picture().figure().axes[0]
    assert ax.transData.transform((0, 0.5))[1] > ax.transData.transform((0, 5.5))[1]


def test_a_token_is_never_read_as_a_formula() -> None:
    figure = heatmap(torch.eye(2), ["$a$", " "], ["$5", "$6"], title="$x$").figure()
    first, blank = figure.axes[0].get_yticklabels()
    assert first.get_text() == "$a$"
    assert not first.get_parse_math()
    assert blank.get_text().strip(), "a label of whitespace alone cannot be seen"


def test_hidden_cells_are_hatched_and_carry_no_number() -> None:
    figure = causal_picture().figure()
    assert set(cell_texts(figure)) == {(i, j) for i in range(6) for j in range(i + 1)}
    coloured, hatched = figure.axes[0].collections
    assert coloured.get_array().count() == 21
    assert hatched.get_hatch()
    assert hatched.get_array().count() == 15


def test_hidden_cells_do_not_stretch_the_colours() -> None:
    values = WEIGHTS.masked_fill(FUTURE, 50.0)
    figure = heatmap(values, None, None, title="Weights", hidden=FUTURE).figure()
    assert figure.axes[0].collections[0].norm.vmax == pytest.approx(0.2041)


@pytest.mark.usefixtures("shell")
def test_a_hidden_cell_and_a_small_weight_differ_in_grey() -> None:
    values, hidden = torch.tensor([[0.0, 1.0, 0.5]]), torch.tensor([[False, False, True]])
    figure = heatmap(values, None, None, title="", hidden=hidden, bar=False)
    grey = np.asarray(Image.open(BytesIO(png_of(figure))).convert("L"))
    row = grey[grey.shape[0] // 4]  # above the numbers
    cells = np.array_split(row[row.size - 3 * round(0.62 * canvas.DPI) - 9 : -9], 3)
    small, large, hatched = (np.percentile(cell, [20, 50]) for cell in cells)
    assert max(large) < 60 < 220 < min(small)
    assert hatched[0] < min(small)
    assert hatched[1] > max(small)


def test_infinities_and_nan_are_written_and_have_no_say_in_the_colours() -> None:
    values = SCORES.masked_fill(FUTURE, -torch.inf)
    values[5, 0] = torch.nan
    figure = heatmap(values, None, None, title="Scores").figure()
    assert cell_texts(figure)[0, 1].get_text() == "-inf"
    assert cell_texts(figure)[5, 0].get_text() == "nan"
    assert figure.axes[0].collections[0].norm.vmax == pytest.approx(3)


def test_nothing_but_nan_can_be_drawn() -> None:
    figure = heatmap(torch.full((2, 2), torch.nan), None, None, title="Weights").figure()
    assert cell_texts(figure)[1, 1].get_text() == "nan"


@pytest.mark.parametrize(("n", "written"), [(12, 144), (13, 0)])
def test_numbers_are_written_up_to_twelve(n: int, written: int) -> None:
    values = torch.linspace(-1, 1, n * n).reshape(n, n)
    assert len(cell_texts(heatmap(values, None, None, title="Scores").figure())) == written


def test_large_matrices_show_infinities_by_a_hatch_of_their_own() -> None:
    hidden = torch.zeros(20, 20).bool()
    hidden[0, 1] = True
    values = torch.rand(20, 20).index_fill(1, torch.tensor([3]), -torch.inf)
    figure = heatmap(values, None, None, title="Scores", hidden=hidden).figure()
    _, veil, infinite = figure.axes[0].collections
    assert (veil.get_array().count(), infinite.get_array().count()) == (1, 20)
    assert veil.get_hatch() != infinite.get_hatch()


def test_signed_numbers_are_centred_at_0() -> None:
    shades = scores_picture().figure().axes[0].collections[0]
    assert shades.norm(0) == pytest.approx(0.5)
    assert shades.norm.vmax == pytest.approx(3)
    assert shades.cmap.name != weights_picture().figure().axes[0].collections[0].cmap.name


def test_limits_are_shared() -> None:
    figure = row_of_two().figure()
    for ax in figure.axes[:2]:
        assert (ax.collections[0].norm.vmin, ax.collections[0].norm.vmax) == (0, 1)
    assert [len(ax.child_axes) for ax in figure.axes[:2]] == [0, 1], "one colour scale for both"


@pytest.mark.parametrize("colours", [heatmaps.ONE_SIGN, heatmaps.SIGNED])
def test_colours_fall_in_lightness(colours: Callable[[np.ndarray], np.ndarray]) -> None:
    assert (np.diff(lightness(colours(np.linspace(0, 1, 256))[:, :3])) < 0).all()


@pytest.mark.parametrize("make", [weights_picture, scores_picture])
def test_every_number_can_be_read(make: Callable[[], Picture]) -> None:
    figure = make().figure()
    shades = figure.axes[0].collections[0]
    for (i, j), text in cell_texts(figure).items():
        value = shades.get_array().reshape(6, 6)[i, j]
        dark, light = sorted(
            lightness(np.array(c[:3])) for c in (shades.to_rgba(value), to_rgb(text.get_color()))
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_any_float_tensor_will_do() -> None:
    values = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    assert cell_texts(heatmap(values, None, None, title="Ones").figure())[0, 0].get_text() == "1.00"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"values": torch.ones(2, 2, 2)}, "values"),
        ({"rows": ["a"]}, "rows"),
        ({"columns": ["a", "b", "c"]}, "columns"),
        ({"hidden": torch.ones(2).bool()}, "hidden"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments: dict, named: str) -> None:
    fitting = {"values": torch.ones(2, 2), "rows": None, "columns": None, "title": ""}
    with pytest.raises(ValueError, match=named):
        heatmap(**fitting | arguments)


# attention_picture


def rectangles(figure: Figure, color: str) -> list[Rectangle]:
    return [
        patch
        for patch in figure.axes[0].patches
        if isinstance(patch, Rectangle) and to_rgb(patch.get_facecolor()) == to_rgb(color)
        and patch.get_fill()
    ]  # fmt: skip


def lines(figure: Figure, color: str) -> list[float]:
    """The widths of the curved lines of a colour, in the order of the tokens."""
    return [
        patch.get_linewidth()
        for patch in figure.axes[0].patches
        if isinstance(patch, FancyArrowPatch) and to_rgb(patch.get_edgecolor()) == to_rgb(color)
    ]


def test_bars_arcs_and_flows_follow_the_weights() -> None:
    weights = torch.tensor([0.5, 0.25, 0.125, 0.125, 0.0, 0.0])
    figure = query_picture(weights=weights).figure()
    heights = [-bar.get_height() / query.BARS for bar in rectangles(figure, query.BLUE)]
    assert heights == pytest.approx(weights.tolist())
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written.count("0.50") == written.count("0.25") == 1
    for color in (query.ORANGE, query.BLUE):
        widths = lines(figure, color)
        steps = [width - widths[-1] for width in widths]
        assert steps == pytest.approx([2 * steps[0] * w for w in weights.tolist()])


def test_the_last_strip_is_the_sum_of_weight_times_value() -> None:
    weights = torch.tensor([0.5, 0.25, 0.25, 0.0, 0.0, 0.0])
    strips = [
        np.array(image.get_array())
        for image in query_picture(weights=weights).figure().axes[0].images
    ]
    assert len(strips) == 2 * len(TOKENS) + 2
    assert strips[-2].ravel() == pytest.approx(KEYS[-1].tolist())
    assert strips[-1].ravel() == pytest.approx((weights @ VALUES).tolist())


@pytest.mark.parametrize(
    "tokens", [TOKENS, ["<end>", "upstairs", "downstairs", "she's", "$a$", ""]]
)
def test_what_is_written_does_not_overlap(tokens: list[str]) -> None:
    figure = query_picture(tokens=tokens).figure()
    with canvas.style():
        figure.draw_without_rendering()
    for a, b in combinations(figure.axes[0].texts, 2):
        assert overlap(a, b) == 0, f"{a.get_text()} on {b.get_text()}"


def overlap(a: Text, b: Text) -> float:
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = (Text.get_window_extent(t).extents for t in (a, b))
    return max(0, min(ax1, bx1) - max(ax0, bx0)) * max(0, min(ay1, by1) - max(ay0, by0))


@pytest.mark.usefixtures("shell")
def test_a_row_of_nan_can_be_drawn() -> None:
    nan = torch.full((6,), torch.nan)
    figure = query_picture(scores=nan, weights=nan, keys=torch.full((6, 2), torch.nan)).figure()
    assert [text.get_text() for text in figure.axes[0].texts].count("nan") == 12
    assert png_of(figure)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("keys", KEYS[:5]),
        ("query", KEYS[0, :1]),
        ("values", VALUES[:5]),
        ("values", VALUES[0].expand(6, 1, 2)),
        ("scores", torch.rand(7)),
        ("weights", torch.rand(5)),
    ],
)
def test_one_row_a_token_is_wanted(name: str, given: Tensor) -> None:
    with pytest.raises(ValueError, match=name):
        query_picture(**{name: given})
