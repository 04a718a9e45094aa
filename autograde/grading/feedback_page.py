"""What a feedback page says, as plain values: from a graded notebook with its scores."""

import re
from dataclasses import dataclass, field

from markupsafe import Markup
from nbconvert.filters import markdown2html
from nbformat import NotebookNode

from autograde.course import grade_id
from autograde.grading.markup import offline
from autograde.grading.verdicts import NOTE, judged, read_verdicts
from autograde.rubric.judge import Verdict
from autograde.rubric.panel import advice

HEADING = re.compile(r"<h([1-6])[^>]*>(.*?)</h\1>", re.DOTALL)
PARAGRAPH_MARK = re.compile(r'<a class="anchor-link"[^>]*>[^<]*</a>')
NO_ANSWER = "No response."
"""What nbgrader says by itself of an untouched answer."""


@dataclass(frozen=True)
class Part:
    """A heading of the lesson, and the place on the page where it stands."""

    anchor: str
    title: str


@dataclass(frozen=True)
class Graded:
    """One exercise or written answer: its score, and what is to be said of it.

    `verdict` is None where there is no rubric, `judged` says whether its lines were judged one by
    one, `by_hand` that a person gave the score.
    """

    name: str
    score: float | None
    points: float
    anchor: str
    verdict: Verdict | None = None
    judged: bool = False
    said: tuple[str, ...] = ()
    by_hand: bool = False
    comment: str = ""
    part: Part | None = None


@dataclass(frozen=True)
class Block:
    """One cell. `graded` is what a rubric cell or a written answer was given.

    `folded` says that its code is hidden until one asks for it.
    """

    cell: NotebookNode
    anchor: str
    text: str = ""
    graded: Graded | None = None
    comment: str = ""
    figure: str = ""
    folded: bool = False


@dataclass
class Page:
    """The whole page."""

    title: str
    problem: str
    walled: bool
    remark: str = ""
    graded: list[Graded] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def waiting(self) -> float:
        """The points that are still to be given by hand."""
        return sum(each.points for each in self.graded if each.score is None)


def page_of(nb: NotebookNode) -> Page:
    """The page of a graded notebook that nbgrader has put scores and comments into."""
    note = nb.metadata.get(NOTE, {})
    verdicts = read_verdicts(note)
    comments = {grade_id(cell) or "": _comment(cell) for cell in nb.cells}
    page = Page("", note.get("problem", ""), note.get("wall", True), note.get("remark", ""))
    outline = _Outline()
    for number, cell in enumerate(nb.cells):
        name = grade_id(cell) or ""
        if not name and _blank(cell):
            continue
        text = outline.place(_offline(cell.source)) if cell.cell_type == "markdown" else ""
        graded = None
        if cell.metadata.get("nbgrader", {}).get("grade"):
            exercise = name.removeprefix("test_")
            graded = _graded(cell, verdicts.get(exercise), comments.get(exercise, ""), outline.part)
            page.graded.append(graded)
        judged = name in verdicts  # then the comment stands with the verdict
        comment = "" if judged else comments.get(name, "")
        anchor = f"cell-{name}" if name else f"cell-{number}"
        folded = not name and _folded(cell)
        page.blocks.append(Block(cell, anchor, text, graded, comment, _figure(cell), folded))
    page.title = outline.title
    return page


def _graded(cell: NotebookNode, verdict: Verdict | None, comment: str, part: Part | None) -> Graded:
    kind = cell.metadata["nbgrader"]
    name = kind["grade_id"].removeprefix("test_")
    score, points = kind.get("score"), float(kind["points"])
    if verdict is None:
        return Graded(name, score, points, f"cell-{kind['grade_id']}", comment=comment, part=part)
    return Graded(
        name=name,
        score=score,
        points=points,
        anchor=f"exercise-{name}",
        verdict=verdict,
        judged=judged(verdict),
        said=tuple("\n".join(advice(verdict, named=True)).splitlines()),
        by_hand=score is not None and abs(score - verdict.points) > 1e-6,
        comment="" if comment == NO_ANSWER and not verdict.attempted else comment,
        part=part,
    )


def _blank(cell: NotebookNode) -> bool:
    """As the cell that JupyterLab adds below the last one when that is run."""
    return not cell.source.strip() and not cell.get("outputs")


def _folded(cell: NotebookNode) -> bool:
    """Whether JupyterLab hides the code of this cell, as lessons ask where it draws a figure."""
    view = cell.metadata.get("jupyter")
    return isinstance(view, dict) and view.get("source_hidden") is True


def _comment(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("comment") or "")


def _figure(cell: NotebookNode) -> str:
    """Words for a figure that came without any."""
    line = next((line for line in cell.source.splitlines() if line.strip("# ")), "")
    return f"Your figure, from the cell that begins: {line[:60]}"


def _offline(source: str) -> str:
    """Markdown as HTML without script, style, picture, link to elsewhere, or name of a place."""
    return offline(PARAGRAPH_MARK.sub("", markdown2html(source)))


class _Outline:
    """The headings of the notebook as headings of the page: below its own, no level left out."""

    def __init__(self) -> None:
        self.title = ""
        self.part: Part | None = None
        self._level = 1
        self._count = 0

    def place(self, html: str) -> Markup:
        return Markup(HEADING.sub(self._heading, html))  # noqa: S704 (sanitised before)

    def _heading(self, found: re.Match[str]) -> str:
        level, inner = int(found[1]), found[2]
        self._count += 1
        self._level = min(level + 1, self._level + 1, 6)
        anchor = f"part-{self._count}"
        title = Markup(inner).striptags()  # noqa: S704
        self.title = self.title or title
        if level <= 2:
            self.part = Part(anchor, title)
        return f'<h{self._level} id="{anchor}">{inner}</h{self._level}>'
