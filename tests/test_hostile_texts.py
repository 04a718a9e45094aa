"""Texts of students that would be links, buttons or fields of a page, or take long to show."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from html import unescape
from html.parser import HTMLParser
from unicodedata import category

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbformat import NotebookNode
from nightly import nightly

from autograde.grading.feedback import from_markdown, offline, page
from autograde.grading.limits import LIMITS
from autograde.grading.record import Record, write_record
from autograde.grading.sanitise import colour_or_not, sanitise_outputs, sanitise_text
from autograde.grading.submission import Marks
from autograde.values.text import visible

NOTHING = nbformat.v4.new_notebook()
MAY_KEEP = {"scope"}


def shown(text: str, kind: str = "markdown") -> str:
    """What pages show of a student's text cell."""
    cell = NotebookNode(cell_type=kind, source=text, metadata=NotebookNode())
    nb = NotebookNode(cells=[cell])
    sanitise_text(nb, NOTHING)
    assert nb.cells[0].cell_type == "markdown"
    return str(nb.cells[0].source)


def code_shown(source: str) -> str:
    """What pages show of a student's code."""
    nb = graded_notebook(nbformat.v4.new_code_cell(source))
    colour_or_not(nb, NOTHING)
    return str(nb.cells[0].source)


def printed(text: str) -> str:
    """What pages show of an output, with colours in it that they leave out."""
    text = "\x1b[0m".join([text[:3], text[3:9], text[9:]])
    output = nbformat.v4.new_output("stream", text=text)
    nb = graded_notebook(nbformat.v4.new_code_cell("1", outputs=[output]))
    sanitise_outputs(nb)
    return str(nb.cells[0].outputs[0].text)


def graded_notebook(*cells: NotebookNode) -> NotebookNode:
    nb = nbformat.v4.new_notebook(cells=list(cells))
    nb.metadata |= {"language_info": {"name": "python"}}
    return write_record(Record(nb))


@cache
def exporter() -> HTMLExporter:
    made = HTMLExporter(template_name="classic")
    made.from_notebook_node(graded_notebook())  # it reads its templates now
    return made


def formgrader(nb: NotebookNode) -> str:
    """The page of a submission, as Formgrader makes it, without its frame."""
    html, _ = exporter().from_notebook_node(nb)
    return str(html)


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
    **{
        f"a line break by reference, {reference}": f"<div>a{reference * 2}# test_f</div>"
        for reference in ("&#13;", "&#10;", "&#x0d;", "&#11;", "&#12;", "&#x85;", "&#x2028;")
    },
    "a line break in a formula": "$a&#13;&#13;# test_f&#13;&#13;$",
    "a line break in a code span": "`a&#13;\r\r# test_f`",
    "a link on a line of its own": "<p>a&#13;&#13;[a](https://e.org) ![p](/logout)&#13;&#13;</p>",
    "ends without beginnings": (
        "<div>x&#13;&#13;```&#13;<div><div><div>&#13;```&#13;&#13;</div></div></div></div>"
    ),
    "a definition": "<div>a&#13;&#13;[a]: https://e.org&#13;&#13;[a]</div>",
    "a formula of its own": "<div>a&#13;&#13;$$&#13;&#13;# test_f&#13;&#13;$$</div>",
    "a page break": "<div>a\f\f# test_f\x1c\x1d# b\x85\x85# c\u2028\u2028# d\r\r# e</div>",
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


@pytest.mark.parametrize("name", MARKS)
@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_text_that_is_parsed_again_stays_what_it_is(name: str, kind: str) -> None:
    """By Formgrader's parser of Markdown, then by both of HTML, twice."""
    source = shown(MARKS[name], kind)
    formgraders = markdown2html(source)
    assert formgraders.strip() == source
    ours, theirs = from_markdown(source), str(BeautifulSoup(formgraders, "html.parser"))
    assert offline(ours) == ours
    assert str(BeautifulSoup(theirs, "html.parser")) == theirs
    assert Attributes(theirs).tags == Attributes(ours).tags == Attributes(source).tags
    assert set(Attributes(theirs).found) <= MAY_KEEP
    assert not any(c < " " and c not in "\t\n" for c in theirs)


