"""A figure with sliders that redraw it, and its first state where no widgets run."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from autograde.notebook.figures.canvas import Picture, display_png, png_of, require, screen_width

Draw = Callable[..., tuple[Picture | Figure, str]]


def explore(draw: Draw, /, *, alt: str, **choices: Sequence[str | float]) -> None:
    """Display a figure with a slider for each choice; where no widgets run, its first state.

    Args:
        draw: called with one option of every choice by name; gives a picture and its description.
        alt: what the figure is about, for those who cannot see it.
        choices: the options of each slider, at least one; the first is where it starts. Numbers
            stand on it in their order, other options in the order given. JupyterLab cuts off what
            is longer than 18 characters.

    Raises:
        ValueError: alt says nothing, or there is nothing to choose.
    """
    if not choices or not all(len(options) for options in choices.values()):
        raise ValueError(f"every choice needs options, there are {choices}")
    require(alt, "alt")

    def drawn(chosen: dict[str, str | float]) -> tuple[bytes, str]:
        picture, description = draw(**chosen)
        require(description, "the description that draw returns")
        return png_of(picture), description

    png, description = drawn({name: options[0] for name, options in choices.items()})
    display_png(png, alt, description, _panel(drawn, choices, png, description))


def _panel(
    drawn: Callable[[dict[str, str | float]], tuple[bytes, str]],
    choices: dict[str, Sequence[str | float]],
    png: bytes,
    description: str,
) -> dict[str, Any]:
    """Return sliders, picture and description as a MIME bundle."""
    import ipywidgets as widgets

    room = f"{0.6 * max(map(len, choices)) + 1:.1f}em"
    sliders = {name: _slider(name, options, room) for name, options in choices.items()}
    picture = widgets.Image(value=png, format="png", width=screen_width(png))
    picture.layout.max_width, picture.layout.margin = "100%", "0"
    caption = widgets.HTML(_caption(description))

    def redraw(_: object) -> None:
        try:
            picture.value, said = drawn({name: slider.value for name, slider in sliders.items()})
            picture.width = screen_width(picture.value)
        except Exception as error:  # a front end shows nobody what a slider's change raises
            said = f"This could not be drawn: {type(error).__name__}: {error}"
        caption.value = _caption(said)

    for slider in sliders.values():
        slider.observe(redraw, "value")
    bundle: dict[str, Any] = widgets.VBox([*sliders.values(), picture, caption])._repr_mimebundle_()
    return bundle


def _slider(name: str, options: Sequence[str | float], room: str) -> Any:
    import ipywidgets as widgets

    placed = _in_order(options)
    return widgets.SelectionSlider(
        options=[(f"{o:g}" if isinstance(o, float) else str(o), o) for o in placed],
        value=options[0],
        description=name,
        style={"description_width": room},
    )


def _in_order(options: Sequence[str | float]) -> list[str | float]:
    """Return options that are numbers, or texts of numbers, from the least to the largest."""
    try:
        return sorted(options, key=float)
    except ValueError:
        return list(options)


def _caption(text: str) -> str:
    return f'<p style="max-width: 44em; line-height: 1.4">{escape(text)}</p>'
