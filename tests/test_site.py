"""The lessons' site: every figure, no answer, and links that lead somewhere."""

import html
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from conftest import HERE
from screen_reader import Outline, outline_of

from autograde.authoring.marks import kept_back
from autograde.authoring.site import (
    LEFT_OUT,
    MADE,
    _without,
    build_site,
    opening_of,
    render,
)
from autograde.authoring.sources import source_notebook
from autograde.authoring.variants import read_variants
from autograde.course.lesson_files import read_built
from autograde.course.lessons import CourseError, Lesson, lessons
from autograde.progress import PRACTICE_FILE
from autograde.values.text import of_points

LESSONS = list(lessons(HERE).values())
ONE = lessons(HERE)["05_causal_attention"]
READABLE = {".html", ".js", ".json", ".txt", ".md", ".ipynb", ".py", ".inv", ".css"}
FEWEST_LETTERS = 16
"""A shorter line of an answer, such as `return x`, is found in any script."""


def one_space(text: str) -> str:
    return " ".join(text.split())


def everything(site: Path) -> str:
    """All that can be read on the site: as it is stored, and as it is shown, without the tags."""
    files = [path for path in site.rglob("*") if path.suffix in READABLE]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    shown = [html.unescape(re.sub(r"<[^>]*>", "", text)) for text in texts]
    return one_space("\n".join([*texts, *map(html.unescape, texts), *shown]))


def solution_of(lesson: Lesson, *kinds: str) -> set[str]:
    cells = zip(
        source_notebook(lesson).cells, read_built(lesson.released_notebook).cells, strict=True
    )
    of_kinds = ((cell, given) for cell, given in cells if cell.cell_type in kinds)
    return {line for cell, given in of_kinds for line in kept_back(cell.source, given.source)}


def secrets_of(lesson: Lesson) -> set[str]:
    """Each line of solutions, marking schemes and variants, each belief and hint, that no student
    version has. A later lesson gives what an earlier one asks for."""
    lines = list(solution_of(lesson, "code", "markdown"))
    for exercise in lesson.exercises:
        known = read_variants(lesson, exercise)
        lines += known.hints
        for variant in (*known.right, *known.wrong):
            lines += [line.split("  #")[0] for line in variant.code.splitlines()]
            lines += [variant.misconception, variant.hint]
    given = given_by_all()
    wanted = {one_space(line) for line in lines if line}
    return {line for line in wanted if len(line) >= FEWEST_LETTERS and line not in given}


@cache
def given_by_all() -> str:
    """All that student versions say, as it is written and as it is shown."""
    given = "\n".join(c.source for o in LESSONS for c in read_built(o.released_notebook).cells)
    return one_space(given + re.sub(r"[*`]", "", given))


@pytest.fixture(scope="module")
def text(site: Path) -> str:
    return everything(site)


@pytest.fixture(scope="module")
def outlines(site: Path) -> dict[str, Outline]:
    return {path.name: outline_of(path.read_text()) for path in site.glob("*.html")}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_no_answer_is_on_the_site(text: str, lesson: Lesson) -> None:
    secrets = secrets_of(lesson)
    assert len(secrets) > 100
    assert [line for line in secrets if line in text] == []


def test_an_answer_would_be_found(tmp_path: Path) -> None:
    lesson = ONE
    (tmp_path / "pages").mkdir()
    nbformat.write(read_built(lesson.solution_notebook), tmp_path / "pages" / "index.ipynb")
    render(tmp_path / "pages", tmp_path / "site", "Lessons")
    text = everything(tmp_path / "site")
    solved = {one_space(line) for line in solution_of(lesson, "code")}
    wanted = solved & secrets_of(lesson)
    assert len(wanted) > 10
    assert [line for line in wanted if line not in text] == []


def test_what_quotes_an_answer_is_left_out() -> None:
    secret = {"return q @ k.mT"}
    printed, quoting = (nbformat.NotebookNode(text=t) for t in ("(2, 6)", "3: return q @ k.mT"))
    assert _without(secret, printed) is printed
    assert _without(secret, quoting).text == LEFT_OUT


def test_no_data_for_the_judge_is_on_the_site(site: Path) -> None:
    suffixes = {path.suffix for path in site.rglob("[!.]*") if path.is_file()}
    assert suffixes <= READABLE | {".png", ".svg", ".map"}
    assert not list(site.rglob(PRACTICE_FILE))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_is_whole(outlines: dict[str, Outline], lesson: Lesson) -> None:
    page = outlines[f"{lesson.name}.html"]
    executed = read_built(lesson.solution_notebook)
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    figures = [o.metadata["image/png"]["alt"] for o in outputs if "image/png" in o.get("data", {})]
    pictures = [attributes.get("alt") for tag, attributes in page.attributes if tag == "img"]
    assert pictures == figures
    written = re.findall(r"^#+ (.*)$", "\n".join(
        cell.source for cell in read_built(lesson.released_notebook).cells
        if cell.cell_type == "markdown"
    ), re.MULTILINE)  # fmt: skip
    assert len(page.headings) == len(written)
    assert "raise NotImplementedError" in page.text
    for exercise in lesson.exercises:
        assert f'@rubric("{exercise.name}"' in page.text
        assert f"{exercise.name}: {of_points(exercise.points, exercise.points)}" in page.text


