"""What a cell displays, as a front end gets it."""

import base64
from collections.abc import Callable

from IPython.utils.capture import capture_output
from matplotlib.figure import Figure

from autograde.notebook import show
from autograde.notebook.figures.canvas import Picture


def displayed(make: Callable[[], object]) -> tuple[dict, dict]:
    """Data and metadata of the one display that `make` causes."""
    with capture_output() as captured:
        make()
    (output,) = captured.outputs
    return output.data, output.metadata


def png_of(picture: Picture | Figure) -> bytes:
    data, _ = displayed(lambda: show(picture, "a figure"))
    return base64.b64decode(data["image/png"])
