"""Make a student's text and a kernel's outputs harmless before any page shows them.

Outputs keep text and PNG pictures. Text cells keep the HTML that is needed to read them.
Formgrader is a page with a grader's rights: a click on an element of a certain class saves a score,
and a field is found by its id. So attributes by which a page finds or shows an element are removed.
"""

import base64
import binascii
import re
import struct
from collections import Counter
from html import escape
from time import thread_time
from typing import Any

import nh3
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from autograde.course import code_cells
from autograde.grading.limits import LIMITS
from autograde.rubric.recording import MIME
from autograde.values.text import readable, well_formed

BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
PNG = "image/png"
KEPT = ("text/plain", PNG, MIME)
MAX_WIDTH = 840
"""Pixels: the room in Formgrader's column. Figures have more than twice as many, to be sharp."""
ERROR_CHARS = 2_000
LAST_LINES = 50
CUT_OFF = "[cut off]"
AS_TYPED = "<p><em>[shown as it was typed: it is long, or formatting it takes long]</em></p>"
MOST_HTML = 6
"""Characters of HTML for one of Markdown."""

# Headings, paragraphs, lists, tables, code and emphasis are what lessons and answers need.
TAGS = (
    {"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li"}
    | {"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "div"}
    | {"em", "strong", "del", "sub", "sup"}
)
STUDENTS = nh3.Cleaner(tags=TAGS, attributes={"*": set(), "th": {"scope"}}, link_rel=None)
OFFLINE = nh3.Cleaner(tags=TAGS, attributes={"*": {"class"}, "th": {"scope"}}, link_rel=None)
MATH_THAT_ACTS = re.compile(
    r"\\(href|url|require|class|cssId|style|data|unicode|html\w*|mmlToken|bbox|enclose|"
    r"[bx]?cancel(?:to)?|texttip|mathtip|toggle|label|(?:eq)?ref|includegraphics|"
    r"(?:re|provide)?new(?:command|environment)|[gex]?def|let|DeclareMathOperator)(?![A-Za-z])"
)
"""TeX commands with which MathJax makes links, styles, identifiers, and names for those."""


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
            "ename": _cut(_text(content.get("ename")), ERROR_CHARS),
            "evalue": _cut(_text(content.get("evalue")), ERROR_CHARS),
            "traceback": [_cut(_text(line), LIMITS.output_chars) for line in last],
        }
    data, about = _dict(content.get("data")), _dict(content.get("metadata"))
    kept = {mime: _text(data[mime]) for mime in KEPT if isinstance(data.get(mime), str)}
    if "text/plain" in kept:
        kept["text/plain"] = _cut(kept["text/plain"], LIMITS.output_chars)
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
        kept["alt"] = _cut(_text(alt), ERROR_CHARS)
    if type(width) is int and width > 0:
        kept["width"] = min(width, MAX_WIDTH)
    return kept


def _dict(given: object) -> dict[Any, Any]:
    return given if isinstance(given, dict) else {}


def _text(given: object) -> str:
    return well_formed(given) if isinstance(given, str) else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n{CUT_OFF}"


