"""`autograde lab` as a student meets it: the table of lessons, a lesson, Validate."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from working_copy import LESSON, NOTEBOOK, make_project

from autograde.working.project import Project
from browser.conftest import Lab, lab, watch

COMMAND = (sys.executable, "-m", "autograde.cli", "lab")
SECONDS = 60_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("student"), (LESSON, "03_inf_mask"))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def server(project: Project, scratch: Path) -> Iterator[Lab]:
    with lab(project.root, scratch, COMMAND) as running:
        yield running


def test_a_student_starts_at_the_table_of_lessons(
    server: Lab, browser: Browser, scratch: Path
) -> None:
    with watch(browser, server.token) as seen:
        page = seen.page
        page.goto(server.url)
        table = page.locator(".jp-MarkdownViewer:visible")
        expect(table.locator("tbody").first.locator("tr")).to_have_count(2, timeout=SECONDS)
        table.get_by_role("link", name="02 The causal mask").click()
        panel = page.locator(".jp-NotebookPanel:visible")
        expect(panel).to_be_visible(timeout=SECONDS)
        idle = panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        expect(idle).to_have_count(1, timeout=SECONDS)  # the kernel was chosen and started
        expect(page.locator(".jp-Dialog")).to_have_count(0)
        page.wait_for_timeout(1500)
        expect(page.locator(".Toastify__toast")).to_have_count(0)
        expect(page.get_by_text("Would you like to get notified")).to_have_count(0)
        elsewhere = [url for url in seen.addresses if not url.startswith((server.url, "data:"))]
        assert [url for url in elsewhere if not url.startswith(("blob:", "ws:"))] == []
    written = [path.name for path in (scratch / "jupyter_config_dir").rglob("*") if path.is_file()]
    assert [name for name in written if "settings" in name or "overrides" in name] == []


def test_validate_says_what_the_rubric_says(
    server: Lab, browser: Browser, project: Project
) -> None:
    with watch(browser, server.token) as seen:
        page = seen.page
        page.goto(f"{server.url}/lab/tree/{LESSON}/{NOTEBOOK}.ipynb?reset")
        panel = page.locator(".jp-NotebookPanel:visible")
        idle = panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        expect(idle).to_have_count(1, timeout=SECONDS)
        page.locator("jp-button.validate-button:visible").click()
        dialog = page.locator(".nbgrader-ErrorDialog, .nbgrader-SuccessDialog")
        expect(dialog).to_be_visible(timeout=2 * SECONDS)
        expect(dialog).to_contain_text(re.compile(r"RubricFailed: causal_mask: not attempted yet"))
