"""When two pictures are equal, and that grading draws only those that the reference has not."""

import base64
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from displays import displayed
from matplotlib.figure import Figure
from matplotlib.text import Text
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

from autograde.course import Lesson
from autograde.grading.run import Ran, figures_of
from autograde.grading.sanitise import MAX_WIDTH, sanitise_outputs
from autograde.notebook import attention_picture, chart, explore, heatmap, panels, show
from autograde.notebook.figures import canvas
from autograde.notebook.figures.pictures import Content, Picture, content_of
from autograde.rubric.recording import FIGURE_MIME
from autograde.versions import versions

WORDS = ["a", "b"]
VALUES = torch.tensor([[0.25, 0.75], [-1.5, 3e-7]])
PLAIN: dict[str, Any] = {"rows": WORDS, "columns": WORDS, "title": "Scores"}


def alike(one: Any, other: Any) -> bool:
    these, those = content_of(one), content_of(other)
    assert these
    assert those
    return these.looks_like(those)


def scores(values: torch.Tensor = VALUES, **more: Any) -> Picture:
    return heatmap(values, **{**PLAIN, **more})


@pytest.mark.parametrize(
    "same",
    [
        scores(VALUES * (1 + 1e-7)),
        scores(VALUES.double()),
        scores(VALUES.clone().requires_grad_()),
        scores(rows=tuple(WORDS)),
        scores(hidden=torch.zeros(2, 2)),
    ],
)
def test_what_looks_the_same(same: Picture) -> None:
    assert alike(same, scores())


@pytest.mark.parametrize(
    "other",
    [
        scores(VALUES * 1.002),
        scores(VALUES * torch.tensor([[1, 1], [1, 1.01]])),
        scores(VALUES.int()),
        scores(-VALUES),
        scores(VALUES.T),
        scores(VALUES.masked_fill(VALUES < 0, torch.nan)),
        scores(VALUES.masked_fill(VALUES < 0, -torch.inf)),
        scores(VALUES[:1], rows=["a"]),
        scores(rows=["b", "a"]),
        scores(title="scores"),
        scores(row_name="key"),
        scores(hidden=torch.eye(2)),
        scores(limits=(0, 1)),
        scores(bar=False),
        panels(scores(), size=(4, 4)),
    ],
)
def test_what_looks_otherwise(other: Picture) -> None:
    assert not alike(other, scores())


def test_panels_and_queries_differ_in_all_they_show() -> None:
    row, points = torch.tensor([0.4, 0.6]), torch.eye(2)
    pictures = [
        *(panels(scores(), scores(), size=size) for size in ((4, 4), (4, 5))),
        panels(scores(), scores(), size=(4, 4), in_a_row=1),
        attention_picture(row, points, WORDS, 0),
        attention_picture(row, points, WORDS, 1),
        attention_picture(row, points, WORDS, 0, widest=1.0),
        attention_picture(row, points, WORDS, 0, title="a"),
        attention_picture(row, points.flip(0), WORDS, 0),
        attention_picture(row.flip(0), points, WORDS, 0),
    ]
    assert not any(alike(*pair) for pair in combinations(pictures, 2))


CHARTS = """
import math
import matplotlib.pyplot as plt
from torch import nn
from autograde.notebook import chart, heatmap
from autograde.notebook.figures.pictures import content_of
limit = {limit}
def height(x):
    return math.sqrt(x) * {factor}
def line(values):
    figure, axes = plt.subplots()
    axes.plot([height(x) + limit for x in values], "{style}")
    return figure
def framed(values, one):
    figure, axes = plt.subplots()
    one.on(axes)
    return figure
layer = nn.Linear(2, 2)
class Own:
    pass
charts = [
    chart(line, {values}), chart(framed, {values}, heatmap(layer.weight * 0, None, None, title="")),
    chart(framed, layer, None), chart(framed, Own(), None), chart(framed, Own, None),
    chart(framed, layer.forward, None), line([1]),
]
[each and [each.rest, each.fractions] for each in map(content_of, charts)]
"""
USUAL = {"limit": "1", "factor": "1", "style": "-", "values": "[1, 2.5]"}


def in_a_kernel(*changed: dict[str, str]) -> list[list[Content | None]]:
    """The contents that a kernel finds, in which the functions of the charts are the notebook's.

    A list for each cell; a cell has the usual chart with these changes.
    """
    cells = [nbformat.v4.new_code_cell(CHARTS.format(**USUAL | each)) for each in changed]
    nb = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(nb, timeout=120, kernel_name="python3").execute()
    texts = [
        o.data["text/plain"]
        for cell in nb.cells
        for o in cell.outputs
        if o.output_type == "execute_result"
    ]
    return [[each and Content(*each) for each in literal_eval(text)] for text in texts]


