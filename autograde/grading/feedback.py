"""Make the feedback page of a graded notebook: its content as plain values, then the page."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML, markdown2html, strip_ansi
from nbformat import NotebookNode

from autograde.course.cells import grade_id
from autograde.course.versions import Version, notebook_of
from autograde.grading.record import METADATA_KEY, Record, read_record, write_record
from autograde.grading.running.outputs import PNG
from autograde.grading.sanitise import TAGS
from autograde.grading.submission import NO_ANSWER, Marks
from autograde.rubric.judge import Verdict
from autograde.rubric.panel import advice, lines_html
from autograde.values.text import await_marking, inline, number, of_points

HEADING = re.compile(r"<h([1-6])[^>]*>(.*?)</h\1>", re.DOTALL)
PARAGRAPH_MARK = re.compile(r'<a class="anchor-link"[^>]*>[^<]*</a>')
MARK_SCHEME = re.compile(
    r"^[^\n]*BEGIN MARK SCHEME[^\n]*\n.*?^[^\n]*END MARK SCHEME[^\n]*(\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
OFFLINE = nh3.Cleaner(tags=TAGS, attributes={"*": {"class"}, "th": {"scope"}}, link_rel=None)
TEXT = Markup('<div class="output"><pre tabindex="0">{}</pre></div>\n')
PICTURE = Markup('<div class="output"><img src="data:image/png;base64,{}" alt="{}"{}></div>\n')
SCROLLED = Markup('<pre tabindex="0">')
"""Wide code is scrolled; with a tab stop, by the keyboard too."""
WIDTH = Markup(' width="{}"')
FILTERS = {
    "number": number,
    "of_points": of_points,
    "await_marking": await_marking,
    "percent": "{:.0%}".format,
    "inline": lambda text: Markup(inline(text)),  # noqa: S704 (it escapes)
}


def template(path: Path) -> Template:
    """Return the template of a teacher's page; it escapes all that is put in."""
    environment = Environment(
        loader=FileSystemLoader(path.parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= FILTERS
    return environment.get_template(path.name)


def page(nb: NotebookNode, marks: Marks) -> bytes:
    """Return the page of a graded notebook, into which it puts scores and comments."""
    return _rendered(nb, put_marks(nb, marks)).encode("utf-8", "xmlcharrefreplace")


def _rendered(nb: NotebookNode, about: dict[str, Any]) -> str:
    """Return the page of a notebook with scores and comments, by facts in nbgrader's names.

    It works offline: no script, nothing loaded, no address but its own parts.
    """
    about_code = nb.metadata.get("language_info", {})
    coloured = _highlighter(about_code.get("pygments_lexer", about_code.get("name")))
    return _template().render(
        page=page_of(nb), total=about, coloured=coloured, lines_html=lines_html,
        shown_outputs=shown_outputs,
    )  # fmt: skip


@cache
def _highlighter(lexer: str | None) -> Callable[[str], Markup]:
    """Return a function that colours code. It caches: most cells of a class are the same."""
    highlight = Highlight2HTML(pygments_lexer=lexer)

    @lru_cache(maxsize=1024)
    def coloured(code: str) -> Markup:
        return Markup(highlight(code).replace("<pre>", SCROLLED))  # noqa: S704 (it escapes)

    return coloured


@cache
def _template() -> Template:
    return template(Path(__file__).with_name("feedback.html.j2"))


def put_marks(nb: NotebookNode, marks: Marks) -> dict[str, Any]:
    """Put scores and comments where nbgrader puts them, and take marking schemes out.

    Returns the facts on the whole notebook, by nbgrader's names.
    """
    for cell in nb.cells:
        about, cell_name = cell.metadata.get("nbgrader", {}), grade_id(cell) or ""
        if about.get("solution"):
            about["comment"] = marks.comment(cell_name)
        if about.get("grade"):
            about["score"], about["points"] = marks.score(cell_name), marks.points[cell_name]
            about["again"] = cell_name in marks.again()
        elif cell.cell_type == "markdown":
            cell.source = MARK_SCHEME.sub("", cell.source)
    return {
        "score": marks.total(),
        "max_score": sum(marks.points.values()),
        "late_penalty": marks.penalty or 0,
        "student_name": marks.student,
    }


@lru_cache(maxsize=8)
def warm_up(version: Version) -> None:
    """Make a lesson's page once in a process: later ones reuse its template and highlighting."""
    about = {"score": 0.0, "max_score": 0.0, "late_penalty": 0, "student_name": ""}
    _rendered(write_record(Record(deepcopy(notebook_of(version)))), about)


class FeedbackExporter(HTMLExporter):
    """Makes the page for `nbgrader generate_feedback`, and of a plain assignment nbgrader's own."""

    def from_notebook_node(  # type: ignore[override]  # as HTMLExporter's
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Take nbgrader's steps, then return the page."""
        if METADATA_KEY not in nb.metadata:
            return super().from_notebook_node(nb, resources, **options)
        marked, about = super(TemplateExporter, self).from_notebook_node(nb, resources, **options)
        return _rendered(marked, about["nbgrader"]), about


@dataclass(frozen=True)
class Part:
    """A heading of the lesson, and the place on the page where it stands."""

    anchor: str
    title: str


@dataclass(frozen=True)
class Item:
    """One exercise or written answer, its score and its paragraphs.

    `verdict` is None where there is no rubric; `by_hand` says that a person gave the score, and
    `again` that this was before the answer changed. `ways` are other right answers.
    """

    name: str
    score: float | None
    points: float
    anchor: str
    verdict: Verdict | None = None
    said: tuple[str, ...] = ()
    by_hand: bool = False
    again: bool = False
    comment: str = ""
    part: Part | None = None
    ways: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Block:
    """One cell. `graded` is what a rubric cell or an answer marked by hand was given.

    `folded` says that its code, which was not run, is hidden until a reader asks for it.
    """

    cell: NotebookNode
    anchor: str
    text: str = ""
    graded: Item | None = None
    comment: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """The whole page; `record` is what grading found out."""

    record: Record
    graded: list[Item]
    blocks: list[Block]

    @property
    def waiting(self) -> float:
        """The points that are still to be given by hand."""
        return sum(each.points for each in self.graded if each.score is None)


def page_of(nb: NotebookNode) -> Page:
    """Read a graded notebook that has scores and comments in its nbgrader metadata."""
    record = read_record(nb) if METADATA_KEY in nb.metadata else Record(nb)  # as it was handed out
    comments = {
        grade_id(cell) or "": str(cell.metadata.get("nbgrader", {}).get("comment") or "")
        for cell in nb.cells
    }
    outline, items, blocks = _Outline(), [], []
    for place, cell in enumerate(nb.cells):
        name = grade_id(cell) or ""
        if not name and not cell.source.strip() and not cell.get("outputs"):
            continue  # like the one that JupyterLab adds at the end
        text = outline.place(from_markdown(cell.source)) if cell.cell_type == "markdown" else ""
        item = None
        if cell.metadata.get("nbgrader", {}).get("grade"):
            exercise = name.removeprefix("test_")
            item = _item(cell, record, comments.get(exercise, ""), outline.part)
            items.append(item)
        judged = name in record.verdicts  # then the comment stands with the verdict
        comment = "" if judged else comments.get(name, "")
        anchor = f"cell-{name}" if name else f"cell-{place}"
        folded = cell.get("id") in record.left_out
        blocks.append(Block(cell, anchor, text, item, comment, folded))
    return Page(record, items, blocks)


def _item(cell: NotebookNode, record: Record, comment: str, part: Part | None) -> Item:
    about = cell.metadata["nbgrader"]
    name = about["grade_id"].removeprefix("test_")
    score, points = about.get("score"), float(about["points"])
    verdict, ways = record.verdicts.get(name), tuple(record.ways.get(name, ()))
    anchor, again = f"cell-{about['grade_id']}", bool(about.get("again"))
    item = Item(name, score, points, anchor, again=again, comment=comment, part=part)
    if verdict is None:
        return item
    return replace(
        item,
        anchor=f"exercise-{name}",
        verdict=verdict,
        said=tuple("\n".join(advice(verdict, named=True)).splitlines()),
        by_hand=score is not None and abs(score - verdict.points) > 1e-6,
        comment="" if comment == NO_ANSWER and not verdict.attempted else comment,
        ways=ways,
    )


def shown_outputs(cell: NotebookNode) -> Markup:
    """Return what a cell of a graded notebook showed: text, errors and pictures."""
    first = next((line for line in cell.source.splitlines() if line.strip("# ")), "")
    html = Markup()
    for output in cell.outputs:
        data = output.get("data", {})
        text = "\n".join(output.get("traceback", [])) or output.get("text", data.get("text/plain"))
        if picture := data.get(PNG):
            about = output.get("metadata", {}).get(PNG, {})
            alt = about.get("alt") or f"The figure of the cell that begins: {first[:60]}"
            width = WIDTH.format(about["width"]) if about.get("width") else ""
            html += PICTURE.format(picture, alt, width)
        elif text is not None:
            html += TEXT.format(strip_ansi(text))
    return html


@lru_cache(maxsize=1024)
def from_markdown(source: str) -> Markup:
    """Return Markdown as HTML without script, style, picture, link to elsewhere, or anchors.

    It caches results, because most cells of a class are the same.
    """
    return Markup(offline(PARAGRAPH_MARK.sub("", markdown2html(source))))  # noqa: S704 (sanitised)


def offline(html: str) -> str:
    """Return HTML for a page without links and pictures; it keeps the classes that colour code."""
    return OFFLINE.clean(html)


class _Outline:
    """Makes notebook headings page headings: below the page's own, with no level skipped.

    Headings of one level stay on one level.
    """

    def __init__(self) -> None:
        self.part: Part | None = None
        self._above: list[int] = []  # the levels in the notebook of the headings around
        self._count = 0

    def place(self, html: Markup) -> Markup:
        placed = HEADING.sub(self._heading, html)
        return Markup(placed.replace("<pre>", SCROLLED))  # noqa: S704 (sanitised before)

    def _heading(self, found: re.Match[str]) -> str:
        level, inner = int(found[1]), found[2]
        self._count += 1
        self._above = [*takewhile(level.__gt__, self._above), level]
        shown = min(len(self._above) + 1, 6)
        anchor = f"part-{self._count}"
        title = Markup(inner).striptags()  # noqa: S704
        if level <= 2:
            self.part = Part(anchor, title)
        return f'<h{shown} id="{anchor}">{inner}</h{shown}>'
