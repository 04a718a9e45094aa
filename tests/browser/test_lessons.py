"""`autograde lab` as a student meets it: the page of lessons, a lesson, Validate."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import NO_WALL, gradebook_of, make_course
from conftest import HERE, run
from downloads import zip_collect
from playwright.sync_api import Browser, Locator, Page, expect
from working_copy import LESSON, make_project

from autograde.authoring.release import release
from autograde.course import lessons
from autograde.workspace.project import Project
from browser import person, places
from browser.conftest import Lab, lab, watch
from browser.person import SLOW

COMMAND = (sys.executable, "-m", "autograde.cli", "lab")


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


def table_of_lessons(page: Page) -> Locator:
    return page.locator(".jp-MarkdownViewer:visible")


def test_a_student_starts_at_the_table_of_lessons_and_validates_one(
    server: Lab, browser: Browser, scratch: Path
) -> None:
    with watch(browser, server.token) as seen:
        page = seen.page
        page.goto(server.url)
        table = table_of_lessons(page)
        expect(table.locator("tbody").first.locator("tr")).to_have_count(2, timeout=SLOW)
        expect(table.get_by_text("Begin with")).to_have_count(1)
        table.locator("td").get_by_role("link", name="02 The causal mask").click()
        panel = page.locator(".jp-NotebookPanel:visible")
        expect(panel).to_be_visible(timeout=SLOW)
        idle = panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        expect(idle).to_have_count(1, timeout=SLOW)  # the kernel was chosen and started
        expect(page.locator(".jp-Dialog")).to_have_count(0)
        page.wait_for_timeout(1500)
        expect(page.locator(".Toastify__toast")).to_have_count(0)
        expect(page.get_by_text("Would you like to get notified")).to_have_count(0)
        assert not page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty")
        elsewhere = [url for url in seen.addresses if not url.startswith((server.url, "data:"))]
        assert [url for url in elsewhere if not url.startswith(("blob:", "ws:"))] == []
        said = person.validate(page)
        assert said.count("not written yet") == 6
    written = [path.name for path in (scratch / "jupyter_config_dir").rglob("*") if path.is_file()]
    assert [name for name in written if "settings" in name or "overrides" in name] == []


def test_what_a_student_of_a_released_folder_submits_is_graded(
    browser: Browser, tmp_path: Path
) -> None:
    lesson = make_course(tmp_path / "course", (), places.LESSON)
    student, exercise = tmp_path / "student", "future_mask"
    release(HERE, [lessons(HERE)[lesson.name]], student)
    with lab(student, tmp_path, COMMAND) as running, watch(browser, running.token) as seen:
        page = seen.page
        page.goto(running.url)
        table_of_lessons(page).get_by_role("link", name=lesson.title).first.click()
        person.kernel_is_idle(page)
        person.run_cell(page, "setup")
        panel = person.answer(page, exercise, places.right_answer(lesson, exercise))
        expect(panel).to_contain_text(
            "This lesson: 1 of 5 exercises right, 1 of 14 points. Next: mask_scores."
        )
        person.save(page)
        assert seen.errors == []
    said = run(student / "work", "submit", lesson.name, "--yes")
    assert said.exit_code == 0, said.output
    assert "mask_scores: not begun" in said.output
    assert exercise not in said.output
    packed = student / "work" / "hand_in" / f"{lesson.name}.zip"
    zip_collect(lesson, {f"doejane_123_4567_{packed.name}": packed.read_bytes()})
    said = run(lesson.root, "grade", lesson.name, *NO_WALL)
    assert said.exit_code == 0, said.output
    with gradebook_of(lesson.root) as gradebook:
        notebook = gradebook.find_submission_notebook(lesson.notebook, lesson.name, "123")
        points = {grade.name: grade.score for grade in notebook.grades}
    assert points[f"test_{exercise}"] == 1
    assert sum(points.values()) == 1
