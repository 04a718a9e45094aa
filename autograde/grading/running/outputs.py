"""What is kept of a kernel's outputs as they arrive: text, PNG pictures and recordings."""

import base64
import binascii
import re
import struct
from collections import Counter
from typing import Any

from nbformat import NotebookNode

from autograde.grading.limits import LIMITS
from autograde.rubric.recording import MIME
from autograde.values.text import well_formed

PNG = "image/png"
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
MAX_WIDTH = 840
"""Pixels: the room in Formgrader's column. Figures have more than twice as many, to be sharp."""
ERROR_CHARS = 2_000
LAST_LINES = 50
CUT_OFF = "[cut off]"


def reduced(output_type: str, content: dict[str, Any]) -> NotebookNode:
    """Return the output that a message describes, with what is used of it."""
    if output_type == "stream":
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = content.get("text")
        text = well_formed(text[: LIMITS.output_chars + 1]) if isinstance(text, str) else ""
        return NotebookNode(output_type="stream", name=name, text=text)
    if output_type == "error":
        lines = content.get("traceback")
        last = lines[-LAST_LINES:] if isinstance(lines, list) else []
        return NotebookNode(
            output_type="error",
            ename=_text(content.get("ename"), ERROR_CHARS),
            evalue=_text(content.get("evalue"), ERROR_CHARS),
            traceback=[_text(line) for line in last],
        )
    data, metadata = _dict(content.get("data")), NotebookNode()
    kept = NotebookNode()
    if isinstance(data.get(MIME), str):
        kept[MIME] = well_formed(data[MIME])
    elif isinstance(data.get("text/plain"), str):
        kept["text/plain"] = _text(data["text/plain"])
    if MIME not in kept and _is_small_picture(data.get(PNG)):
        kept[PNG] = data[PNG]
        if about := _details(_dict(_dict(content.get("metadata")).get(PNG))):
            metadata[PNG] = about
    return NotebookNode(output_type="display_data", data=kept, metadata=metadata)


def sizes_of(output: NotebookNode) -> Counter[str]:
    """Return how much an output takes of each limit."""
    data = output.get("data", {})
    if MIME in data:
        return Counter(recording_bytes=len(data[MIME]))
    text = [output.get("text", ""), *output.get("traceback", []), data.get("text/plain", "")]
    return Counter(
        outputs=output.output_type != "stream",
        page_chars=sum(map(len, text)),
        pictures=PNG in data,
        picture_bytes=len(data.get(PNG, "")),
    )


def joined(text: str, more: str) -> str:
    """Return what a stream showed with what it shows next, as far as an output has room."""
    if len(text) > LIMITS.output_chars:
        return text
    text += more
    # only where it is needed: at each message it would be quadratic
    if len(text) <= LIMITS.output_chars:
        return text
    returns = "\r" * text.endswith("\r")  # the next message begins this line again
    return cut(as_on_a_terminal(text) + returns)


def settle(outputs: list[NotebookNode]) -> None:
    """Show what a cell printed as a terminal does, and standard output before warnings."""
    for output in outputs:
        if output.output_type == "stream":
            output.text = as_on_a_terminal(output.text)
    for i in range(len(outputs) - 1):  # the two arrive in any order
        if [each.get("name") for each in outputs[i : i + 2]] == ["stderr", "stdout"]:
            outputs[i : i + 2] = outputs[i + 1], outputs[i]


def as_on_a_terminal(text: str) -> str:
    """Keep of each line what follows its last carriage return, as a progress bar wants it."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _is_small_picture(text: object) -> bool:
    """Return whether this is base64 of a PNG with no more pixels than a page may hold."""
    if not isinstance(text, str) or not BASE64.fullmatch(text):
        return False
    try:
        head = base64.b64decode("".join(text[:64].split())[:32])
        width, height = struct.unpack(">II", head[16:24])
    except (binascii.Error, struct.error):
        return False
    return head.startswith(b"\x89PNG") and 0 < width * height <= LIMITS.picture_pixels


def _details(given: dict[Any, Any]) -> dict[str, str | int]:
    """Return a picture's text alternative, and its width as far as a page has room."""
    kept: dict[str, str | int] = {}
    alt, width = given.get("alt"), given.get("width")
    if isinstance(alt, str):
        kept["alt"] = _text(alt, ERROR_CHARS)
    if type(width) is int and width > 0:
        kept["width"] = min(width, MAX_WIDTH)
    return kept


def _dict(given: object) -> dict[Any, Any]:
    return given if isinstance(given, dict) else {}


def _text(given: object, most: int = LIMITS.output_chars) -> str:
    return cut(well_formed(given[: most + 1]), most) if isinstance(given, str) else ""


def cut(text: str, most: int = LIMITS.output_chars) -> str:
    return text if len(text) <= most else f"{text[:most]}\n{CUT_OFF}"
