"""JupyterLab as `make instructor` starts it, and what an instructor does in Formgrader."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import HERE
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from browser.conftest import Lab, Watched, lab, watch

SLOW = 120_000
"""Milliseconds: the server imports torch when something is first graded."""
HARMLESS = "mathjax"
"""Formgrader's page for grading asks for it at a network address; without it formulas stay text."""


def what_make_instructor_runs() -> tuple[str, str]:
    """Its folder of JupyterLab's settings, and the address it opens."""
    _, _, target = (HERE / "Makefile").read_text().partition("\ninstructor: ")
    target, _, _ = target.partition("\n\n")
    folder = re.search(r'JUPYTER_CONFIG_PATH="\$\(CURDIR\)/([\w/]+)', target)
    address = re.search(r"--LabApp.default_url='(\S+)'", target)
    assert folder
    assert address
    return folder[1], address[1]


@contextmanager
def instructors_lab(root: Path, scratch: Path) -> Iterator[Lab]:
    """What `make instructor` starts, on a course."""
    folder, _ = what_make_instructor_runs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_CONFIG_PATH", str(HERE / folder))
        with lab(root, scratch) as running:
            yield running


@contextmanager
def opened(browser: Browser, server: Lab, lesson: str) -> Iterator[tuple[Watched, FrameLocator]]:
    """What an instructor sees first, with Formgrader in a tab."""
    with watch(browser) as seen:
        _, address = what_make_instructor_runs()
        seen.page.goto(f"{server.url}{address}&token={server.token}")
        formgrader = seen.page.frame_locator(".jp-IFrame iframe")
        row_of(formgrader, lesson).wait_for(timeout=SLOW)
        yield seen, formgrader
        assert [error for error in seen.errors if HARMLESS not in error.lower()] == []


def row_of(formgrader: FrameLocator, lesson: str) -> Locator:
    return formgrader.locator(f'#main-table tr:has(td.name[data-order="{lesson}"])')


def press(formgrader: FrameLocator, button: Locator) -> str:
    """Press a button that makes the server do something, and read what it says at the end."""
    button.click()
    dialog = formgrader.locator("#success-modal, #error-modal")
    dialog.wait_for(timeout=SLOW)
    expect(dialog).to_have_css("opacity", "1")
    said = dialog.inner_text()
    dialog.get_by_role("button", name="OK").click()
    expect(dialog).to_have_count(0)
    return said


def in_files(page: Page, name: str) -> Locator:
    """An entry of the file browser."""
    return page.locator(".jp-DirListing-item").filter(has=page.get_by_text(name, exact=True))
