"""What a person does in JupyterLab: opens a lesson, types, runs, looks.

It waits for states, not for times. Cells are found by their nbgrader name, or by how their text
begins, through the running application: JupyterLab draws an editor only where one looks.
"""

from playwright.sync_api import FrameLocator, Locator, Page, expect

from browser.conftest import Lab

SLOW = 120_000
"""Milliseconds: a kernel that imports torch, on a machine that is busy with other things."""

LOOK = 100
"""Milliseconds between two looks at a page; Playwright's default draws the page for each look."""

STARTED = "window.jupyterapp && window.jupyterapp.started"
SAVED = "!window.jupyterapp.shell.currentWidget.context.model.dirty"

COUNT = "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.executionCount"

HAS_RUN = """([place, before]) => {
  const model = window.jupyterapp.shell.currentWidget.content.widgets[place].model;
  return model.executionState === "idle" && model.executionCount !== before;
}"""

FIND = """wanted => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const found = notebook.widgets.findIndex(cell =>
    (cell.model.getMetadata("nbgrader") || {}).grade_id === wanted
    || cell.model.sharedModel.getSource().startsWith(wanted));
  if (found >= 0) { notebook.activeCellIndex = found; }
  return found;
}"""

CONNECTED = """() => {
  const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
  return session?.isReady && session.session?.kernel?.connectionStatus === "connected";
}"""

SHOW = """async place => {
  await window.jupyterapp.shell.currentWidget.content.scrollToItem(place, "start");
}"""


EXECUTE = """async ([name, given]) => {
  await window.jupyterapp.commands.execute(name, given);
}"""


def wait_until(page: Page, state: str, argument: object = None) -> None:
    """Wait until an expression of the page, or what a function returns there, is true."""
    page.wait_for_function(state, arg=argument, timeout=SLOW, polling=LOOK)


def open_lab(page: Page, lab: Lab) -> None:
    """Open an empty JupyterLab. Loading its code takes seconds, so a visitor loads it once."""
    page.goto(f"{lab.url}/lab?reset&token={lab.token}")
    wait_until(page, STARTED)
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=SLOW)


def open_notebook(page: Page, path: str) -> None:
    """Open a notebook in JupyterLab and wait until its kernel can be asked."""
    command(page, "docmanager:open", path=path)
    expect(page.locator(".jp-NotebookPanel:visible")).to_be_visible(timeout=SLOW)
    kernel_is_idle(page)


def kernel_is_idle(page: Page) -> None:
    """Wait until the kernel is connected: what runs before that is lost, even if it says idle."""
    wait_until(page, CONNECTED)
    status = page.locator(".jp-NotebookPanel:visible .jp-Notebook-ExecutionIndicator")
    expect(status).to_have_attribute("data-status", "idle", timeout=SLOW)


def command(page: Page, name: str, **arguments: str) -> None:
    """Choose a command, as from the palette, and wait until it is done."""
    page.evaluate(EXECUTE, [name, arguments])


def cell(page: Page, wanted: str) -> Locator:
    """A cell by its nbgrader name or by how its text begins, scrolled into view."""
    place = page.evaluate(FIND, wanted)
    assert place >= 0, f"no cell is called {wanted!r} or begins so"
    page.evaluate(SHOW, place)
    found = page.locator(f'.jp-NotebookPanel:visible [data-windowed-list-index="{place}"]')
    expect(found.first).to_be_visible(timeout=SLOW)
    return found.first


def type_into(page: Page, wanted: str, text: str) -> Locator:
    """Replace what stands in a cell."""
    chosen = cell(page, wanted)
    chosen.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    return chosen


def run_cell(page: Page, wanted: str) -> Locator:
    """Run a cell and wait until it has run; one whose source is folded away stays so."""
    chosen = cell(page, wanted)
    before = page.evaluate(COUNT)
    editor = chosen.locator(".cm-content")
    if editor.count():
        editor.click()
        editor.press("Shift+Enter")
    else:
        chosen.press("Shift+Enter")
    place = chosen.get_attribute("data-windowed-list-index")
    wait_until(page, HAS_RUN, [int(place or 0), before])
    return chosen


