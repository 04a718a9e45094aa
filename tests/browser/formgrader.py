"""What an instructor does in Formgrader, opened inside JupyterLab."""

from playwright.sync_api import FrameLocator, Locator, Page, expect

from browser.person import SLOW, command


def open_formgrader(page: Page) -> FrameLocator:
    """Formgrader in a tab of its own, its table of assignments filled."""
    command(page, "nbgrader:open-formgrader")
    return inside(page)


def inside(page: Page) -> FrameLocator:
    """What stands in Formgrader's tab."""
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


def press(inside: FrameLocator, row: Locator, button: str) -> None:
    """Press one of a row's buttons and wait until Formgrader says that it went well."""
    row.locator(f"td.{button} a").click()
    said = inside.locator("#success-modal, #error-modal")
    expect(said).to_be_visible(timeout=SLOW)
    assert said.get_attribute("id") == "success-modal", said.inner_text()
    said.locator(".modal-footer button").click()
    expect(said).to_have_count(0, timeout=SLOW)


def open_submissions(inside: FrameLocator, lesson: str) -> None:
    assignment(inside, lesson).locator("td.num-submissions a").click()


def open_written_answers(inside: FrameLocator, lesson: str, notebook: str) -> None:
    """Manual grading: the list of what was handed in, by numbers instead of names."""
    inside.locator(".nav a").filter(has_text="Manual Grading").first.click()
    inside.locator("#main-table").get_by_role("link", name=lesson).click()
    inside.locator("#main-table").get_by_role("link", name=notebook).click()
    expect(inside.locator("#main-table tr td.name a.name-hidden").first).to_be_visible(timeout=SLOW)


def grade_by_hand(
    page: Page, inside: FrameLocator, question: str, points: str, comment: str
) -> None:
    """Type points and a comment beside a written answer; each is saved when one leaves it."""
    with page.expect_response(lambda answer: "/api/grade/" in answer.url and answer.ok):
        inside.locator(f"input.score[id='{question}']").fill(points)
        inside.locator(f"input.score[id='{question}']").blur()
    with page.expect_response(lambda answer: "/api/comment/" in answer.url and answer.ok):
        inside.locator(f"textarea[id='{question}-comment']").fill(comment)
        inside.locator(f"textarea[id='{question}-comment']").blur()
