"""Texts of students that would be links, buttons or fields of a page, or take long to show."""

import time
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat import NotebookNode

from autograde.grading.limits import LIMITS
from autograde.grading.sanitise import (
    sanitise_text,
)

NOTHING = nbformat.v4.new_notebook()
MAY_KEEP = {"scope"}


def shown(text: str, kind: str = "markdown") -> str:
    """What pages show of a student's text cell."""
    cell = NotebookNode(cell_type=kind, source=text, metadata=NotebookNode())
    nb = NotebookNode(cells=[cell])
    sanitise_text(nb, NOTHING)
    assert nb.cells[0].cell_type == "markdown"
    return str(nb.cells[0].source)


class Attributes(HTMLParser):
    """Collects the elements of a page and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.found: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found |= dict(attrs)


MARKS = {
    "full credit": '<div class="full-credit">click me</div>',
    "a cell of nbgrader": (
        '<div class="nbgrader_cell"><input id="test_causal_mask" class="score">'
        '<button class="full-credit">ok</button></div>'
    ),
    "an id": '<p id="test_causal_mask">a</p>',
    "a name": '<a name="causal_mask-comment">a</a>',
    "data": '<span data-toggle="modal" data-target="#x" data-bs-content="a">a</span>',
    "style": '<div style="position:fixed;inset:0">a</div>',
    "a label": '<label for="test_causal_mask">a</label>',
    "access key": '<p accesskey="a" tabindex="1" contenteditable autofocus>a</p>',
    "heading": "# full-credit",
    "fenced": "```html\n<div class='full-credit'>\n```",
    "table": '<table><tr><td class="full-credit" id="b">a</td></tr></table>',
    "broken": "<div class='full-credit'\n>a</div><div\tclass=no-credit/>",
    "namespaces": '<svg><style><a id="</style><div class=full-credit>">',
    "mathml": '<math><mtext><table><mglyph><style><!--</style><p class="full-credit">',
    "reference": "[a]: https://e.org 'x\" class=\"full-credit'\n[a]",
    "link title": "[a](https://e.org '\" class=\"full-credit')",
    "picture": '![" class="full-credit](https://e.org/a.png)',
    "code span": "`<div class=full-credit>`",
    "entity": "&lt;div class=full-credit&gt;",
    "raw again": "&#10;&#10;<div class=full-credit>",
    "block ends": "a</div>\n\n<div class=full-credit>",
}
"""Text cells that would be buttons, fields or cells of Formgrader's page."""


@pytest.mark.parametrize("name", MARKS)
@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_no_element_can_be_found_by_the_page(name: str, kind: str) -> None:
    source = shown(MARKS[name], kind)
    assert "\n" not in source
    seen = Attributes(source)
    assert set(seen.found) <= MAY_KEEP
    assert not seen.tags & {"input", "button", "label", "svg", "math", "style", "img", "form", "a"}


LINKS = {
    "[read](https://google.com@evil.org/)": "read (https://google.com@evil.org/)",
    "[read](javascript:evil())": "read (javascript:evil())",
    '[read](/a "b")': "read (/a)",
    "[`read`](?a&b)": "<code>read</code> (?a&amp;b)",
    "<https://example.org/a>": "https://example.org/a",
    '<a href="//evil.org" target=_top>read</a>': "read",
}


@pytest.mark.parametrize("text", LINKS)
def test_a_link_becomes_words_with_its_address(text: str) -> None:
    assert f"<p>{LINKS[text]}</p>" in shown(text)


FORMULAS = [
    r"$\href{//evil.org}{x}$",
    "$&#92;href{//evil.org}{x}$",
    "$\\hr<!-- -->ef{//evil.org}{x}$",
    r"$\hrefé{x}$",
    r"$\href1{x}$",
    r'$\mmlToken{mi}[class="full-credit"]{x}$',
    r"$\bbox[10000px,border:9px]{x}$",
    r"$\class{full-credit}{x}$",
    r"$\cssId{a}{x}$",
    r"$\def\x{\href}$",
    r"$\let\x\href$",
    r"$\newcommand{\x}{\href}$",
    r"$\hr\href ef{x}$",
    r"\begin{align}\href{x}{y}\end{align}",
    r"$$\style{position:fixed}{x}$$",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_make_no_links_and_no_names(formula: str) -> None:
    source = shown(formula)
    for command in (
        "href",
        "mmlToken",
        "bbox",
        "class",
        "cssId",
        "def",
        "let",
        "newcommand",
        "style",
    ):
        assert f"\\{command}" not in source


def test_formulas_and_pictures_of_a_text_are_shown() -> None:
    assert r"$\frac{1}{\sqrt{d_k}} \cdot q_1 k_1$" in shown(r"$\frac{1}{\sqrt{d_k}} \cdot q_1 k_1$")
    assert "[picture: image.png]" in shown("![image.png](attachment:image.png)")


ROOM = LIMITS.text_cell_chars
COSTLY = {
    "parentheses": "[a](" * (ROOM // 4),
    "brackets": "[" * ROOM,
    "headings": "# a\n" * (ROOM // 4),
    "divs": "<div>" * (ROOM // 5),
    "tables": "|a" * 100 + "\n" + "|-" * 100 + "\n" + ("|" * 100 + "\n") * (ROOM // 150),
    "environments": r"\begin{a}" * (ROOM // 9),
    "definitions": "a\n: b\n" * (ROOM // 6),
    "emphasis": "*a _b " * (ROOM // 6),
    "quotes": ">" * ROOM,
    "lists": "\n".join("  " * depth + "- a" for depth in range(190)),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_text_as_long_as_it_may_be_is_shown_soon(name: str) -> None:
    began = time.process_time()
    assert len(shown(COSTLY[name])) < 20 * ROOM
    assert time.process_time() - began < 5
