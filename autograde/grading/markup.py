"""Students' Markdown as harmless HTML, for every page that shows a graded notebook.

Formgrader is a page with a grader's rights: a click on an element of a certain class saves a score,
a field is found by its id. So a student's HTML keeps no attribute by which a page finds or shows an
element, only what is needed to read it.
"""

import re
from html import escape
from urllib.parse import urlsplit

import nh3
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

# Headings, paragraphs, lists, tables, code and emphasis are what lessons and answers need.
TAGS = (
    {"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li"}
    | {"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "div"}
    | {"em", "strong", "del", "sub", "sup"}
)
STUDENTS = nh3.Cleaner(
    tags=TAGS | {"a"},
    attributes={"*": set(), "a": {"href"}, "th": {"scope"}},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer",
    url_schemes={"https", "http"},
    url_relative="deny",
)
OFFLINE = nh3.Cleaner(tags=TAGS, attributes={"*": {"class"}, "th": {"scope"}}, link_rel=None)
LINK = re.compile(r'(<a href="([^"]*)"[^>]*>)(.*?)</a>', re.DOTALL)

MATH_THAT_ACTS = re.compile(
    r"\\(href|url|require|class|cssId|style|data|unicode|html\w*|mmlToken|bbox|enclose|"
    r"[bx]?cancel(?:to)?|texttip|mathtip|toggle|label|(?:eq)?ref|includegraphics|"
    r"(?:re|provide)?new(?:command|environment)|[gex]?def|let|DeclareMathOperator)(?![A-Za-z])"
)
"""TeX commands with which MathJax makes links, styles, identifiers, and names for those."""


class _Renderer(IPythonRenderer):
    """Markdown as HTML in which a picture is a word: no page of ours loads one, or has room."""

    def __init__(self) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"<em>[picture: {escape(text) or 'without words'}]</em>"


def harmless(html: str) -> str:
    """A student's HTML without script, style, picture, or anything by which a page finds an
    element. A link opens apart and shows where it leads."""
    return MATH_THAT_ACTS.sub(r" \1", LINK.sub(_shows_its_host, STUDENTS.clean(html)))


def offline(html: str) -> str:
    """HTML for a page without links and pictures; classes stay, which colour a lesson's code."""
    return OFFLINE.clean(html)


def sanitise_text(nb: NotebookNode, released: NotebookNode) -> None:
    """Replace every text cell that is not the lesson's own by what is harmless in it."""
    own = {cell.source.strip() for cell in released.cells if cell.cell_type == "markdown"} | {""}
    for cell in nb.cells:
        if cell.cell_type == "code":
            continue
        # nbgrader puts locked cells back, a question with the marking scheme that students lack
        locked = cell.metadata.get("nbgrader", {}).get("locked", False)
        if cell.cell_type == "raw":  # pages show a raw cell as it is
            cell.cell_type = "markdown"
            cell.source = _as_block(f"<pre>{escape(cell.source)}</pre>")
        elif cell.source.strip() not in own and not locked:
            html = MarkdownWithMath(renderer=_Renderer()).render(cell.source)
            cell.source = _as_block(html)


def _as_block(html: str) -> str:
    """Harmless HTML as one line of Markdown, so that nothing in it is read as Markdown again."""
    return f"<div>{harmless(html)}</div>".replace("\n", "&#10;")


def _shows_its_host(link: re.Match[str]) -> str:
    host = urlsplit(link[2]).hostname or "elsewhere"
    return f"{link[1]}{link[3]}</a> ({escape(host)})"
