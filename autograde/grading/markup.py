"""Students' Markdown as harmless HTML, for every page that shows a graded notebook."""

import re

import bleach
import nbformat
from nbconvert.filters import markdown2html
from nbformat import NotebookNode

# Headings, paragraphs, lists, tables, code and emphasis are what lessons and answers need.
TAGS = (
    {"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li"}
    | {"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "div"}
    | {"em", "strong", "del", "sub", "sup", "a", "img"}
)
ATTRIBUTES = {"*": ["class", "id"], "a": ["href"], "img": ["alt"], "th": ["scope"]}

MATH_THAT_ACTS = re.compile(r"\\(href|require|class|cssId|style|unicode|html\w*)\b")
"""TeX commands with which MathJax makes links, styles and identifiers."""


def harmless(html: str) -> str:
    """HTML without script, style, address of a picture, or link that is not to a web page."""
    return str(bleach.clean(html, tags=TAGS, attributes=ATTRIBUTES, protocols=["https", "http"]))


def sanitise_text(nb: NotebookNode, released: NotebookNode) -> None:
    """Replace every text cell that is not the lesson's own by what is harmless in it."""
    own = {cell.source.strip() for cell in released.cells if cell.cell_type == "markdown"} | {""}
    for index, cell in enumerate(nb.cells):
        if cell.cell_type == "code":
            continue
        cell.pop("attachments", None)
        # nbgrader puts locked cells back, a question with the marking scheme that students lack
        locked = cell.metadata.get("nbgrader", {}).get("locked", False)
        if cell.cell_type == "markdown":
            if cell.source.strip() not in own and not locked:
                cell.source = as_block(markdown2html(cell.source))
        else:  # pages show a raw cell as it is
            text = as_block(f"<pre>{bleach.clean(cell.source, tags=set())}</pre>")
            nb.cells[index] = nbformat.v4.new_markdown_cell(text, id=cell.id)


def as_block(html: str) -> str:
    """Harmless HTML as one line of Markdown, so that nothing in it is read as Markdown again."""
    text = harmless(html).replace("\n", "&#10;")
    return f"<div>{MATH_THAT_ACTS.sub('', text)}</div>"