def answer(page: Page, exercise: str, code: str) -> Locator:
    """Type an answer, run it, and run its rubric; what the rubric says."""
    type_into(page, exercise, code)
    run_cell(page, exercise)
    return run_rubric(page, exercise)


def run_rubric(page: Page, exercise: str) -> Locator:
    return panel_of(run_cell(page, f"test_{exercise}"))


def panel_of(rubric_cell: Locator) -> Locator:
    """What a rubric cell says."""
    return rubric_cell.locator(".rubric")


def move_slider(page: Page, chosen: Locator, place: int, steps: int) -> str:
    """Move one of the sliders below a cell by the keyboard; what it reads then."""
    slider = chosen.locator(".widget-slider, .jupyter-widget-slider").nth(place)
    readout = slider.locator(".widget-readout")
    slider.locator(".noUi-handle").focus()
    for _ in range(steps):
        before = readout.inner_text()
        page.keyboard.press("ArrowRight")
        expect(readout).not_to_have_text(before)
    return readout.inner_text()


def save(page: Page) -> None:
    page.locator("[data-jp-item-name=save] jp-button").click()
    wait_until(page, SAVED)


def validate(page: Page) -> str:
    """Save, press Validate, and read its dialog."""
    page.locator("jp-button.validate-button").click()
    dialog = page.locator(".nbgrader-SuccessDialog, .nbgrader-ErrorDialog")
    expect(dialog).to_be_visible(timeout=SLOW)
    return dialog.inner_text()


def close_dialog(page: Page) -> None:
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def run_all(page: Page) -> None:
    """Run all cells in a kernel that has run nothing, and wait for the last one."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    wait_until(page, LAST_RAN)
    kernel_is_idle(page)


def restart_and_run_all(page: Page) -> None:
    """Restart the kernel, run all cells, and wait for the last one."""
    page.locator("[data-jp-item-name=restart-and-run] jp-button").click()
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    wait_until(page, LAST_RAN)
    kernel_is_idle(page)


LAST_RAN = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets;
  const code = cells.map(cell => cell.model).filter(
    model => model.type === "code" && model.sharedModel.getSource());
  return code.every((model, place) => model.executionCount === place + 1);
}"""


def write_into(page: Page, wanted: str, text: str) -> Locator:
    """Open a text cell with a double click, replace what stands there, and close it again."""
    chosen = cell(page, wanted)
    chosen.locator(".jp-RenderedMarkdown").dblclick()
    chosen.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.keyboard.press("Shift+Enter")
    expect(chosen.locator(".jp-RenderedMarkdown")).to_be_visible(timeout=SLOW)
    return chosen


def assignment(page: Page, state: str, lesson: str) -> Locator:
    """A lesson's row in nbgrader's list: of those released, fetched or submitted."""
    page.locator("#refresh_assignments_list:visible").click()
    rows = page.locator(f"#{state}_assignments_list:visible > .list_item")
    row = rows.filter(has_text=lesson)
    expect(row).to_be_visible(timeout=SLOW)
    return row


def in_files(page: Page, name: str) -> Locator:
    """An entry of the file browser."""
    return page.locator(".jp-DirListing-item").filter(has=page.get_by_text(name, exact=True))


def open_file(page: Page, name: str) -> FrameLocator:
    """Open a page that the file browser shows, with a double click."""
    in_files(page, name).dblclick()
    return page.frame_locator(".jp-HTMLViewer:visible iframe, .jp-IFrame:visible iframe")


def read_feedback(page: Page, lesson: str, notebook: str) -> FrameLocator:
    """Fetch the feedback on a submission from the list of assignments, and open its page."""
    command(page, "nbgrader:open-assignment-list")
    row = assignment(page, "submitted", lesson)
    row.get_by_role("button", name="Fetch Feedback").click()
    row.get_by_text("view feedback").click()
    return open_file(page, f"{notebook}.html")
