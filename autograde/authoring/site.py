"""The lessons as a static site: what students get, with the figures of the executed reference.

`autograde site` runs this; `pages/conf.py` says how the pages look.

The text of every cell is the student version's. What a cell shows is what the reference printed and
drew, except where that quotes an answer.
"""

import re
import shutil
from base64 import b64decode
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.authoring.marks import kept_back
from autograde.authoring.release import GUIDE
from autograde.course.cells import exercise_of
from autograde.course.lesson_files import read_built
from autograde.course.lessons import CourseError, Lesson, lessons, read_course
from autograde.notebook.guesses import GUESS
from autograde.values.text import number

FIGURE = "image/png"
NEEDED = {"sphinx": "sphinx", "myst_nb": "myst-nb", "furo": "furo"}
"""The modules that make the pages, and the distributions to install for them."""
LOOK = Path(__file__).parent / "pages"
"""The folder of Sphinx's configuration."""
FEWEST_LETTERS = 10
"""A shorter line of an answer, such as `return x`, may occur anywhere and gives nothing away."""
SCROLLS = re.compile('<pre(?=>)|<div(?= class="(table|math)-wrapper)')
"""The beginning of a part that is wider than a narrow page."""
UNNAMED = '<summary aria-label="Toggle hidden content">'
"""MyST-NB hides the words on what is folded, such as "Show the code", from screen readers."""
MADE = ".buildinfo"
"""What Sphinx leaves in a site that it made."""
LEFT_OUT = "This output quotes the answer. It is shown in the lesson itself."
TO_READ = """\
*About {minutes} minutes (an estimate), {points} points. This page is for reading: its exercises are
empty, and below each you can unfold its rubric and what the rubric says of a right answer. To fill
them in, [set up JupyterLab](guide.md) and open `{notebook}.ipynb`.*
"""
OPENING = """\
{paragraph}

```{{image}} opening.png
:alt: {alt}
:class: opening
```
"""
INDEX = """\
# {title}

{opening}

[Read on in lesson {first}]({name}.ipynb).

These pages show what students read, with every figure. The exercises are empty here. Students solve
them in JupyterLab, where an autograder answers line by line: [how to set it up and
start](guide.md).

| lesson | what it builds | minutes | points |
|---|---|--:|--:|
{rows}
| all of them | | {minutes} | {points} |

The minutes are estimates. No reader has been timed.

```{{toctree}}
:hidden:

{names}
guide
```
"""


def build_site(root: Path, target: Path) -> None:
    """Build the site elsewhere, then move it into place: a failed build leaves the old one alone.

    Raises:
        CourseError: a lesson is not built or cannot become a page, Sphinx warned, it is not
            installed, or the folder holds something else.
    """
    if target.exists() and any(target.iterdir()) and not (target / MADE).is_file():
        raise CourseError(f"{target} holds something else than a site. Name a new folder.")
    if missing := [name for module, name in NEEDED.items() if find_spec(module) is None]:
        raise CourseError(f"autograde site needs more packages: pip install {' '.join(missing)}")
    with TemporaryDirectory() as folder:
        pages, site = Path(folder, "pages"), Path(folder, "site")
        pages.mkdir()
        shown = {lesson.name: lesson_page(lesson) for lesson in lessons(root).values()}
        for name, page in shown.items():
            nbformat.write(page, pages / f"{name}.ipynb")
        first = opening_of(next(iter(shown.values())), pages)
        (pages / "index.md").write_text(index_page(root, first), encoding="utf-8")
        shutil.copy(root / GUIDE, pages / "guide.md")
        render(pages, site, read_course(root).title)
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(site, target)


def render(pages: Path, site: Path, title: str) -> None:
    """Render pages to HTML. Every warning counts, and every reference must lead somewhere.

    Raises:
        CourseError: Sphinx warned; its warnings are on stderr.
    """
    from sphinx.cmd.build import main as sphinx

    strict = ("--quiet", "--fail-on-warning", "--nitpicky")
    with TemporaryDirectory() as cache:
        named = ("-D", f"project={title}", "-D", f"html_title={title}")
        if sphinx([*strict, *named, "-c", str(LOOK), "-d", cache, str(pages), str(site)]):
            raise CourseError("The site was not built. Fix what Sphinx names above.")
    for page in site.glob("*.html"):  # make scrolling parts reachable by keyboard
        text = page.read_text(encoding="utf-8").replace(UNNAMED, "<summary>")
        page.write_text(SCROLLS.sub(r'\g<0> tabindex="0"', text), encoding="utf-8")


