"""Nothing in a student's text gives points: not when the grader clicks on all of it."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from classes import grade, gradebook_of, make_course, put_file
from nightly import nightly
from playwright.sync_api import Browser, Page

from autograde.course.cells import grade_id
from browser.conftest import Lab, lab, watch

pytestmark = nightly

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"
GRADED = "test_causal_mask"

BUTTONS = f"""
<div class="full-credit">all of it</div>
<span class="no-credit">none</span>
<div class="nbgrader_cell"><p id="{GRADED}">my cell</p><p class="full-credit">full</p>
<p class="mark-graded">resolve</p><input class="score tabbable" id="{GRADED}" value="4"></div>
<div class="panel nbgrader_cell"><a href="#" class="btn full-credit" data-toggle="x">ok</a></div>
<label for="{GRADED}">label</label>
"""
TEXTS = [
    BUTTONS,
    f"# {GRADED}\n\n## full-credit\n",
    "[a]: https://e.org 'x\" class=\"full-credit'\n\n[a]\n",
    f"<a name='{GRADED}'>named</a> <p accesskey=s tabindex=0 class=full-credit>key</p>",
]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with one graded submission that has no right answer, and buttons in its texts."""
    root = tmp_path_factory.mktemp("marks")
    lesson = make_course(root, ())
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    nb.cells = [cell for cell in nb.cells if grade_id(cell)]
    for text in TEXTS:
        before = nbformat.v4.new_markdown_cell(text, id=GRADED)
        before.metadata |= {"tags": ["full-credit"], "class": "nbgrader_cell"}
        nb.cells.insert(0, before)
        nb.cells.append(nbformat.v4.new_raw_cell(text))
    for cell in nb.cells:
        if cell.cell_type == "markdown" and grade_id(cell):
            cell.source = BUTTONS
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = f"from IPython.display import HTML, display\ndisplay(HTML({BUTTONS!r}))"
            cell.source += f"\nprint({BUTTONS!r})"
    for number, cell in enumerate(nb.cells):
        cell["id"] = f"c{number}"
    put_file(lesson, "mallory", nb)
    done = grade(root)
    assert done.returncode == 0, done.stdout
    return root


@pytest.fixture(scope="module")
def server(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(course, tmp_path_factory.mktemp("lab")) as running:
        yield running


def marks(root: Path) -> dict[str, tuple[float, float | None, float | None]]:
    """Every score of the submission, with what was given by hand."""
    with gradebook_of(root) as gradebook:
        notebook = gradebook.find_submission_notebook(NOTEBOOK, LESSON, "mallory")
        return {g.name: (g.score, g.manual_score, g.extra_credit) for g in notebook.grades}


def open_submission(page: Page, server: Lab) -> None:
    with gradebook_of(server.root) as gradebook:
        number = gradebook.find_submission_notebook(NOTEBOOK, LESSON, "mallory").id
    page.goto(f"{server.url}/formgrader/submissions/{number}/")
    page.wait_for_function("window.formgrader && formgrader.grades && formgrader.grades.loaded")


CLICK_ALL = """() => {
    const texts = [...document.querySelectorAll('.rendered_html, .output')];
    const all = texts.flatMap(text => [text, ...text.querySelectorAll('*')]);
    for (const each of all) {
        if (each.closest('a')) continue;  // it would lead away
        for (const kind of ['mousedown', 'mouseup', 'click', 'focus', 'change'])
            each.dispatchEvent(new Event(kind, {bubbles: true}));
    }
    return all.length;
}"""


def test_clicks_in_a_students_text_change_no_score(server: Lab, browser: Browser) -> None:
    before = marks(server.root)
    saved: list[str] = []
    with watch(browser, server.token) as seen:
        seen.page.on("request", lambda r: saved.append(r.url) if r.method != "GET" else None)
        open_submission(seen.page, server)
        assert seen.page.evaluate(CLICK_ALL) > 20
        seen.page.wait_for_timeout(1500)
    assert [url for url in saved if "/api/" in url] == []
    assert marks(server.root) == before


def test_the_graders_own_button_still_saves(server: Lab, browser: Browser) -> None:
    with watch(browser, server.token) as seen:
        open_submission(seen.page, server)
        cell = seen.page.locator(f".nbgrader_cell:has(input[id='{GRADED}'])")
        assert cell.count() == 1
        with seen.page.expect_response(lambda answer: "/api/grade/" in answer.url):
            cell.locator("button.full-credit").click()
    assert marks(server.root)[GRADED][1] is not None
