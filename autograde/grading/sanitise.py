"""Make a judged notebook as pages show it: harmless, with a panel for each verdict.

Text cells keep the HTML that is needed to read them.
Formgrader is a page with a grader's rights: a click on an element of a certain class saves a score,
and a field is found by its id. So attributes by which a page finds or shows an element are removed.

Libraries that colour code and format text take time that grows with the square of some texts'
length, and cannot be interrupted. So what is long is not given to them. Formgrader formats again
what grading has written; what is quick here is quick there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import escape

import nh3
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from autograde.course.cells import code_cells, named_cells
from autograde.course.lessons import Lesson
from autograde.course.versions import Version, notebook_of
from autograde.grading.limits import LIMITS
from autograde.grading.record import Record
from autograde.rubric.panel import advice, to_display
from autograde.rubric.recording import MIME
from autograde.values.text import readable

AS_TYPED = "<p><em>[shown as it was typed: it is long, or becomes long as a page]</em></p>"
MOST_HTML = 6
"""Characters of HTML for one of Markdown."""
LONG_SPACE = re.compile(r"\s{300}")
"""White space this long: at each place in it, a lexer looks ahead for its end, which takes long."""
WITHOUT_COLOURS = "text"
"""The lexer of pygments that takes a text as it is."""
SAID = "Code is shown without colours: it is long, or has long runs of spaces."

# Headings, paragraphs, lists, tables, code and emphasis are what lessons and answers need.
TAGS = (
    {"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li"}
    | {"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "div"}
    | {"em", "strong", "del", "sub", "sup"}
)
STUDENTS = nh3.Cleaner(tags=TAGS, attributes={"*": set(), "th": {"scope"}}, link_rel=None)
MATH_THAT_ACTS = re.compile(
    r"\\(href|url|require|class|cssId|style|data|unicode|html\w*|mmlToken|bbox|enclose|"
    r"[bx]?cancel(?:to)?|texttip|mathtip|toggle|label|(?:eq)?ref|includegraphics|"
    r"(?:re|provide)?new(?:command|environment)|[gex]?def|let|DeclareMathOperator)(?![A-Za-z])"
)
"""TeX commands with which MathJax makes links, styles, identifiers, and names for those."""


def as_shown(record: Record, version: Version) -> Record:
    """Return a judged notebook as pages may show it, with all that they say of the lesson."""
    nb, lesson, released = record.nb, version.lesson, notebook_of(version)
    sanitise_outputs(nb)
    sanitise_text(nb, released)
    remarks = [*record.remarks, *([] if colour_or_not(nb, released) else [SAID])]
    _show_verdicts(record, lesson)
    ways = {
        name: each
        for name, each in json.loads(version.ways or b"{}").items()
        if name in record.verdicts and record.verdicts[name].passed
    }
    remarks += _withdrawn(record, lesson)
    return replace(record, title=lesson.title, remarks=remarks, ways=ways)


def _show_verdicts(record: Record, lesson: Lesson) -> None:
    """Replace the outputs of each rubric cell with the panel of its verdict."""
    cells = named_cells(record.nb)
    for exercise in lesson.exercises:
        verdict = record.verdicts[exercise.name]
        data = to_display(verdict, advice(verdict, named=True))
        cells[exercise.rubric_cell].outputs = [
            NotebookNode(output_type="display_data", data=data, metadata={})
        ]


def _withdrawn(record: Record, lesson: Lesson) -> Iterator[str]:
    for exercise in lesson.exercises:
        for line in record.verdicts[exercise.name].lines:
            if line.name in exercise.withdrawn and line.passed:
                yield (
                    f"Your teacher has withdrawn a line of {exercise.name}, so it counts as right: "
                    f"“{line.name}”."
                )


def sanitise_outputs(nb: NotebookNode) -> None:
    """Make readable what cells showed, and leave recordings out."""
    for cell in code_cells(nb):
        cell.outputs = [o for o in cell.outputs if MIME not in o.get("data", {})]
        for output in cell.outputs:
            if output.output_type == "stream":
                output.text = _shown(output.text)
            elif output.output_type == "error":
                output.traceback = [_shown(line) for line in output.traceback]
            elif "text/plain" in output.data:
                output.data["text/plain"] = _shown(output.data["text/plain"])


def _shown(text: str) -> str:
    """Return an output's text as pages show it: without colours, behind which marks could hide."""
    return readable(strip_ansi(text))


def sanitise_text(nb: NotebookNode, released: NotebookNode) -> None:
    """Replace every text cell that is not the lesson's own with its harmless parts."""
    own = {cell.source.strip() for cell in released.cells if cell.cell_type == "markdown"} | {""}
    room = LIMITS.all_markdown_chars
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
            text, most = cell.source, min(room, LIMITS.markdown_chars)
            cell.source = _formatted(text, most) or _plain(text, AS_TYPED)
            room -= len(text)


def _formatted(text: str, most: int) -> str | None:
    """Return Markdown as a block of harmless HTML; None if that is too much."""
    if len(text) > most:
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


def colour_or_not(nb: NotebookNode, released: NotebookNode) -> bool:
    """Make the code of a notebook readable, without colours if it is long; return whether so."""
    given, own = Counter(cell.source for cell in code_cells(released)), []
    for cell in code_cells(nb):
        if given[cell.source]:
            given[cell.source] -= 1
        else:
            own.append(cell)
    room = LIMITS.all_shown_chars
    for cell in own:
        cell.source = _code(cell.source, min(room, LIMITS.shown_chars))
        room = max(0, room - len(cell.source))
    sizes = [len(cell.source) for cell in own]
    long = max(sizes, default=0) > LIMITS.coloured_chars or sum(sizes) > LIMITS.all_coloured_chars
    if not long and not any(LONG_SPACE.search(cell.source) for cell in own):
        return True
    about = nb.metadata.get("language_info", {"name": "python"})
    nb.metadata["language_info"] = {**about, "pygments_lexer": WITHOUT_COLOURS}
    return False


def _code(source: str, room: int) -> str:
    if len(source) > room:
        source = f"{source[:room]}\n# [cut off; all {len(source)} characters were run]"
    return readable(source)
