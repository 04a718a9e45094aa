"""JupyterLab as `autograde instructor` starts it, and what an instructor does in Formgrader."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import FrameLocator, Locator, Page, Response, expect

from autograde.marking.instructor import WORKSPACE
from browser.conftest import JUPYTERLAB, Lab, Watched, lab
from browser.person import SLOW


@contextmanager
def instructors_lab(root: Path, scratch: Path) -> Iterator[Lab]:
    """What `autograde instructor` starts, on a course."""
    with lab(root, scratch, ("autograde", "instructor", *JUPYTERLAB[2:])) as running:
        yield running


def open_formgrader(page: Page, server: Lab) -> FrameLocator:
    """What an instructor sees first, at the address that JupyterLab prints: Formgrader in a tab.

    Where the tab is there already, only Formgrader is loaded anew, not JupyterLab.
    """
    if page.url.startswith(f"{server.url}/lab"):
        frame = inside(page).owner.element_handle().content_frame()
        assert frame
        frame.goto(f"{server.url}/formgrader")
    else:
        page.goto(f"{server.url}{WORKSPACE}?token={server.token}")
    formgrader = inside(page)
    expect(formgrader.locator("#main-table td.name").first).to_be_visible(timeout=SLOW)
    return formgrader


@contextmanager
def opened(seen: Watched, server: Lab) -> Iterator[FrameLocator]:
    """Formgrader, loaded anew; the page says nothing on its console that is not known."""
    yield open_formgrader(seen.page, server)
    errors = seen.unknown_errors()
    assert not errors, errors


def inside(page: Page) -> FrameLocator:
    """Formgrader's page, in its tab."""
    return page.frame_locator(".jp-IFrame iframe")


def assignment(inside: FrameLocator, lesson: str) -> Locator:
    """A lesson's row in the table of assignments."""
    row = inside.locator(f'#main-table tr:has(td.name[data-order="{lesson}"])')
    expect(row).to_be_visible(timeout=SLOW)
    return row


def submission(inside: FrameLocator, student: str) -> Locator:
    """A student's row in the table of submissions."""
    row = inside.locator(f'#main-table tr:has(td.student-id[data-order="{student}"])')
    expect(row).to_be_visible(timeout=SLOW)
    return row


def press(inside: FrameLocator, row: Locator, button: str, *, well: bool = True) -> str:
    """Press one of a row's buttons; return what Formgrader says, a success only if `well`."""
    row.locator(f"td.{button} a").click()
    dialog = inside.locator("#success-modal, #error-modal")
    dialog.wait_for(timeout=SLOW)
    expect(dialog).to_have_css("opacity", "1")  # until then, it cannot be closed
    said = dialog.inner_text()
    assert dialog.get_attribute("id") == ("success-modal" if well else "error-modal"), said
    dialog.get_by_role("button", name="OK").click()
    expect(dialog).to_have_count(0, timeout=SLOW)
    return said


def open_submissions(inside: FrameLocator, lesson: str) -> None:
    assignment(inside, lesson).locator("td.num-submissions a").click()


def open_written_answers(inside: FrameLocator, lesson: str, notebook: str) -> None:
    """Manual grading: the list of what was handed in, by numbers instead of names."""
    inside.locator(".nav a").filter(has_text="Manual Grading").first.click()
    inside.locator("#main-table").get_by_role("link", name=lesson).click()
    inside.locator("#main-table").get_by_role("link", name=notebook).click()
    expect(inside.locator("#main-table tr td.name a.name-hidden").first).to_be_visible(timeout=SLOW)


def give_points(page: Page, inside: FrameLocator, cell: str, points: str) -> None:
    """Type points beside a cell."""
    _is_heard(inside.locator(f"input[id='{cell}_extra_credit']"))  # it comes to life with the other
    _type(page, inside.locator(f"input.score[id='{cell}']"), points, "grade")


def comment_on(page: Page, inside: FrameLocator, cell: str, comment: str) -> None:
    """Type a comment below a cell."""
    field = inside.locator(f"textarea[id='{cell}-comment']")
    _is_heard(field)
    _type(page, field, comment, "comment")


def _is_heard(field: Locator) -> None:
    """Wait until a field listens: until it has a placeholder, what is typed is lost."""
    expect(field).to_have_attribute("placeholder", re.compile("."), timeout=SLOW)


def _type(page: Page, field: Locator, text: str, kind: str) -> None:
    """Fill a field, leave it, and wait until it is saved."""

    def is_saved(answer: Response) -> bool:
        return f"/api/{kind}/" in answer.url and answer.request.method == "PUT" and answer.ok

    with page.expect_response(is_saved, timeout=SLOW):
        field.fill(text)
        field.blur()
