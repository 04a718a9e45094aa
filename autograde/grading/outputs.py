"""What left a student's kernel is untrusted: reduce it before any page shows it."""

import re

from nbformat import NotebookNode

from autograde.rubric.recording import FIGURE_MIME

Figures = dict[str, NotebookNode]
"""Pictures as outputs, by the key of what they show."""

BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
MAX_TEXT = 20_000
MAX_WIDTH = 840
"""Pixels: the room in Formgrader's column. Figures have more than twice as many, to be sharp."""


def reduce_outputs(nb: NotebookNode, figures: Figures) -> None:
    """Keep only text and PNG pictures, with their text alternative and width, and not too much.

    Args:
        figures: pictures that a kernel may name instead of drawing them.
    """
    for cell in nb.cells:
        if cell.cell_type == "code":
            left = dict(figures)  # each once: a name is short, and what it stands for is not
            kept = (_reduced(_with_picture(output, left)) for output in cell.outputs)
            cell.outputs = [output for output in kept if output is not None]


def _with_picture(output: NotebookNode, figures: Figures) -> NotebookNode:
    """The output with the picture that it names, if there is one of that name; it is taken out."""
    key = output.get("data", {}).get(FIGURE_MIME)
    if not isinstance(key, str) or key not in figures:
        return output
    picture = figures.pop(key)
    data = {**output.data, "image/png": picture.data["image/png"]}
    given = output.metadata.get("image/png")
    about = dict(given) if isinstance(given, dict) else {}
    about["width"] = picture.metadata["image/png"]["width"]
    return NotebookNode(output, data=data, metadata={"image/png": about})


def _reduced(output: NotebookNode) -> NotebookNode | None:
    match output.output_type:
        case "stream":
            name = "stderr" if output.name == "stderr" else "stdout"
            return NotebookNode(output_type="stream", name=name, text=_cut(output.text))
        case "error":
            return NotebookNode(
                output_type="error",
                ename=_cut(output.ename),
                evalue=_cut(output.evalue),
                traceback=[_cut(line) for line in output.traceback[-50:]],
            )
        case "display_data" | "execute_result":
            return _reduced_data(output)
    return None


def _reduced_data(output: NotebookNode) -> NotebookNode | None:
    data, metadata = {}, {}
    text, png = output.data.get("text/plain"), output.data.get("image/png")
    if isinstance(text, str):
        data["text/plain"] = _cut(text)
    if isinstance(png, str) and BASE64.fullmatch(png):
        data["image/png"] = png
        if kept := _details(output.get("metadata", {}).get("image/png")):
            metadata["image/png"] = kept
    if not data:
        return None
    return NotebookNode(output_type="display_data", data=data, metadata=metadata)


def _details(given: object) -> dict[str, str | int]:
    """A picture's text alternative and its width, which no page can show above the limit."""
    kept: dict[str, str | int] = {}
    if isinstance(given, dict):
        alt, width = given.get("alt"), given.get("width")
        if isinstance(alt, str):
            kept["alt"] = _cut(alt)
        if type(width) is int and width > 0:
            kept["width"] = min(width, MAX_WIDTH)
    return kept


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n[cut off]"
