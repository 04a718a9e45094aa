"""Pictures: what draws them, and that a cell may end with one."""

import ast
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import torch
from conftest import HERE
from matplotlib.figure import Figure
from matplotlib.text import Text

from attention_course import chart, heatmap
from autograde.course.lesson_files import text_of
from autograde.course.lessons import lessons
from autograde.notebook.figures import canvas
from autograde.notebook.figures.canvas import Picture

WORDS = ["a", "b"]
VALUES = torch.tensor([[0.25, 0.75], [-1.5, 3e-7]])
PLAIN: dict[str, Any] = {"rows": WORDS, "columns": WORDS, "title": "Scores"}


def scores() -> Picture:
    return heatmap(VALUES, **PLAIN)


def test_a_picture_as_the_last_line_of_a_cell_is_drawn() -> None:
    assert scores()._repr_png_() == canvas.png_of(scores())
    assert repr(scores()) == "a picture: heatmap"


def test_formulas_are_set_in_charts_and_nowhere_else() -> None:
    def powers() -> Figure:
        figure, axes = plt.subplots()
        axes.semilogy([1, 1000])
        return figure

    drawn = chart(powers)
    drawn.draw_without_rendering()
    labels = [text for text in drawn.findobj(Text) if "$" in text.get_text()]
    assert labels
    assert all(label.get_parse_math() for label in labels)
    plain = heatmap(VALUES, ["$a$", "$b$"], WORDS, title="$c$").figure()
    assert not any(t.get_parse_math() for t in plain.findobj(Text) if "$" in t.get_text())


def test_the_training_of_lesson_07_is_drawn_whatever_the_model_writes() -> None:
    tree = ast.parse(text_of(lessons(HERE)["07_tiny_gpt"]))
    tree.body = [one for one in tree.body if getattr(one, "name", "") == "training_picture"]
    here = {"plt": plt, "fill": fill}
    exec(compile(tree, "lesson 07", "exec"), here)  # noqa: S102
    wrote = {0: "The 6$ (j3_8V^$ p{"}  # between two dollar signs matplotlib would read a formula
    figure = chart(here["training_picture"], {"a": [(0, 4.0), (9, 2.0)]}, {}, wrote, 9, 9)
    assert canvas.png_of(figure)