HIGH = "\u0301" * 100
MARKED = {
    "accents": f"a{HIGH}b",
    "references": "a" + "&#x301;" * 100,
    "enclosing": "a" + "\u20dd\u0489" * 50,
    "joined": "a" + f"\u200d{HIGH[:4]}" * 25,
    "on nothing": HIGH,
}


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("show", [shown, code_shown, printed, visible])
def test_a_character_has_few_marks(name: str, show: Callable[[str], str]) -> None:
    source = unescape(show(MARKED[name] if show in (shown,) else unescape(MARKED[name])))
    assert sum(category(c) in ("Mn", "Me") for c in source) <= 4
    assert show("é naïve a\u0301\u0323 ไม่ שָׁ") == show("é naïve a\u0301\u0323 ไม่ שָׁ")
    for word in ("é naïve", "a\u0301\u0323", "ไม่", "שָׁ"):
        assert word in show("é naïve a\u0301\u0323 ไม่ שָׁ")


def test_code_shows_what_was_run() -> None:
    assert code_shown("a\0b = '\u202ex'\r\n\tc\x0b") == "a\ufffdb = '\ufffdx'\n\tc\n"


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
    assert "&#91;picture: image.png]" in shown("![image.png](attachment:image.png)")


ROOM = LIMITS.markdown_chars
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
    "lists": "\n".join("  " * depth + "- a" for depth in range(120)),
    "links to files": "[](files/" * (ROOM // 9),
    "formulas in brackets": "\\\\[" * (ROOM // 3),
    "formulas on lines": "\\\\[\n\n" * (ROOM // 5),
    "formulas in parentheses": "(\\\\(\\\\[" * (ROOM // 7),
    "cells without words": "a|b\n-|-\n" + "|\n" * (ROOM // 2 - 5),
    "blank lines": " \n" * (ROOM // 2),
    "comments": "<!--" * (ROOM // 4),
    "accents": "<em a=1><strong a=2>" * 200 + "<p>" * 1000,
}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < seconds


@nightly
@pytest.mark.parametrize("name", COSTLY)
def test_texts_as_long_as_they_may_be_are_shown_soon(name: str) -> None:
    """As many as there may be, one of them too long to be formatted."""
    texts = [COSTLY[name]] * 11 + [COSTLY[name] * 2]
    exporter()
    cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
    nb = graded_notebook(*cells)
    with at_most(2):
        sanitise_text(nb, NOTHING)
    assert sum(len(cell.source) for cell in cells) < 10 * sum(map(len, texts))
    with at_most(2):
        formgrader(nb)


LONG = LIMITS.source_chars
SOURCES = {
    "lines with a space": " \n" * (LONG // 2),
    "spaces": " " * LONG,
    "tabs": "1" + "\t\n" * (LONG // 2) + "1",
    "short runs of blank lines": (" \n" * 149 + "a") * (LONG // 299),
    "parentheses": "(" * LONG,
    "tags": "<" * LONG,
    "quotes": '"""' * (LONG // 3),
    "a long line": "x" * LONG,
    "magics": "%%a\n" * (LONG // 4),
    "operators": "@ " * (LONG // 2),
    "dots": "a." * (LONG // 2),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("total", [LIMITS.all_coloured_chars, LONG])
@pytest.mark.parametrize("chars", [LIMITS.coloured_chars, LONG])
def test_code_as_long_as_it_may_be_is_shown_soon(name: str, chars: int, total: int) -> None:
    """In cells of this many characters, all of them alike."""
    source = SOURCES[name][: min(chars, total)]
    cells = [nbformat.v4.new_code_cell(source) for _ in range(total // len(source))]
    nb = graded_notebook(*cells)
    exporter()
    with at_most(2):
        colour_or_not(nb, NOTHING)
        page(write_record(Record(nb)), Marks())
    with at_most(2):
        formgrader(nb)


def test_ordinary_code_is_coloured_and_long_code_is_not() -> None:
    nb = graded_notebook(nbformat.v4.new_code_cell("def f():\n    return 1"))
    assert colour_or_not(nb, NOTHING)
    assert '<span class="k">def</span>' in formgrader(nb)
    nb.cells += [nbformat.v4.new_code_cell("x = 1\n" * 2_000)]
    assert not colour_or_not(nb, NOTHING)
    assert '<span class="k">' not in formgrader(nb)
    assert b'<span class="k">' not in page(write_record(Record(nb)), Marks())
    assert colour_or_not(nb, graded_notebook(*nb.cells))  # the lesson's own
