"""A lesson in `autograde lab`: help at hand, waits that show, dark and narrow windows.

The tests are steps, in order, of one exercise from the first wrong try to the right answer.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import nbformat.sign
import pytest
from conftest import HERE
from nightly import nightly
from playwright.sync_api import Browser, Locator, Page, expect

from autograde.authoring.release import release
from autograde.course.lessons import lessons
from browser import person
from browser.conftest import Camera, Desk, lab, watch
from browser.person import SLOW
from browser.test_accessibility import NO_PICTURES, faults

LESSON, NOTEBOOK, EXERCISE = "01_self_attention", "self_attention", "attention_scores"
NEXT, NEXT_NOTEBOOK = "02_causal_mask", "causal_mask"
COMMAND = (sys.executable, "-m", "autograde.cli", "lab")
SIZES = [(theme, width) for theme in ("Light", "Dark") for width in (1366, 800)]
PUT_TOGETHER = "def attention_scores(queries, keys):\n    return queries @ keys"
RIGHT = f"{PUT_TOGETHER}.T"
FIGURE = 'show(heatmap(attention_scores(inputs, inputs), tokens, tokens, title="scores"), "scores")'

pytestmark = [pytest.mark.story, nightly]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Desk]:
    root = tmp_path_factory.mktemp("student")
    release(HERE, [lessons(HERE)[LESSON], lessons(HERE)[NEXT]], root / "lessons")
    with lab(root / "lessons", root, COMMAND) as running, watch(browser, running.token) as seen:
        seen.page.set_viewport_size({"width": 1366, "height": 768})
        yield Desk(running, seen)
        assert seen.errors == []


def panel(page: Page) -> Locator:
    return person.panel_of(person.cell(page, f"test_{EXERCISE}"))


def in_each_size(page: Page, wanted: str, camera: Camera, name: str) -> Iterator[Locator]:
    """Show a cell in both themes, in a wide and in a narrow window, and take its picture."""
    for theme, width in SIZES:
        page.set_viewport_size({"width": width, "height": 768})
        person.command(page, "apputils:change-theme", theme=f"JupyterLab {theme}")
        page.locator(f"body[data-jp-theme-name='JupyterLab {theme}']").wait_for(state="attached")
        expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        found = person.cell(page, wanted)
        page.wait_for_timeout(500)
        camera.shoot(page, f"{name}_{theme.lower()}_{width}")
        yield found
    page.set_viewport_size({"width": 1366, "height": 768})


def test_a_cell_before_the_set_up_says_in_a_line_what_to_run(desk: Desk, camera: Camera) -> None:
    page = desk.page
    path = f"{LESSON}/{NOTEBOOK}.ipynb"
    page.goto(f"{desk.lab.url}/lab/tree/{path}?reset&token={desk.lab.token}")
    person.wait_until(page, person.STARTED)
    person.kernel_is_idle(page)
    said = person.run_cell(page, f"test_{EXERCISE}").locator(".jp-OutputArea")
    expect(said).to_contain_text("cells above have not run in this kernel")
    expect(said).not_to_contain_text("Traceback")
    camera.shoot(page, "not_run")


def test_a_first_run_goes_by_the_seconds_on_the_authors_machine(desk: Desk) -> None:
    page = desk.page
    model = "window.jupyterapp.shell.currentWidget.content.activeCell.model"
    person.type_into(page, EXERCISE, "import time; time.sleep(4)")
    page.evaluate(f"() => {model}.setMetadata('seconds', 30)")
    page.keyboard.press("Shift+Enter")
    sign = page.locator(".lesson-running")
    expect(sign).to_contain_text("left", timeout=3000)
    expect(sign.locator("progress")).to_be_visible()
    expect(sign).to_have_count(0)


def test_a_cell_that_takes_long_says_so_and_the_next_time_what_is_left(
    desk: Desk, camera: Camera
) -> None:
    page = desk.page
    sign = page.locator(".lesson-running")
    person.run_cell(page, "setup")
    for said in ("Running for", "left"):
        person.type_into(page, EXERCISE, "import time; time.sleep(6)")
        page.keyboard.press("Shift+Enter")
        expect(sign).to_contain_text(said, timeout=5000)
        camera.shoot(page, f"waits_{said.split()[0].lower()}")
        expect(sign).to_have_count(0)


def test_a_wrong_answer_shows_its_inputs_and_has_help_at_hand(desk: Desk, camera: Camera) -> None:
    page = desk.page
    person.answer(page, EXERCISE, PUT_TOGETHER)
    expect(panel(page)).to_contain_text("queries, shape (2, 3)")
    for found in in_each_size(page, f"test_{EXERCISE}", camera, "wrong"):
        expect(found.locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
        dots = found.locator(".jp-MoreHorizIcon").first
        right = found.evaluate("cell => cell.getBoundingClientRect().right")
        assert dots.evaluate("node => node.getBoundingClientRect().right") <= right
    person.cell(page, f"test_{EXERCISE}")
    why = panel(page).locator("summary", has_text="Why?")
    why.focus()
    page.keyboard.press("Enter")
    expect(panel(page).get_by_text("a matrix product multiplies rows with rows")).to_be_visible()
    panel(page).locator("summary", has_text="Hint 1 of").click()
    expect(panel(page).locator("summary", has_text="Hint 2 of")).to_be_visible()
    camera.shoot(page, "helped")


def test_a_panel_is_shown_from_its_headline(desk: Desk) -> None:
    page = desk.page
    person.command(page, "notebook:clear-all-cell-outputs")
    person.cell(page, EXERCISE).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    headline = page.locator(".rubric > strong")  # looked for, not scrolled to
    expect(headline).to_be_in_viewport(ratio=1)
    expect(page.locator(".lesson-heard")).to_have_text(headline.inner_text())


def test_axe_finds_nothing_in_the_panel(desk: Desk) -> None:
    desk.page.add_style_tag(content="body { height: 100vh }")
    assert faults(desk.page, ".rubric", NO_PICTURES) == []


def test_an_answer_that_was_edited_and_not_run_says_so(desk: Desk, camera: Camera) -> None:
    page = desk.page
    edited = panel(page).locator(".edited")
    expect(edited).to_be_hidden()
    person.type_into(page, EXERCISE, RIGHT)
    expect(edited).to_be_visible()
    camera.shoot(page, "edited")
    person.run_cell(page, EXERCISE)
    expect(edited).to_be_hidden()


def test_a_right_answer_draws_a_figure_that_follows_the_theme(desk: Desk, camera: Camera) -> None:
    page = desk.page
    expect(person.run_rubric(page, EXERCISE)).to_contain_text("Judged: your cell as run in [")
    person.type_into(page, "scores = attention_scores", FIGURE)
    person.run_cell(page, FIGURE)
    filters = []
    for found in in_each_size(page, FIGURE, camera, "figure"):
        picture = found.locator("img").first
        filters.append(picture.evaluate("img => getComputedStyle(img).filter"))
        assert picture.evaluate("img => img.getBoundingClientRect().height < innerHeight")
    assert filters == ["none"] * 2 + ["invert(1) hue-rotate(180deg)"] * 2


def test_diagrams_scroll_and_do_not_wrap(desk: Desk) -> None:
    page = desk.page
    page.set_viewport_size({"width": 500, "height": 768})
    expect(page.locator(".jp-FileBrowser")).to_be_hidden()
    person.cell(page, EXERCISE)
    diagram = page.locator(".jp-RenderedMarkdown pre:visible", has_text="queries (n, d_k)").first
    assert diagram.evaluate("pre => getComputedStyle(pre.firstElementChild).whiteSpace") == "pre"
    expect(diagram).to_have_attribute("tabindex", "0")
    page.set_viewport_size({"width": 1366, "height": 768})
    person.save(page)


def test_arrow_keys_reach_a_folded_rubric(desk: Desk) -> None:
    page = desk.page
    active = "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.id"
    person.cell(page, EXERCISE).locator(".cm-content").click()
    page.keyboard.press("Escape")
    rubric = f"test_{EXERCISE}"
    for key, wanted in (("ArrowDown", rubric), ("ArrowUp", EXERCISE), ("j", rubric)):
        page.keyboard.press(key)
        assert page.evaluate(active) == wanted
    page.keyboard.press("ArrowDown")
    assert page.evaluate(active) not in (EXERCISE, rubric)


def test_continue_leads_to_the_exercise(desk: Desk, camera: Camera) -> None:
    page = desk.page
    page.goto(desk.lab.url)
    link = page.locator(".jp-MarkdownViewer:visible").get_by_role("link", name="stable_softmax")
    link.click(timeout=SLOW)
    active = "() => window.jupyterapp.shell.currentWidget.content?.activeCell?.model.id"
    person.wait_until(page, f"({active})() === 'stable_softmax'")
    page.wait_for_timeout(3000)
    camera.shoot(page, "continue")
    expect(page.locator(".jp-mod-active .cm-content:visible")).to_be_in_viewport()


def test_a_question_on_an_earlier_lesson_is_answered_by_one_press(
    desk: Desk, camera: Camera
) -> None:
    page = desk.page
    person.open_notebook(page, f"{NEXT}/{NEXT_NOTEBOOK}.ipynb")
    asked = person.run_cell(page, "# demonstration: three questions").locator(".note")
    expect(asked.get_by_text("✗")).to_have_count(5)
    choice = asked.locator("summary").first
    expect(asked.get_by_text("✗ No: 1.")).to_have_count(2)
    reply = asked.locator("details").first.get_by_text("✗ No: 1.")
    expect(reply).to_be_hidden()
    choice.focus()
    page.keyboard.press("Enter")
    expect(reply).to_be_visible()
    camera.shoot(page, "questions")
    page.add_style_tag(content="body { height: 100vh }")
    assert faults(page, ".note", NO_PICTURES) == []


def test_the_next_day_a_figure_with_a_slider_is_there_without_it(
    desk: Desk, camera: Camera
) -> None:
    page = desk.page
    made = nbformat.v4.new_output(
        "display_data",
        {WIDGET: {"model_id": "gone"}, "image/png": DOT, "text/plain": "A dot."},
        metadata={"image/png": {"alt": "One dot", "width": 8}},
    )
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("explore()", outputs=[made])])
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(nb, desk.lab.root / "work" / "next_day.ipynb")
    notary = nbformat.sign.NotebookNotary(data_dir=str(desk.lab.root.parent / "jupyter_data_dir"))
    notary.sign(nb)  # as JupyterLab does with what was run in it
    notary.store.close()
    person.open_notebook(page, "next_day.ipynb")
    shown = person.cell(page, "explore()")
    expect(shown.get_by_role("img", name="One dot")).to_be_visible()
    expect(shown).to_contain_text("A dot. To move it, run this cell.")
    camera.shoot(page, "next_day")
    assert ["widget model not found" in error for error in desk.seen.errors] == [True]
    desk.seen.errors.clear()


WIDGET = "application/vnd.jupyter.widget-view+json"
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


def test_the_terminal_finds_the_command(desk: Desk, camera: Camera) -> None:
    page = desk.page
    person.command(page, "terminal:create-new")
    page.locator(".jp-Terminal:visible .xterm-screen").click()
    page.wait_for_timeout(2000)
    page.keyboard.type("autograde progress > found.txt; echo done\n")
    work = Path(desk.lab.root) / "work"
    for _ in range(100):
        if (work / "found.txt").is_file() and (work / "found.txt").read_text():
            break
        page.wait_for_timeout(200)
    camera.shoot(page, "terminal")
    assert (work / "found.txt").read_text().startswith(f"{LESSON}: 1 of ")