def test_a_chart_is_its_text_its_values_and_all_that_the_text_uses() -> None:
    ((line, framed, *unknown),) = in_a_kernel({})
    changes = {"limit": "2"}, {"factor": "2"}, {"style": "--"}, {"values": "[1, 3.0]"}
    again, nearly, *others = in_a_kernel({}, {"values": "[1, 2.5000001]"}, *changes)
    assert again[0].looks_like(line), "another process, the same picture"
    assert again[1].looks_like(framed)
    assert nearly[0].looks_like(line)
    for change, other in zip(changes, others, strict=True):
        assert not other[0].looks_like(line), change
    assert unknown == [None] * 5, "modules, objects, classes, methods and drawn figures"


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ([1.00001, 1.00004], [1.00004, 1.00001]),  # colours and axes reach from one to the other
        ([100_001, 100_002], [100_001, 100_003]),
        ([True], [1.0]),
        ([1], [True]),
    ],
)
def test_charts_of_other_numbers_look_otherwise(values: list, others: list) -> None:
    for kind in (list, torch.tensor):
        assert not alike(chart(np.array, kind(values)), chart(np.array, kind(others)))


LAMBDAS = """
import functools
from autograde.notebook import chart
from autograde.notebook.figures.pictures import content_of
def twice(draw):
    @functools.wraps(draw)
    def wrapper(x):
        return draw(2 * x)
    return wrapper
def draw(x):
    return x
pictures = [chart(lambda x: x, 1), chart(lambda x: -x, 1), chart(
    lambda x:
    x + 1, 1), chart(
    lambda x:
    x + 2, 1), chart(draw, 1), chart(twice(draw), 1)]
content = [content_of(each) for each in pictures]
all(content), len(set(content))
"""


def test_functions_with_the_same_text_around_them_differ() -> None:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LAMBDAS)])
    NotebookClient(nb, timeout=120, kernel_name="python3").execute()
    assert nb.cells[0].outputs[-1].data["text/plain"] == "(True, 5)", "draw is lambda x: x"


class Bag(dict):
    __getattr__ = dict.__getitem__


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


STRANGE = {
    "endless": ENDLESS,
    "a dictionary with attributes": Bag(),
    "complex": torch.tensor([1j]),
    "sparse": torch.eye(2).to_sparse(),
    "large": torch.zeros(400, 400),
    "without numbers": torch.zeros(2, device="meta"),
    "a long range": range(10**10),
    "a function of some package": nbformat.read,
    "some package": nbformat,
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_cannot_be_looked_at_has_no_content(name: str) -> None:
    assert content_of(chart(np.array, 1))
    assert content_of(chart(np.array, STRANGE[name])) is None


def test_a_charts_function_must_return_its_figure() -> None:
    with pytest.raises(TypeError, match=r"print returned a NoneType; .* must return the figure"):
        chart(print, 1).figure()


def test_more_in_a_row_than_there_are_is_a_row() -> None:
    assert len(panels(scores(), scores(), size=(4, 2), in_a_row=3).figure().axes) == 2


def test_a_picture_as_the_last_line_of_a_cell_is_drawn() -> None:
    assert scores()._repr_png_() == canvas.png_of(scores())
    assert repr(scores()) == "a picture: heatmap"


def test_formulas_are_set_in_charts_and_nowhere_else() -> None:
    def powers() -> Figure:
        figure, axes = plt.subplots()
        axes.semilogy([1, 1000])
        return figure

    with canvas.style():
        drawn = chart(powers).figure()
        drawn.draw_without_rendering()
    labels = [text for text in drawn.findobj(Text) if "$" in text.get_text()]
    assert labels
    assert all(label.get_parse_math() for label in labels)
    plain = heatmap(VALUES, ["$a$", "$b$"], WORDS, title="$c$").figure()
    assert not any(t.get_parse_math() for t in plain.findobj(Text) if "$" in t.get_text())


# in the kernel


@pytest.fixture
def expecting() -> Iterator[None]:
    """A process in which one picture is drawn already."""
    content = content_of(scores())
    assert content
    canvas.name_only([(content.rest, content.fractions)])
    yield
    canvas.name_only([])


@pytest.mark.usefixtures("expecting", "shell")
def test_a_picture_that_is_drawn_already_is_named() -> None:
    data, about = displayed(lambda: show(scores(VALUES * (1 + 1e-6)), "words"))
    assert data == {FIGURE_MIME: content_of(scores()).name, "text/plain": "words"}
    assert about == {"image/png": {"alt": "words"}}


@pytest.mark.usefixtures("expecting", "shell")
def test_another_picture_is_drawn_and_says_its_content() -> None:
    data, about = displayed(lambda: show(scores(-VALUES), "words"))
    assert set(data) == {"image/png", "text/plain"}
    assert Content(**about[FIGURE_MIME]) == content_of(scores(-VALUES))


@pytest.mark.usefixtures("expecting", "shell")
def test_a_figure_of_pyplots_is_drawn() -> None:
    data, about = displayed(lambda: show(scores().figure(), "words"))
    assert "image/png" in data
    assert FIGURE_MIME not in about


@pytest.mark.usefixtures("expecting", "shell")
@pytest.mark.parametrize(("sign", "named"), [(1, True), (-1, False)])
def test_sliders_whose_first_picture_is_drawn_already_are_not_made(sign: int, named: bool) -> None:
    def draw(factor: int) -> tuple[Picture, str]:
        return scores(VALUES * factor), f"times {factor}"

    data, about = displayed(lambda: explore(draw, alt="all", factor=[sign, 2]))
    assert data["text/plain"] == f"times {sign}"
    assert about["image/png"]["alt"] == "all"
    assert (FIGURE_MIME in data, "image/png" in data) == (named, not named)


# in the grader


@pytest.fixture
def drawn(lesson: Lesson) -> tuple[str, NotebookNode]:
    return next(iter(figures_of(versions(lesson)[0]).items()))


def test_a_name_counts_once_in_a_cell(drawn: tuple[str, NotebookNode]) -> None:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in "12"])
    output = NotebookNode(output_type="display_data", data={FIGURE_MIME: drawn[0]}, metadata={})
    for cell in nb.cells:
        cell.outputs = [output] * 3
    sanitise_outputs(nb, dict([drawn]))
    assert [len(cell.outputs) for cell in nb.cells] == [1, 1]


