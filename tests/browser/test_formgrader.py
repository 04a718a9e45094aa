"""Formgrader in JupyterLab, beside a twin course in which the command line does the same."""

import getpass
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from classes import (
    FILES,
    NO_WALL,
    contents,
    file_of,
    fill,
    gradebook_of,
    put_file,
    reference_answers,
)
from conftest import program
from nightly import nightly
from playwright.sync_api import Browser, FrameLocator, Locator, expect

from autograde.authoring.variants import read_variants
from autograde.course.lessons import Lesson, lessons
from autograde.sandbox.wall import missing
from browser.conftest import Lab, Watched, watch
from browser.formgrader import (
    assignment,
    comment_on,
    give_points,
    instructors_lab,
    open_submissions,
    opened,
    press,
    submission,
)
from browser.person import in_files

pytestmark = nightly

LESSON, NOTEBOOK, EXERCISE = "07_my_lesson", "my_lesson", "center_rows"
STUDENTS = ("ada", "bob", "zoe", "eve")


def nbgrader(*arguments: str, cwd: Path, **env: str) -> None:
    done = program("nbgrader", *arguments, cwd=cwd, **env)
    assert done.returncode == 0, done.stdout + done.stderr


def autograde(root: Path, *arguments: str) -> None:
    done = program("autograde", *arguments, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def hand_in(lesson: Lesson) -> None:
    """ada has everything, bob a misconception and came late, zoe nothing, eve no notebook."""
    right = reference_answers(lesson)
    wrong = read_variants(lesson, lesson.exercise(EXERCISE)).wrong[0]
    answers = {"ada": right, "bob": {EXERCISE: wrong.code}, "zoe": {}}
    for student in STUDENTS:
        broken = student not in answers
        content = FILES["not_json"] if broken else fill(lesson, answers[student])
        path = put_file(lesson, student, content)
        path.with_name("timestamp.txt").write_text("2026-03-03 00:00:00 UTC")


@pytest.fixture(scope="module")
def twin(new_lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """A course of one lesson, made, built and graded by the command line."""
    root = tmp_path_factory.mktemp("twin") / "course"
    shutil.copytree(new_lesson.root, root)
    for path in (root / "source").rglob("*.*"):  # a lesson that is not finished is not released
        path.write_text(path.read_text().replace("REPLACE", "ready"))
    autograde(root, "build")
    lesson = lessons(root)[LESSON]
    hand_in(lesson)
    autograde(root, "grade", *NO_WALL)
    return lesson


@pytest.fixture(scope="module")
def lesson(twin: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """The same course with the same secret and the same work, neither built nor graded."""
    root = tmp_path_factory.mktemp("course")
    for name in ("source", "submitted"):
        shutil.copytree(twin.root / name, root / name)
    (root / ".autograde").mkdir()
    shutil.copy(twin.root / ".autograde" / "secret", root / ".autograde")
    config = (twin.root / "nbgrader_config.py").read_text()
    exchange = tmp_path_factory.mktemp("exchange")
    exchange.chmod(0o777)
    config += f"\nc.Exchange.root = {str(exchange)!r}\n"
    if missing():
        config += "c.Run.wall = False\n"
    (root / "nbgrader_config.py").write_text(config)
    return lessons(root)[LESSON]


@pytest.fixture(scope="module")
def server(lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with instructors_lab(lesson.root, tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="module")
def seen(browser: Browser) -> Iterator[Watched]:
    """The instructor's page, which all tests use: a new one would read JupyterLab's code again."""
    with watch(browser) as watched:
        yield watched


def submissions(inside: FrameLocator) -> dict[str, Locator]:
    """Go to the lesson's submissions: their rows, by student."""
    open_submissions(inside, LESSON)
    return {student: submission(inside, student) for student in STUDENTS}


def verdicts(lesson: Lesson, student: str) -> Any:
    path = file_of(lesson, student, "autograded")
    return nbformat.read(path, as_version=4).metadata["autograde"]


def page_of(lesson: Lesson, student: str) -> bytes:
    return file_of(lesson, student, "feedback").read_bytes()


def test_no_news_and_no_notices_of_updates(server: Lab, browser: Browser) -> None:
    name = "@jupyterlab/apputils-extension:notification"
    with watch(browser, server.token) as seen:
        found = seen.page.request.get(f"{server.url}/lab/api/settings/{name}").json()
    settings = found["schema"]["properties"]
    assert settings["fetchNews"]["default"] == "false"
    assert settings["checkForUpdates"]["default"] is False


def test_generate_gives_what_build_gives(
    server: Lab, lesson: Lesson, twin: Lesson, seen: Watched
) -> None:
    with opened(seen, server) as inside:
        said = press(inside, assignment(inside, LESSON), "assign")
        assert f"Successfully created the student version of '{LESSON}'" in said
        built, generated = twin.released_notebook.parent, lesson.released_notebook.parent
        assert files(generated) == files(built)
        # its preview is the folder, in Lab's own file browser
        assignment(inside, LESSON).locator("td.preview a").click()
        expect(in_files(seen.page, f"{NOTEBOOK}.ipynb")).to_be_visible()
        # nbgrader deletes the folder of a refused lesson, and Lab would say so in a dialog
        seen.page.locator(".jp-BreadCrumbs-home").first.click()
        expect(in_files(seen.page, "nbgrader_config.py")).to_be_visible()


def test_a_lesson_with_faults_is_refused_with_our_words(
    server: Lab, lesson: Lesson, seen: Watched
) -> None:
    text = lesson.text.read_text()
    lesson.text.write_text(text.replace('grade_id="center_rows"', 'grade_id="rows"', 1))
    try:
        with opened(seen, server) as inside:
            said = press(inside, assignment(inside, LESSON), "assign", well=False)
            assert (
                "the cell rows is of no exercise and no question in source/curriculum.toml" in said
            )
            lesson.text.write_text(text)
            press(inside, assignment(inside, LESSON), "assign")
    finally:
        lesson.text.write_text(text)


def test_autograde_gives_the_scores_of_the_command_line(
    server: Lab, lesson: Lesson, twin: Lesson, seen: Watched
) -> None:
    with opened(seen, server) as inside:
        rows = submissions(inside)
        for student, row in rows.items():
            said = press(inside, row, "autograde")
            assert f"Successfully autograded '{LESSON}' for student '{student}'" in said
        assert rows["ada"].locator("td.score").inner_text() == "2 / 2"
        assert rows["zoe"].locator("td.score").inner_text() == "0 / 2"
    assert contents(lesson.root) == contents(twin.root)
    for student in STUDENTS:
        assert verdicts(lesson, student) == verdicts(twin, student)


def test_generate_feedback_gives_our_page(
    server: Lab, lesson: Lesson, twin: Lesson, seen: Watched
) -> None:
    with opened(seen, server) as inside:
        for student, row in submissions(inside).items():
            said = press(inside, row, "generate-feedback")
            assert "Successfully generated feedback" in said
            assert page_of(lesson, student) == page_of(twin, student)


def test_a_score_given_by_hand_reaches_the_page(
    server: Lab, lesson: Lesson, twin: Lesson, seen: Watched
) -> None:
    with opened(seen, server) as inside:
        submissions(inside)["bob"].locator("td.student-name a").click()
        inside.get_by_role("link", name=NOTEBOOK, exact=True).click()
        give_points(seen.page, inside, f"test_{EXERCISE}", "1.25")
        comment_on(seen.page, inside, EXERCISE, "Nearly.")
    with opened(seen, server) as inside:
        bob = submissions(inside)["bob"]
        assert bob.locator("td.score").inner_text() == "1.25 / 2"
        press(inside, bob, "generate-feedback")
        press(inside, bob, "autograde")  # a score given by hand stays
        assert bob.locator("td.score").inner_text() == "1.25 / 2"
    with gradebook_of(twin.root) as gradebook:
        place = (NOTEBOOK, LESSON, "bob")
        gradebook.find_grade(f"test_{EXERCISE}", *place).manual_score = 1.25
        gradebook.find_comment(EXERCISE, *place).manual_comment = "Nearly."
        gradebook.db.commit()
    autograde(twin.root, "grade", *NO_WALL)
    assert b"Nearly." in page_of(twin, "bob")
    assert page_of(lesson, "bob") == page_of(twin, "bob")


def test_collect_brings_what_was_handed_in(
    server: Lab, lesson: Lesson, twin: Lesson, seen: Watched, tmp_path: Path
) -> None:
    student = getpass.getuser()
    with opened(seen, server) as inside:
        row = assignment(inside, LESSON)
        assert "Successfully released" in press(inside, row, "release")
        config = lesson.root / "nbgrader_config.py"
        root = re.search(r"^c\.Exchange\.root = '(.*)'$", config.read_text(), re.M)
        assert root
        exchange = [f"--Exchange.root={root[1]}", "--course=attention"]
        home = {"HOME": str(tmp_path), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
        nbgrader("fetch_assignment", LESSON, *exchange, cwd=tmp_path, **home)
        nbformat.write(
            fill(lesson, reference_answers(twin)), tmp_path / LESSON / f"{NOTEBOOK}.ipynb"
        )
        nbgrader("submit", LESSON, *exchange, cwd=tmp_path, **home)
        assert "Successfully collected" in press(inside, row, "collect")
    collected = file_of(lesson, student)
    assert {collected.name, "timestamp.txt"} <= set(files(collected.parent))


def test_a_lesson_made_meanwhile_travels_without_its_text(
    server: Lab, lesson: Lesson, seen: Watched
) -> None:
    autograde(lesson.root, "new", "08_second")
    with opened(seen, server) as inside:
        press(inside, assignment(inside, "08_second"), "assign")
    released = lessons(lesson.root)["08_second"].released_notebook.parent
    assert set(files(released)) == {"second.ipynb", "practice.safetensors.gz"}
