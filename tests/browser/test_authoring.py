"""docs/authoring.md: every step of the page is done, with the page's own words and code."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import pytest
from classes import NO_WALL, scores
from conftest import HERE, program
from nbformat import NotebookNode
from nightly import nightly
from playwright.sync_api import Browser, Locator, Page, expect

from autograde.course.cells import named_cells
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from browser import person
from browser.conftest import Lab, Watched, watch
from browser.formgrader import assignment, instructors_lab, opened
from browser.person import SLOW, in_files

pytestmark = nightly

PAGE = (HERE / "docs" / "authoring.md").read_text()
BLOCK = re.compile(r"^(`{3,})(\w+) ?([\w ]*)\n(.*?)^\1$", re.M | re.S)
PARTS = {
    int(number): [tuple(found) for _, *found in BLOCK.findall(text)]
    for number, text in re.findall(r"^## (\d) (.*?)(?=^## [A-Z\d]|\Z)", PAGE, re.M | re.S)
}
LESSON, EXERCISE = "01_first_lesson", "z_scores"
ADDED = ("question", "answer", "rubric")


def block(name: str) -> str:
    (found,) = (text for part in PARTS.values() for _, named, text in part if named == name)
    return str(found)


def cells_of_the_table() -> dict[str, str]:
    """What the page has an author write into the metadata, by cell."""
    _, _, table = PAGE.partition("| cell | Cell Metadata |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    split = ([part.strip(" `") for part in row.strip("|").split("|")] for row in rows)
    return dict(split)


def do(root: Path, part: int) -> Path:
    """Run a part's commands, but do not install the grader; return the folder they end in."""
    for kind, name, text in PARTS[part]:
        for line in text.splitlines() if (kind, name) == ("sh", "") else []:
            command, *arguments = line.split()
            if command == "cd":
                root /= arguments[0]
                continue
            if command == "autograde":
                wall = NO_WALL if arguments[0] == "grade" else ()
                line = shlex.join([sys.executable, "-m", "autograde.cli", *arguments, *wall])
            done = program(*shlex.split(line), cwd=root)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "draft" not in done.stdout
    return root


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Part 1: a new course."""
    return lessons(do(tmp_path_factory.mktemp("courses"), 1))[LESSON]


@pytest.fixture(scope="module")
def server(lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with instructors_lab(lesson.root, tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture
def seen(server: Lab, browser: Browser) -> Iterator[Watched]:
    """JupyterLab with Formgrader closed, in the folder of the lesson's source."""
    with watch(browser) as watched:
        place = f"{server.url}/lab/tree/source/{LESSON}?reset&token={server.token}"
        watched.page.set_default_timeout(SLOW)
        watched.page.goto(place)
        yield watched
        assert watched.errors == []


def code_cell(page: Page, text: str) -> Locator:
    return page.locator(".jp-NotebookPanel:visible .jp-CodeCell").filter(has_text=text).last


def test_parts_2_and_3_add_the_cells(lesson: Lesson, seen: Watched) -> None:
    before, page = jupytext.read(lesson.text), seen.page
    in_files(page, lesson.text.name).click(button="right")
    page.locator(".lm-Menu-itemLabel", has_text="Open With").hover()
    page.locator(".lm-Menu-itemLabel", has_text="Jupytext Notebook").click()
    person.kernel_is_idle(page)
    page.locator(".jp-MarkdownCell", has_text="2 Summary").last.click()
    for _ in ADDED:
        page.keyboard.press("a")
    page.keyboard.press("m")
    for name in ADDED:
        page.keyboard.press("Enter")
        page.keyboard.insert_text(block(name).removesuffix("\n"))
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowDown")
    page.locator('.jp-mod-right .lm-TabBar-tab[title="Property Inspector"]').click()
    page.get_by_text("Advanced Tools").click()
    for name, metadata in cells_of_the_table().items():
        code_cell(page, block(name).splitlines()[-2].strip()).locator(".cm-content").click()
        editor = page.locator(".jp-CellMetadataEditor")
        editor.locator(".cm-content").fill(metadata)
        editor.get_by_title("Commit changes to data").click()
    person.save(page)
    the_text_holds(lesson, before)


def the_text_holds(lesson: Lesson, before: NotebookNode) -> None:
    """The three cells stand before the summary, with the page's heads, and nothing else changed."""
    after = jupytext.read(lesson.text)
    plain = [[(c.cell_type, c.source, c.metadata) for c in nb.cells] for nb in (before, after)]
    start = len(plain[0]) - 1
    assert plain[1][:start] == plain[0][:start]
    assert plain[1][start + 3 :] == plain[0][start:]
    assert [c.source for c in after.cells[start : start + 3]] == [
        block(name).removesuffix("\n") for name in ADDED
    ]
    assert after.metadata == before.metadata
    for head in block("heads").splitlines():
        assert head in lesson.text.read_text().splitlines()


def test_parts_4_to_6_build_it(lesson: Lesson) -> None:
    curriculum = lesson.root / CURRICULUM
    curriculum.write_text(curriculum.read_text() + block("points"))
    (lesson.folder / "variants" / f"{EXERCISE}.md").write_text(block("variants"))
    do(lesson.root, 6)
    released = nbformat.read(lesson.released_notebook, as_version=4)
    answer = named_cells(released)[EXERCISE]
    assert "raise NotImplementedError()" in answer.source
    assert "ddof" not in answer.source


def test_part_7_shows_it_as_students_see_it(lesson: Lesson, server: Lab, browser: Browser) -> None:
    with watch(browser) as seen, opened(seen, server) as inside:
        page = seen.page
        assignment(inside, LESSON).locator("td.preview a").click()
        in_files(page, lesson.released_notebook.name).dblclick()
        person.kernel_is_idle(page)
        person.run_all(page)
        panel = person.answer(page, EXERCISE, block("wrong answer"))
        expect(panel).to_contain_text("distance from the mean")
        panel = person.run_rubric(page, EXERCISE)
        expect(panel).to_contain_text(block("says").strip().replace("`", ""))
        panel = person.answer(page, EXERCISE, block("right answer"))
        expect(panel).to_contain_text("right")
        expect(panel).not_to_contain_text("wrong")
        person.save(page)


def test_part_8_grades_what_the_student_saved(lesson: Lesson) -> None:
    do(lesson.root, 8)
    exercises = [each.name for each in lessons(lesson.root)[LESSON].exercises]
    assert exercises == ["center_rows", EXERCISE]
    assert scores(lesson.root, LESSON) == {"ada": 2}
    page = lesson.root / "feedback" / "ada" / LESSON / "first_lesson.html"
    assert str(page.relative_to(lesson.root)) in PAGE
    assert page.is_file()