def as_on_a_terminal(text: str) -> str:
    """Keep of each line what follows its last carriage return, as a progress bar wants it."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def sanitise_outputs(nb: NotebookNode) -> None:
    """Keep text and PNG pictures with their words and width, as far as a page has room."""
    taken: Counter[str] = Counter()
    for cell in code_cells(nb):
        found = [output for output in map(_reduced, cell.outputs) if output is not None]
        cell.outputs = []
        for output in found:
            more = taken + _sizes(output)
            if all(size <= getattr(LIMITS, limit) for limit, size in more.items()):
                taken = more
                cell.outputs.append(output)
        if len(cell.outputs) < len(found):
            cell.outputs.append(NotebookNode(output_type="stream", name="stdout", text=CUT_OFF))


def _sizes(output: NotebookNode) -> Counter[str]:
    """Return how much of each limit on a page an output takes."""
    data = output.get("data", {})
    text = [output.get("text", ""), *output.get("traceback", []), data.get("text/plain", "")]
    picture = len(data.get(PNG, ""))
    return Counter(page_chars=sum(map(len, text)), pictures=bool(picture), picture_bytes=picture)


def _reduced(output: NotebookNode) -> NotebookNode | None:
    output_type = output.output_type
    if output_type not in ("stream", "error", "display_data", "execute_result"):
        return None
    content = plain_content(output_type, output)
    if output_type == "stream":
        content["text"] = _cut(_shown(content["text"]), LIMITS.output_chars)
    if output_type == "error":
        content |= {"traceback": [_shown(line) for line in content["traceback"]]}
    if output_type in ("stream", "error"):
        return NotebookNode(output_type=output_type, **content)
    data, metadata = content["data"], {}
    shown = {"text/plain": _shown(data["text/plain"])} if "text/plain" in data else {}
    if _is_small_picture(data.get(PNG, "")):
        shown[PNG], metadata = data[PNG], content["metadata"]
    if not shown:
        return None
    return NotebookNode(output_type="display_data", data=shown, metadata=metadata)


def _shown(text: str) -> str:
    """Return an output's text as pages show it: without colours, behind which marks could hide."""
    return readable(strip_ansi(text))


def _is_small_picture(text: str) -> bool:
    """Return whether this is base64 of a PNG with no more pixels than a page may hold."""
    if not text or not BASE64.fullmatch(text):
        return False
    try:
        head = base64.b64decode("".join(text[:64].split())[:32])
        width, height = struct.unpack(">II", head[16:24])
    except (binascii.Error, struct.error):
        return False
    return head.startswith(b"\x89PNG") and 0 < width * height <= LIMITS.picture_pixels


def sanitise_text(nb: NotebookNode, released: NotebookNode) -> None:
    """Replace every text cell that is not the lesson's own with its harmless parts."""
    own = {cell.source.strip() for cell in released.cells if cell.cell_type == "markdown"} | {""}
    seconds = 0.0
    for cell in nb.cells:
        if cell.cell_type == "code":
            continue
        # nbgrader restores locked cells, so a question has its marking scheme and is not in `own`
        locked = cell.metadata.get("nbgrader", {}).get("locked", False)
        if cell.cell_type == "raw":  # pages show a raw cell as it is
            cell.cell_type = "markdown"
            cell.source = _plain(cell.source)
        elif cell.source.strip() in own and not locked:
            cell.source = cell.source.strip()
        elif not locked:
            began = thread_time()
            late = seconds > LIMITS.format_seconds
            cell.source = (None if late else _formatted(cell.source)) or _plain(
                cell.source, AS_TYPED
            )
            seconds += thread_time() - began


def _formatted(text: str) -> str | None:
    """Return Markdown as a block of harmless HTML; None if that is too much."""
    if len(text) > LIMITS.markdown_chars:
        return None
    html = STUDENTS.clean(MarkdownWithMath(renderer=_Renderer()).render(readable(text)))
    return _as_block(html) if len(html) < MOST_HTML * (len(text) + 100) else None


def _plain(text: str, note: str = "") -> str:
    """Return a text as a block that shows it as it was typed, below a note."""
    return _as_block(f"{note}<pre>{escape(text)}</pre>")


class _Renderer(IPythonRenderer):
    """Renders Markdown as HTML, with words for links and pictures.

    A click on a link would leave the grader's page for one of the student's choice; the address is
    there to be read. Pictures would be loaded, and do not fit.
    """

    def __init__(self) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return text if text == escape(url) else f"{text} ({escape(url)})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"<em>[picture: {escape(text) or 'without words'}]</em>"


def _as_block(html: str) -> str:
    """Return harmless HTML as one line of Markdown, so that it is not read as Markdown again.

    It has no script, style, picture or link. `clean` reads character references, so it may bring
    back what `readable` has taken out. From each "[" on, Formgrader looks for a link to a file.
    """
    html = MATH_THAT_ACTS.sub(r" \1", readable(STUDENTS.clean(html)))
    return f"<div>{html}</div>".replace("\n", "&#10;").replace("[", "&#91;")


def offline(html: str) -> str:
    """Return HTML for a page without links and pictures; it keeps the classes that colour code."""
    return OFFLINE.clean(html)