def reduced(data: dict, about: dict, figures: dict) -> NotebookNode:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    nb.cells[0].outputs = [NotebookNode(output_type="display_data", data=data, metadata=about)]
    sanitise_outputs(nb, figures)
    (output,) = nb.cells[0].outputs
    return output


def test_a_name_becomes_the_references_picture(drawn: tuple[str, NotebookNode]) -> None:
    key, picture = drawn
    data = {FIGURE_MIME: key, "text/plain": "words"}
    output = reduced(data, {"image/png": {"alt": "words"}}, {key: picture})
    assert output.data == {"text/plain": "words", "image/png": picture.data["image/png"]}
    width = min(picture.metadata["image/png"]["width"], MAX_WIDTH)
    assert output.metadata == {"image/png": {"alt": "words", "width": width}}


@pytest.mark.parametrize("name", ["f" * 64, "", 1, None, ["a"], {"a": 1}])
def test_a_name_of_nothing_shows_nothing(name: object, drawn: tuple[str, NotebookNode]) -> None:
    output = reduced({FIGURE_MIME: name, "text/plain": "words"}, {}, dict([drawn]))
    assert output.data == {"text/plain": "words"}


@pytest.mark.parametrize("about", [{}, {"image/png": 1}, {"image/png": {"alt": 1, "width": "x"}}])
def test_what_a_kernel_says_about_a_picture_is_not_believed(
    about: dict, drawn: tuple[str, NotebookNode]
) -> None:
    key, picture = drawn
    output = reduced({FIGURE_MIME: key, "text/plain": ""}, about, dict([drawn]))
    width = min(picture.metadata["image/png"]["width"], MAX_WIDTH)
    assert output.metadata["image/png"]["width"] == width


def pngs(path: Path) -> list[bytes]:
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    found = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    return [base64.b64decode(png) for png in found]


def test_right_answers_show_the_references_pictures_and_wrong_ones_their_own(
    small_class: Lesson,
) -> None:
    reference = pngs(small_class.solution_notebook)
    graded = small_class.root / "autograded"
    ada, bob = (pngs(next((graded / name).rglob("*.ipynb"))) for name in ("ada", "bob"))
    assert len(reference) == len(figures_of(versions(small_class)[0]))
    assert len(ada) == len(bob) > 2  # figures of demonstrations are not drawn in grading
    assert ada == [png for png in reference if png in ada]
    assert bob != ada
    assert all(Image.open(BytesIO(png)).width > 100 for png in bob)
    kept = (small_class.root / ".autograde" / "ran").rglob("*")
    results = [Ran.from_bytes(path.read_bytes()) for path in kept if path.is_file()]
    drawn = [
        sum("image/png" in output.get("data", {}) for cell in r.cells for output in cell["outputs"])
        for r in results
        if r
    ]
    assert 0 in drawn, "who has all right draws nothing"
    assert max(drawn) > 0


def test_a_lesson_without_solution_draws_all(lesson: Lesson) -> None:
    version = versions(lesson)[0]
    assert len(figures_of(version)) > 5
    assert figures_of(replace(version, digest="another", solution=b"")) == {}
