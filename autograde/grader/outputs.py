"""What left a student's kernel is untrusted: reduce it before any page shows it."""

import re

from nbformat import NotebookNode

BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
MAX_TEXT = 20_000


def reduce_outputs(nb: NotebookNode) -> None:
    """Keep only text and PNG pictures with their text alternative, and not too much of them."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            kept = (_reduced(output) for output in cell.outputs)
            cell.outputs = [output for output in kept if output is not None]


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
        details = output.get("metadata", {}).get("image/png")
        alt = details.get("alt") if isinstance(details, dict) else None
        if isinstance(alt, str):
            metadata["image/png"] = {"alt": _cut(alt)}
    if not data:
        return None
    return NotebookNode(output_type="display_data", data=data, metadata=metadata)


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n[cut off]"