def opening_of(page: NotebookNode, pages: Path) -> str:
    """Return the first paragraph of a lesson's page, and its first figure, put among the pages."""
    paragraph: str = page.cells[0].source.split("\n\n")[2]  # after the title and TO_READ
    outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
    figure = next((one for one in outputs if FIGURE in one.get("data", {})), None)
    if figure is None:
        return paragraph
    (pages / "opening.png").write_bytes(b64decode(figure.data[FIGURE]))
    alt = " ".join(figure.metadata[FIGURE]["alt"].split())
    return OPENING.format(paragraph=paragraph, alt=alt)


def index_page(root: Path, opening: str) -> str:
    chosen = [*lessons(root).values()]
    return INDEX.format(
        title=read_course(root).title,
        opening=opening,
        first=chosen[0].numbered_title,
        name=chosen[0].name,
        rows="\n".join(
            f"| [{lesson.numbered_title}]({lesson.name}.ipynb) | {lesson.about} "
            f"| {lesson.minutes} | {number(lesson.points)} |"
            for lesson in chosen
        ),
        minutes=sum(lesson.minutes for lesson in chosen),
        points=number(sum(lesson.points for lesson in chosen)),
        names="\n".join(f"{lesson.numbered_title} <{lesson.name}>" for lesson in chosen),
    )


def lesson_page(lesson: Lesson) -> NotebookNode:
    """Return the student version with what the executed reference shows.

    Raises:
        CourseError: the lesson is not built, or cannot become a page.
    """
    student, reference = map(read_built, (lesson.released_notebook, lesson.solution_notebook))
    if [cell.id for cell in student.cells] != [cell.id for cell in reference.cells]:
        raise CourseError(
            f"{lesson.name}: notebooks/ and solutions/ do not belong together. "
            f"Run: autograde build {lesson.name}"
        )
    pairs = list(zip(student.cells, reference.cells, strict=True))
    answers = [kept_back(executed.source, cell.source) for cell, executed in pairs]
    secret = {line for lines in answers for line in lines if len(line) >= FEWEST_LETTERS}
    for cell, executed in pairs:
        if cell.cell_type == "code":
            answer = cell.source != executed.source
            shown = [] if answer else executed.outputs
            cell.outputs = [_without(secret, output) for output in shown]
            cell.metadata = _shown(cell)
    heading, _, rest = student.cells[0].source.partition("\n")
    note = TO_READ.format(
        minutes=lesson.minutes,
        points=number(lesson.points),
        notebook=lesson.notebook,
    )
    student.cells[0].source = f"{heading}\n\n{note}\n{rest}"
    return student


def _without(secret: set[str], output: NotebookNode) -> NotebookNode:
    """Return the output, or a sentence in its place where it quotes an answer."""
    texts = (output.get("text"), *output.get("data", {}).values())
    if any(line in text for text in texts if isinstance(text, str) for line in secret):
        return NotebookNode(output_type="stream", name="stdout", text=LEFT_OUT)
    return output


def _shown(cell: NotebookNode) -> NotebookNode:
    """Return the metadata by which MyST-NB folds a cell and describes its figure."""
    figures = [output for output in cell.outputs if FIGURE in output.get("data", {})]
    if len(figures) > 1:
        raise CourseError(
            f"cell {cell.id} draws {len(figures)} figures. A page gives a cell one text "
            "alternative; draw them in cells of their own."
        )
    tags, how = _folding(cell)
    for output in figures:
        how["image"] = {"alt": output.metadata[FIGURE]["alt"]}
    return NotebookNode(tags=tags, mystnb=how)


def _folding(cell: NotebookNode) -> tuple[list[str], dict[str, Any]]:
    """Return the tags of what is folded in a cell, and the words to click on."""
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
    guessed = f"beside({GUESS}" in cell.source  # readers may guess first, too
    if exercise_of(cell):  # open, a right answer's panel would stand below an empty answer
        tag, what = "hide-cell", "the rubric, and what it says of a right answer"
    elif hidden and guessed:
        tag, what = "hide-cell", "the code, and what it is"
    elif hidden:
        tag, what = "hide-input", "the code"
    elif guessed:
        tag, what = "hide-output", "what it is"
    else:
        return [], {}
    return [tag], {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