def test_the_first_page_opens_as_the_first_lesson_does(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "another word of the sentence says which bat is meant" in one_space(page)
    (picture,) = (site / "_images").glob("opening*")
    assert re.search(rf'<img alt="The story [^>]* src="_images/{picture.name}"', page)


def test_a_lesson_without_figures_opens_with_words(tmp_path: Path) -> None:
    words = nbformat.v4.new_markdown_cell("# Title\n\nA note.\n\nWords.\n\nMore words.")
    code = nbformat.v4.new_code_cell("1", outputs=[])
    assert opening_of(nbformat.v4.new_notebook(cells=[words, code]), tmp_path) == "Words."
    assert not [*tmp_path.iterdir()]


def test_the_index_is_the_curriculum(site: Path) -> None:
    rows = re.findall(r"<tr.*?</tr>", (site / "index.html").read_text(), re.DOTALL)
    cells = [
        [one_space(html.unescape(re.sub(r"<[^>]*>", "", cell)))
         for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]  # fmt: skip
    lines = [[f"{x.name[:2]} {x.title}", x.about, str(x.minutes), f"{x.points:g}"] for x in LESSONS]
    assert cells[1:-1] == lines
    assert cells[-1] == [
        "all of them", "", str(sum(x.minutes for x in LESSONS)),
        f"{sum(x.points for x in LESSONS):g}",
    ]  # fmt: skip


def dead_links(site: Path, outlines: dict[str, Outline]) -> list[str]:
    """Addresses on the pages that lead nowhere. Those outside are judged by their form alone."""
    dead = []
    for name, page in outlines.items():
        addresses = [found.get(key) for _, found in page.attributes for key in ("href", "src")]
        for address in filter(None, addresses):
            parts = urlsplit(address)
            if parts.scheme:
                well = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc)
            else:
                target = unquote(parts.path) or name
                ids = outlines[target].ids if target in outlines else []
                well = (site / target).is_file() and parts.fragment in ["", *ids]
            if not well:
                dead.append(f"{name}: {address}")
    return dead


def test_links_lead_somewhere(site: Path, outlines: dict[str, Outline]) -> None:
    assert dead_links(site, outlines) == []


@pytest.mark.parametrize("address", ["no.html", "#no", "01_self_attention.html#no", "http://x.org",
                                     "https://x", "_images/no.png"])  # fmt: skip
def test_a_dead_link_would_be_found(site: Path, address: str) -> None:
    outlines = {"index.html": outline_of(f'<a href="{address}">x</a>')}
    assert dead_links(site, outlines) == [f"index.html: {address}"]


BAD_PAGES = {
    "a link to no page": "# A\n\n[there](nowhere.md)",
    "a link to no heading": "# A\n\n[there](#nowhere)",
    "a formula that is none": "# A\n\n$\\nosuchthing{x}$",
    "a heading left out": "# A\n\n### B",
    "a picture that is not there": "# A\n\n![words](nowhere.png)",
}
"""What fails the build. Adding a case is adding a row."""


@pytest.mark.parametrize("page", BAD_PAGES.values(), ids=BAD_PAGES)
def test_a_bad_page_fails_the_build(tmp_path: Path, page: str) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(page)
    with pytest.raises(CourseError, match="Fix what Sphinx names above"):
        render(tmp_path / "pages", tmp_path / "site", "Lessons")


def two_figures(course: Path) -> None:
    path = lessons(course)["02_causal_mask"].solution_notebook
    nb = read_built(path)
    cell = next(c for c in nb.cells if "image/png" in str(c.get("outputs")))
    cell.outputs *= 2
    nbformat.write(nb, path)


def another_build(course: Path) -> None:
    path = lessons(course)["02_causal_mask"].solution_notebook
    nb = read_built(path)
    nb.cells.pop()
    nbformat.write(nb, path)


def not_built(course: Path) -> None:
    lessons(course)["02_causal_mask"].solution_notebook.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (two_figures, "draws 2 figures"),
        (another_build, "do not belong together"),
        (not_built, "not built here. Run: autograde build 02_causal_mask"),
    ],
)
def test_a_failed_build_leaves_the_old_site(
    course: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(course)
    old = course / "build" / "site" / "index.html"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    old.with_name(MADE).touch()
    with pytest.raises(CourseError, match=said):
        build_site(course, course / "build" / "site")
    assert old.read_text() == "old"


def test_a_folder_with_something_else_is_left_alone(course: Path) -> None:
    with pytest.raises(CourseError, match=r"holds something else than a site. Name a new folder"):
        build_site(course, course)
    assert (course / "source").is_dir()
