"""The explorer in JupyterLab and in Notebook: by mouse, by keys alone, and without its kernel.

The tests are steps, in order.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import nbformat
import pytest
from nightly import nightly
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from attention_course import VOCABULARY
from browser import person
from browser.conftest import Camera, Desk, Lab, lab, watch
from browser.person import SLOW
from browser.test_accessibility import faults

pytestmark = [pytest.mark.story, nightly]

EXPLORE = 'explore_story(model, *(f"Tom is in the {place}'
CELLS = (
    "import torch\n"
    "from attention_course.explorer import explore_story\n"
    "from attention_course.trained import course_model\n"
    "torch.set_num_threads(1)\n"
    "model = course_model()",
    f'{EXPLORE} . he sees a bat" for place in ("cave", "gym")))',
)
NAME = "stories.ipynb"
ROOT = ".attention-explorer"


def write_notebook(folder: Path) -> None:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(nb, folder / NAME)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("explorer")
    write_notebook(root)
    with lab(root, tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture(scope="module")
def desk(running: Lab, browser: Browser) -> Iterator[Desk]:
    with watch(browser, running.token) as seen:
        seen.page.set_viewport_size({"width": 1366, "height": 900})
        yield Desk(running, seen)


def explorer(page: Page) -> Locator:
    return page.locator(ROOT).first


def run_both(page: Page) -> None:
    """Run the two cells, whose numbers may be those of an earlier kernel."""
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")


def word(page: Page, name: str) -> Locator:
    """A word of the story; its name for a screen reader says what it gets."""
    return explorer(page).locator(".ae-word", has=page.get_by_text(name, exact=True))


def button(page: Page, name: str) -> Locator:
    return explorer(page).get_by_role("button", name=name, exact=True)


def bar(page: Page, name: str) -> Locator:
    return explorer(page).locator(f".ae-bar[data-word='{name}'] .ae-value")


def said(page: Page) -> Locator:
    """What a screen reader says."""
    return explorer(page).get_by_role("status")


def test_a_pressed_word_says_what_it_looks_at(desk: Desk, camera: Camera) -> None:
    page = desk.page
    person.open_lab(page, desk.lab)
    person.open_notebook(page, NAME)
    person.run_cell(page, "import torch")
    person.run_cell(page, EXPLORE)
    expect(explorer(page)).to_be_visible(timeout=SLOW)
    camera.shoot(page, "first")
    word(page, "he").click()
    expect(said(page)).to_contain_text("“he” looks at")
    word(page, "bat").click()
    expect(word(page, "cave").locator(".ae-number")).to_have_text("0.08")
    expect(word(page, "cave")).to_have_accessible_name("cave: 0.08")
    expect(said(page)).to_contain_text("In head 1.1, “bat” looks at “sees” 0.45")
    button(page, "gym").first.click()
    expect(word(page, "gym").locator(".ae-number")).to_have_text("0.91")
    camera.show(page, "explorer", explorer(page))


def test_the_picture_is_not_shown_beside_the_live_one(desk: Desk) -> None:
    picture = person.cell(desk.page, EXPLORE).locator("img")
    expect(picture).to_have_count(1)
    expect(picture).to_be_hidden()


def test_words_that_come_later_are_hatched(desk: Desk, camera: Camera) -> None:
    word(desk.page, "gym").hover()
    expect(word(desk.page, "bat")).to_have_accessible_name("bat: hidden from “gym”")
    expect(explorer(desk.page).locator(".ae-hidden-word")).to_have_count(5)
    camera.shoot(desk.page, "hidden")


def test_a_head_switched_off_changes_the_next_words(desk: Desk, camera: Camera) -> None:
    page = desk.page
    expect(bar(page, "fall")).to_have_text("0.28")
    button(page, "at every word").click()
    expect(bar(page, "fall")).to_have_text("0.28 → 0.01")
    expect(bar(page, "eat")).to_have_text("0.00 → 0.10")
    expect(said(page)).to_contain_text(
        "With head 1.1 switched off at every word: . from 0.50 to 0.77, fall from 0.28 to 0.01"
    )
    expect(explorer(page).locator(".ae-says")).to_contain_text("“bat” would look at “gym” 0.91")
    camera.shoot(page, "switched_off")
    button(page, "head 2.1").click()
    expect(word(page, "gym").locator(".ae-number")).to_contain_text("was 0.80")
    button(page, "nothing is changed").click()
    expect(bar(page, "fall")).to_have_text("0.28")


def test_a_head_takes_its_output_from_another_story(desk: Desk, camera: Camera) -> None:
    page = desk.page
    button(page, "head 1.1").click()
    button(page, "cave").last.click()
    expect(bar(page, "fall")).to_have_text("0.28 → 0.00")
    expect(bar(page, "eat")).to_have_text("0.00 → 0.17")
    camera.shoot(page, "exchanged")
    button(page, "nothing is changed").click()


def test_keys_alone_do_the_same(desk: Desk) -> None:
    page = desk.page
    word(page, "bat").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(word(page, "gym")).to_be_focused()
    expect(explorer(page).locator(".ae-says")).to_contain_text("“gym” looks at")
    page.keyboard.press("Enter")
    expect(word(page, "gym")).to_have_attribute("aria-pressed", "true")
    expect(said(page)).to_contain_text("“gym” looks at")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(said(page)).to_contain_text("“bat” looks at “gym” 0.91")
    page.keyboard.press("Tab")
    expect(button(page, "head 1.1")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(said(page)).to_contain_text("In head 1.2")
    page.keyboard.press("ArrowLeft")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(button(page, "at every word")).to_be_focused()
    page.keyboard.press("Enter")
    expect(bar(page, "fall")).to_have_text("0.28 → 0.01")
    expect(button(page, "at every word")).to_be_focused()
    expect(button(page, "at every word")).to_have_attribute("aria-pressed", "true")
    mode = "window.jupyterapp.shell.currentWidget.content.mode"
    assert page.evaluate(mode) == "command", "the notebook went to work on these keys, too"


def heights_as_words_are_pointed_at(page: Page) -> set[float]:
    """Where the last word stands while the mouse is over one word after another."""
    words = explorer(page).locator(".ae-word").all()
    found = set()
    for each in words:
        each.dispatch_event("pointerenter", {"pointerType": "mouse"})
        found.add(words[-1].evaluate("word => word.getBoundingClientRect().top"))
        each.dispatch_event("pointerleave", {"pointerType": "mouse"})
    return found


WIDTHS_WITH = """(node, text) => {
  const before = node.textContent;
  node.textContent = text;
  const widths = [node.clientWidth, node.scrollWidth];
  node.textContent = before;
  return widths;
}"""


def test_axe_finds_nothing_in_either_theme_and_at_800_pixels(desk: Desk, camera: Camera) -> None:
    page = desk.page
    page.add_style_tag(content="body { height: 100vh }")
    for width in (1366, 800):
        page.set_viewport_size({"width": width, "height": 1100})
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            person.command(page, "apputils:change-theme", theme=theme)
            page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
            expect(page.locator("#jupyterlab-splash")).to_have_count(0)
            assert len(heights_as_words_are_pointed_at(page)) == 1
            word(page, "gym").hover()
            camera.shoot(page, f"{theme.split()[1].lower()}_{width}")
            assert faults(page, ROOT) == [], (theme, width)
            box, held = explorer(page).evaluate("node => [node.clientWidth, node.scrollWidth]")
            assert held <= box, "something sticks out"
            name = explorer(page).locator(".ae-bar .ae-name").first
            box, held = name.evaluate(WIDTHS_WITH, max(VOCABULARY, key=len))
            assert held <= box, "the name of a bar lies on the bar"
    page.set_viewport_size({"width": 1366, "height": 900})


def test_in_high_contrast_bars_and_what_is_pressed_are_seen(desk: Desk, camera: Camera) -> None:
    page = desk.page
    page.emulate_media(forced_colors="active")
    camera.shoot(page, "high_contrast")
    assert ground(button(page, "head 1.1")) != ground(button(page, "head 1.2"))
    assert ground(explorer(page).locator(".ae-now").first) != ground(explorer(page))
    page.emulate_media(forced_colors="none")


def ground(part: Locator) -> tuple[int, ...]:
    """The colour that most of a part has on the screen; what is computed knows no high contrast."""
    pixels = Image.open(BytesIO(part.screenshot())).convert("RGB")
    return max(pixels.getcolors(pixels.width * pixels.height))[1]


def test_nothing_was_loaded_from_elsewhere_and_no_error_said(desk: Desk) -> None:
    known = (desk.lab.url, "data:", "blob:", "ws:")
    assert [url for url in desk.seen.addresses if not url.startswith(known)] == []
    assert desk.seen.errors == []


def test_after_a_restart_of_the_kernel_one_still_looks_and_is_told_to_run_the_cell(
    desk: Desk, camera: Camera
) -> None:
    page = desk.page
    button(page, "nothing is changed").click()
    page.evaluate(RESTART)
    person.kernel_is_idle(page)
    person.cell(page, EXPLORE)
    button(page, "at every word").click()
    expect(explorer(page).get_by_role("alert")).to_contain_text("Run this cell again")
    expect(bar(page, "fall")).to_have_text("0.28")
    word(page, "he").click()
    expect(said(page)).to_contain_text("“he” looks at")
    camera.shoot(page, "restarted")


RESTART = """async () => {
  await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart();
}"""


def test_a_notebook_opened_without_its_kernel_shows_the_picture(desk: Desk, camera: Camera) -> None:
    page = desk.page
    person.save(page)
    person.open_lab(page, desk.lab)
    person.open_notebook(page, NAME)
    picture = person.cell(page, EXPLORE).locator("img")
    expect(picture).to_be_visible()
    expect(explorer(page)).to_have_count(0)
    camera.shoot(page, "reopened")
    run_both(page)
    expect(explorer(page)).to_be_visible(timeout=SLOW)
    expect(person.cell(page, EXPLORE).locator("img")).to_be_hidden()


def test_the_same_in_notebook(running: Lab, browser: Browser, camera: Camera) -> None:
    write_notebook(running.root)
    with watch(browser, running.token) as seen:
        page = seen.page
        page.set_viewport_size({"width": 1366, "height": 1000})
        page.goto(f"{running.url}/notebooks/{NAME}?token={running.token}")
        expect(page.locator(".jp-CodeCell")).to_have_count(len(CELLS), timeout=SLOW)
        person.kernel_is_idle(page)
        run_both(page)
        expect(explorer(page)).to_be_visible(timeout=SLOW)
        button(page, "gym").first.click()
        expect(word(page, "gym").locator(".ae-number")).to_have_text("0.91")
        button(page, "at every word").click()
        expect(bar(page, "fall")).to_have_text("0.28 → 0.01")
        expect(page.locator(".jp-CodeCell img")).to_be_hidden()
        camera.shoot(page, "notebook")
