"""`autograde lab` in a released folder: the table of lessons, Validate, an answer, its grade.

The tests are steps of one student's day, in order.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import NO_WALL, gradebook_of, make_course
from conftest import HERE, program, run
from downloads import collect_zipped
from nightly import nightly
from playwright.sync_api import Browser, expect

from autograde.authoring.release import release
from autograde.course.lessons import lessons
from browser import person, places
from browser.conftest import Desk, lab, watch
from browser.person import SLOW

LESSON, EXERCISE = places.LESSON, "future_mask"
COMMAND = (sys.executable, "-m", "autograde.cli", "lab")

pytestmark = pytest.mark.story


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two lessons, as an instructor releases them."""
    root = tmp_path_factory.mktemp("student")
    release(HERE, [lessons(HERE)[name] for name in ("02_causal_mask", LESSON)], root / "lessons")
    return root / "lessons"


@pytest.fixture(scope="module")
def desk(student: Path, browser: Browser) -> Iterator[Desk]:
    with lab(student, student.parent, COMMAND) as running, watch(browser, running.token) as seen:
        yield Desk(running, seen)
        assert seen.errors == []


def test_a_student_starts_at_the_table_of_lessons(desk: Desk, student: Path) -> None:
    page = desk.page
    page.goto(desk.lab.url)
    table = page.locator(".jp-MarkdownViewer:visible")
    expect(table.locator("tbody").first.locator("tr")).to_have_count(2, timeout=SLOW)
    expect(table.get_by_text("Begin with")).to_have_count(1)
    table.locator("td").get_by_role("link", name="03 The -inf mask").click()
    expect(page.locator(".jp-NotebookPanel:visible")).to_be_visible(timeout=SLOW)
    person.kernel_is_idle(page)  # it was chosen and started
    expect(page.locator(".jp-Dialog")).to_have_count(0)
    page.wait_for_timeout(1500)
    expect(page.locator(".Toastify__toast")).to_have_count(0)
    expect(page.get_by_text("Would you like to get notified")).to_have_count(0)
    assert not page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty")
    known = (desk.lab.url, "data:", "blob:", "ws:")
    assert [url for url in desk.seen.addresses if not url.startswith(known)] == []


@nightly  # test_tools.py runs Validate with the same settings
def test_validate_says_what_is_not_written(desk: Desk) -> None:
    assert person.validate(desk.page).count("not written yet") == 6
    person.close_dialog(desk.page)


def test_an_answer_is_judged(desk: Desk) -> None:
    person.run_cell(desk.page, "setup")
    right = places.right_answer(lessons(HERE)[LESSON], EXERCISE)
    panel = person.answer(desk.page, EXERCISE, right)
    expect(panel).to_contain_text(
        "This lesson: 1 of 6 exercises right, 1 of 14 points. Next: mask_scores."
    )
    person.save(desk.page)


def test_what_is_submitted_is_graded(desk: Desk, student: Path, tmp_path: Path) -> None:
    lesson = make_course(tmp_path, (), LESSON)
    said = run(student / "work", "submit", lesson.name, "--yes")
    assert said.exit_code == 0, said.output
    assert "mask_scores: not begun" in said.output
    assert EXERCISE not in said.output
    packed = student / "work" / "hand_in" / f"{lesson.name}.zip"
    collect_zipped(lesson, {f"doejane_123_4567_{packed.name}": packed.read_bytes()})
    done = program("autograde", "grade", lesson.name, *NO_WALL, cwd=lesson.root)
    assert done.returncode == 0, done.stdout
    with gradebook_of(lesson.root) as gradebook:
        notebook = gradebook.find_submission_notebook(lesson.notebook, lesson.name, "123")
        points = {grade.name: grade.score for grade in notebook.grades}
    assert points[f"test_{EXERCISE}"] == 1
    assert sum(points.values()) == 1


def test_the_students_own_settings_are_left_alone(desk: Desk, student: Path) -> None:
    files = [path for path in (student.parent / "jupyter_config_dir").rglob("*") if path.is_file()]
    assert [file for file in files if "settings" in file.name or "overrides" in file.name] == []
