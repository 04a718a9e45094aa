"""What left a student's kernel is untrusted: reduce it before any page shows it."""

import base64
import binascii
import re
import struct
from typing import Any

from nbformat import NotebookNode

from autograde.grading.limits import LIMITS
from autograde.rubric.recording import FIGURE_MIME, MIME
from autograde.rubric.text import well_formed

Figures = dict[str, NotebookNode]
"""Pictures as outputs, by the key of what they show."""

BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
PNG = "image/png"
KEPT = ("text/plain", PNG, FIGURE_MIME, MIME)
MAX_WIDTH = 840
"""Pixels: the room in Formgrader's column. Figures have more than twice as many, to be sharp."""
ERROR_CHARS = 2_000
LAST_LINES = 50
CUT_OFF = "[cut off]"


def plain_content(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """The parts of an output message that are used, as text that every file can hold."""
    if kind == "stream":
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = _text(content.get("text"))[: LIMITS.output_chars + 1]  # so that it is seen to be cut
        return {"name": name, "text": text}
    if kind == "error":
        lines = content.get("traceback")
        last = lines[-LAST_LINES:] if isinstance(lines, list) else []
        return {
            "ename": _cut(_text(content.get("ename")), ERROR_CHARS),
            "evalue": _cut(_text(content.get("evalue")), ERROR_CHARS),
            "traceback": [_cut(_text(line), LIMITS.output_chars) for line in last],
        }
    data, about = content.get("data"), content.get("metadata")
    given = data if isinstance(data, dict) else {}
    kept = {mime: _text(given[mime]) for mime in KEPT if isinstance(given.get(mime), str)}
    if "text/plain" in kept:
        kept["text/plain"] = _cut(kept["text/plain"], LIMITS.output_chars)
    picture = _details(about.get(PNG)) if isinstance(about, dict) else {}
    read: dict[str, Any] = {"data": kept, "metadata": {PNG: picture} if picture else {}}
    if isinstance(transient := content.get("transient"), dict):
        read["transient"] = {"display_id": str(transient.get("display_id") or "")[:ERROR_CHARS]}
    if kind == "execute_result":
        read["execution_count"] = content.get("execution_count")
    return read


def as_on_a_terminal(text: str) -> str:
    """Printed text after carriage returns and backspaces, in time that grows with its length."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    shown: list[str] = []
    for character in line:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


def reduce_outputs(nb: NotebookNode, figures: Figures) -> None:
    """Keep only text and PNG pictures, with their text alternative and width, and not too much.

    Args:
        figures: pictures that a kernel may name instead of drawing them.
    """
    room = _Room()
    for cell in nb.cells:
        if cell.cell_type == "code":
            left = dict(figures)  # each once: a name is short, and what it stands for is not
            kept = (_reduced(_with_picture(output, left)) for output in cell.outputs)
            found = [output for output in kept if output is not None]
            cell.outputs = [output for output in found if room.takes(output)]
            if len(cell.outputs) < len(found):
                cell.outputs.append(_stream("stdout", CUT_OFF))


class _Room:
    """The room that is left on a notebook's page."""

    def __init__(self) -> None:
        self.chars, self.pictures = LIMITS.page_chars, LIMITS.pictures
        self.picture_bytes = LIMITS.picture_bytes

    def takes(self, output: NotebookNode) -> bool:
        """Take an output's room, if there is enough."""
        data = output.get("data", {})
        text = [output.get("text", ""), *output.get("traceback", []), data.get("text/plain", "")]
        chars, picture = sum(map(len, text)), len(data.get(PNG, ""))
        if chars > self.chars or picture > self.picture_bytes or (picture and not self.pictures):
            return False
        self.chars -= chars
        self.picture_bytes -= picture
        self.pictures -= bool(picture)
        return True


def _with_picture(output: NotebookNode, figures: Figures) -> NotebookNode:
    """The output with the picture that it names, if there is one of that name; it is taken out."""
    key = output.get("data", {}).get(FIGURE_MIME)
    if not isinstance(key, str) or key not in figures:
        return output
    picture = figures.pop(key)
    data = {**output.data, PNG: picture.data[PNG]}
    given = output.metadata.get(PNG)
    about = dict(given) if isinstance(given, dict) else {}
    about["width"] = picture.metadata[PNG]["width"]
    return NotebookNode(output, data=data, metadata={PNG: about})


def _reduced(output: NotebookNode) -> NotebookNode | None:
    match output.output_type:
        case "stream":
            return _stream(output.name, _cut(_text(output.text), LIMITS.output_chars))
        case "error" | "display_data" | "execute_result":
            content = plain_content(output.output_type, output)
            if output.output_type == "error":
                return NotebookNode(output_type="error", **content)
            return _reduced_data(content)
    return None


def _stream(name: str, text: str) -> NotebookNode:
    kind = "stderr" if name == "stderr" else "stdout"
    return NotebookNode(output_type="stream", name=kind, text=text)


def _reduced_data(content: dict[str, Any]) -> NotebookNode | None:
    data = {mime: content["data"][mime] for mime in ("text/plain",) if mime in content["data"]}
    metadata = {}
    if _is_small_picture(content["data"].get(PNG, "")):
        data[PNG] = content["data"][PNG]
        metadata = content["metadata"]
    if not data:
        return None
    return NotebookNode(output_type="display_data", data=data, metadata=metadata)


def _is_small_picture(text: str) -> bool:
    """Whether this is base64 of a PNG picture with no more pixels than a page may hold."""
    if not text or not BASE64.fullmatch(text):
        return False
    try:
        head = base64.b64decode("".join(text[:64].split())[:32])
        width, height = struct.unpack(">II", head[16:24])
    except (binascii.Error, struct.error):
        return False
    return head.startswith(b"\x89PNG") and 0 < width * height <= LIMITS.picture_pixels


def _details(given: object) -> dict[str, str | int]:
    """A picture's text alternative and its width, which no page can show above the limit."""
    kept: dict[str, str | int] = {}
    if isinstance(given, dict):
        alt, width = given.get("alt"), given.get("width")
        if isinstance(alt, str):
            kept["alt"] = _cut(_text(alt), ERROR_CHARS)
        if type(width) is int and width > 0:
            kept["width"] = min(width, MAX_WIDTH)
    return kept


def _text(given: object) -> str:
    return well_formed(given) if isinstance(given, str) else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n{CUT_OFF}"
