"""Sliders: one display with a picture for where no widget runs, drawn anew when one moves."""

import base64

import ipywidgets
import nbformat
import pytest
import torch
from displays import displayed, png_of
from nbclient import NotebookClient

from attention_course import explore, heatmap
from autograde.notebook.figures.canvas import Picture

WIDGET = "application/vnd.jupyter.widget-view+json"


def draw(size: int, name: str) -> tuple[Picture, str]:
    return heatmap(torch.eye(size), None, None, title=name), f"<{name}> of size {size}"


def explored(**choices: list) -> tuple[dict, dict, ipywidgets.VBox]:
    data, about = displayed(lambda: explore(draw, alt="an identity matrix", **choices))
    box = ipywidgets.widgets.widget._instances[data[WIDGET]["model_id"]]
    return data, about, box


@pytest.mark.usefixtures("shell")
def test_one_display_holds_the_widget_and_a_figure_for_where_none_runs() -> None:
    data, about, box = explored(size=[2, 3], name=["plain", "other"])
    assert set(data) == {WIDGET, "image/png", "text/plain"}
    assert data["text/plain"] == "<plain> of size 2"
    assert about["image/png"]["alt"] == "an identity matrix"
    *sliders, picture, caption = box.children
    assert [type(s) for s in sliders] == [ipywidgets.SelectionSlider] * 2
    assert [s.description for s in sliders] == ["size", "name"]
    assert picture.value == base64.b64decode(data["image/png"])
    assert "&lt;plain&gt; of size 2" in caption.value


@pytest.mark.usefixtures("shell")
def test_a_wide_figure_fits_its_box() -> None:
    _, _, box = explored(size=[2, 3], name=["plain"])
    layout = box.children[2].layout
    assert (layout.max_width, layout.margin) == ("100%", "0")


@pytest.mark.usefixtures("shell")
def test_a_slider_redraws_picture_and_description() -> None:
    data, _, box = explored(size=[2, 3], name=["plain", "other"])
    size, name, picture, caption = box.children
    size.value = 3
    name.value = "other"
    assert picture.value == png_of(draw(3, "other")[0])
    assert picture.value != base64.b64decode(data["image/png"])
    assert "&lt;other&gt; of size 3" in caption.value


@pytest.mark.parametrize(
    ("options", "placed"),
    [
        ([3, 0, 10, 2], (0, 2, 3, 10)),
        (["2.2", "1.1", "10.1"], ("1.1", "2.2", "10.1")),
        (["she", "he"], ("she", "he")),
        ([0.5, 0.25], (0.25, 0.5)),
    ],
)
@pytest.mark.usefixtures("shell")
def test_a_slider_starts_at_the_first_option_and_puts_numbers_in_order(
    options: list, placed: tuple
) -> None:
    _, _, box = explored(size=[2], name=options)
    slider = box.children[1]
    assert (slider.value, tuple(value for _, value in slider.options)) == (options[0], placed)
    assert slider._options_labels == tuple(f"{each}" for each in placed)


@pytest.mark.usefixtures("shell")
def test_what_goes_wrong_after_a_slider_moved_is_said_below_it() -> None:
    _, _, box = explored(size=[2, -1], name=["plain"])
    box.children[0].value = -1
    assert "could not be drawn: RuntimeError" in box.children[-1].value


@pytest.mark.parametrize("choices", [{}, {"size": []}])
def test_there_must_be_something_to_choose(choices: dict) -> None:
    with pytest.raises(ValueError, match="options"):
        explore(draw, alt="nothing", **choices)


@pytest.mark.parametrize(("alt", "said"), [("", "fine"), ("fine", "")])
def test_a_widget_needs_words_as_well(alt: str, said: str) -> None:
    with pytest.raises(ValueError, match="is empty"):
        explore(lambda size: (draw(size, "")[0], said), alt=alt, size=[1])


def test_explore_works_in_a_kernel_without_front_end() -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell(source)
        for source in (
            "import torch\n"
            "from attention_course import explore, heatmap\n"
            "sizes = []\n"
            "def draw(size):\n"
            "    sizes.append(size)\n"
            "    return heatmap(torch.eye(size), None, None, title=''), f'size {size}'\n"
            "explore(draw, alt='an identity matrix', size=[2, 3])",
            "import ipywidgets\n"
            "every = ipywidgets.widgets.widget._instances.values()\n"
            "slider, = (w for w in every if isinstance(w, ipywidgets.SelectionSlider))\n"
            "slider.value = 3\n"
            "sizes",
        )
    ]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (shown,) = notebook.cells[0].outputs
    assert shown.output_type == "display_data"
    assert {WIDGET, "image/png"} < set(shown.data)
    assert shown.data["text/plain"] == "size 2"
    assert shown.metadata["image/png"]["alt"] == "an identity matrix"
    assert notebook.cells[1].outputs[0].data["text/plain"] == "[2, 3]"
