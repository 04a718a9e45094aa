"""A kernel's outputs while cells run: what is used of them, as text that every file can hold."""

from typing import Any

from autograde.grading.limits import LIMITS
from autograde.rubric.recording import MIME
from autograde.values.text import well_formed

PNG = "image/png"
KEPT = ("text/plain", PNG, MIME)
MAX_WIDTH = 840
"""Pixels: the room in Formgrader's column. Figures have more than twice as many, to be sharp."""
ERROR_CHARS = 2_000
LAST_LINES = 50
CUT_OFF = "[cut off]"


def plain_content(output_type: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an output message that are used, as text that every file can hold."""
    if output_type == "stream":
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = _text(content.get("text"))[: LIMITS.output_chars + 1]  # one more shows it is cut
        return {"name": name, "text": text}
    if output_type == "error":
        lines = content.get("traceback")
        last = lines[-LAST_LINES:] if isinstance(lines, list) else []
        return {
            "ename": cut(_text(content.get("ename")), ERROR_CHARS),
            "evalue": cut(_text(content.get("evalue")), ERROR_CHARS),
            "traceback": [cut(_text(line), LIMITS.output_chars) for line in last],
        }
    data, about = _dict(content.get("data")), _dict(content.get("metadata"))
    kept = {mime: _text(data[mime]) for mime in KEPT if isinstance(data.get(mime), str)}
    if "text/plain" in kept:
        kept["text/plain"] = cut(kept["text/plain"], LIMITS.output_chars)
    picture = _details(_dict(about.get(PNG)))
    read: dict[str, Any] = {"data": kept, "metadata": {PNG: picture} if picture else {}}
    if output_type == "execute_result":
        read["execution_count"] = None
    return read


def _details(given: dict[Any, Any]) -> dict[str, str | int]:
    """Return a picture's text alternative, and its width as far as a page has room."""
    kept: dict[str, str | int] = {}
    alt, width = given.get("alt"), given.get("width")
    if isinstance(alt, str):
        kept["alt"] = cut(_text(alt), ERROR_CHARS)
    if type(width) is int and width > 0:
        kept["width"] = min(width, MAX_WIDTH)
    return kept


def _dict(given: object) -> dict[Any, Any]:
    return given if isinstance(given, dict) else {}


def _text(given: object) -> str:
    return well_formed(given) if isinstance(given, str) else ""


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n{CUT_OFF}"
