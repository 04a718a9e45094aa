"""A story in a browser: a student works through lesson 03, and an instructor grades it.

The tests are its steps, in order. Screenshots of each are in build/screenshots/story/.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import gradebook_of, wrong_answer
from nightly import nightly
from playwright.sync_api import Browser, expect

from autograde.authoring.variants import read_variants
from autograde.course.lessons import Lesson
from autograde.sandbox.wall import missing
from browser import formgrader, person
from browser.conftest import FAILED, Camera, Desk, lab, watch
from browser.places import (
    LESSON,
    NOTEBOOK,
    QUESTION,
    hand_in_broken,
    make_course,
    make_student,
    right_answer,
)

pytestmark = [pytest.mark.story, nightly]

PATH = f"{LESSON}/{NOTEBOOK}.ipynb"
COMMENT = "And what happens to the other weights?"
needs_the_wall = pytest.mark.skipif(bool(missing()), reason=f"no wall here: {missing()}")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("story")


@pytest.fixture(scope="module")
def lesson(places: Path) -> Lesson:
    return make_course(places / "course", places / "exchange")


@pytest.fixture(scope="module")
def instructor(lesson: Lesson, places: Path, browser: Browser) -> Iterator[Desk]:
    scratch = places / "of_instructor"
    with formgrader.instructors_lab(lesson.root, scratch) as running, watch(browser) as seen:
        seen.page.set_viewport_size({"width": 1500, "height": 1000})
        yield Desk(running, seen)


@pytest.fixture(scope="module")
def ada(places: Path, browser: Browser) -> Iterator[Desk]:
    root = make_student(places / "ada", places / "exchange", "ada")
    with lab(root, places / "of_ada") as running, watch(browser) as seen:
        seen.page.set_viewport_size({"width": 1280, "height": 1500})
        yield Desk(running, seen)


@pytest.fixture(autouse=True)
def _looked_after(
    instructor: Desk, ada: Desk, camera: Camera, request: pytest.FixtureRequest
) -> Iterator[None]:
    """No step leaves an error on a console; one that fails shows what was to be seen."""
    yield
    for name, desk in {"instructor": instructor, "ada": ada}.items():
        if request.node.stash.get(FAILED, False):
            camera.shoot(desk.page, f"failed_{name}")
    assert instructor.seen.unknown_errors() == []
    assert ada.seen.errors == []


def test_the_instructor_releases_the_lesson(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.open_formgrader(instructor.page, instructor.lab)
    row = formgrader.assignment(inside, LESSON)
    formgrader.press(inside, row, "release")
    expect(row.locator("td.status")).to_have_text("released")
    camera.shoot(instructor.page, "released")


def test_the_student_fetches_it(ada: Desk, camera: Camera) -> None:
    person.open_lab(ada.page, ada.lab)
    person.command(ada.page, "nbgrader:open-assignment-list")
    row = person.assignment(ada.page, "released", LESSON)
    camera.shoot(ada.page, "assignments")
    row.get_by_role("button", name="Fetch").click()
    person.assignment(ada.page, "fetched", LESSON)


def test_the_student_predicts(ada: Desk, camera: Camera) -> None:
    person.open_notebook(ada.page, PATH)
    person.run_cell(ada.page, "setup")
    person.type_into(ada.page, "my_guess = None  # a list", "my_guess = [0.3, 0.7, 0]")
    person.run_cell(ada.page, "my_guess = [0.3")
    compared = person.run_cell(ada.page, "beside(my_guess").locator(".jp-OutputArea-output")
    expect(compared).to_contain_text("your guess: [0.3, 0.7, 0]")
    expect(compared).to_contain_text("it is:      [0.27, 0.73, 0.0]")
    camera.shoot(ada.page, "guess")


def test_a_wrong_answer_shows_its_symptom_then_the_belief(
    ada: Desk, lesson: Lesson, camera: Camera
) -> None:
    wrong = wrong_answer(lesson, "future_mask", "diagonal_hidden_too")
    belief = wrong.misconception.replace("`", "")[1:]
    panel = person.answer(ada.page, "future_mask", wrong.code)
    expect(panel).to_contain_text("is True, expected False")
    expect(panel.get_by_text(belief)).to_be_hidden()
    camera.shoot(ada.page, "symptom")
    panel = person.run_rubric(ada.page, "future_mask")
    expect(panel.get_by_text(belief)).to_be_visible()
    camera.show(ada.page, "wrong_answer", person.cell(ada.page, "future_mask"), panel)


def test_the_table_is_made_by_the_answer(ada: Desk, lesson: Lesson, camera: Camera) -> None:
    panel = person.answer(ada.page, "future_mask", right_answer(lesson, "future_mask"))
    expect(panel).to_contain_text("future_mask: 1 of 1 point")
    person.run_cell(ada.page, "mask = future_mask(6)")
    wrong = wrong_answer(lesson, "mask_scores", "zeros")
    expect(person.answer(ada.page, "mask_scores", wrong.code)).to_contain_text("✗")
    before = person.run_cell(ada.page, MAKES).inner_text()
    camera.shoot(ada.page, "table_of_wrong_answer")
    panel = person.answer(ada.page, "mask_scores", right_answer(lesson, "mask_scores"))
    expect(panel).to_contain_text("✓")
    expect(panel).not_to_contain_text("✗")
    after = person.run_cell(ada.page, MAKES).inner_text()
    assert "-inf" in after
    assert "-inf" not in before
    camera.show(ada.page, "right_answer", panel, person.cell(ada.page, MAKES))


MAKES = "masked = mask_scores"


def test_validate_says_what_the_rubrics_say(ada: Desk, lesson: Lesson, camera: Camera) -> None:
    (wrong, *_) = read_variants(lesson, lesson.exercise("padding_and_causal")).wrong
    panel = person.answer(ada.page, "padding_and_causal", wrong.code)
    line = panel.locator("li", has_text="✗").first
    said = person.validate(ada.page)
    camera.shoot(ada.page, "validate_failing")
    errors = dict(
        row.split(" is not right: ") for row in said.splitlines() if " is not right" in row
    )
    assert errors["masked_softmax"] == "not written yet"
    assert errors["padding_and_causal"] in line.inner_text()
    assert "mask_scores" not in errors
    person.close_dialog(ada.page)


def test_validate_accepts_right_answers(ada: Desk, lesson: Lesson, camera: Camera) -> None:
    person.write_into(ada.page, QUESTION, "Because `exp(0)` is 1, so **zero** hides nothing.")
    camera.shoot(ada.page, "in_words")
    for exercise in ("causal_weights", "padding_mask", "padding_and_causal", "masked_softmax"):
        person.type_into(ada.page, exercise, right_answer(lesson, exercise))
    said = person.validate(ada.page)
    camera.shoot(ada.page, "validate_passing")
    assert "Success! Your notebook passes all the tests." in said
    person.close_dialog(ada.page)


def test_the_answers_mend_the_model(ada: Desk, lesson: Lesson, camera: Camera) -> None:
    person.restart_and_run_all(ada.page)
    for exercise in lesson.exercises:
        panel = person.panel_of(person.cell(ada.page, exercise.rubric_cell))
        expect(panel).to_contain_text(f"{exercise.name}: {exercise.points:g} of")
        expect(panel).not_to_contain_text("✗")
    expect(person.cell(ada.page, "def say")).to_contain_text("is it alive ? → no")
    expect(person.cell(ada.page, "matrices, losses")).to_contain_text("is it alive ? → yes")
    camera.shoot(ada.page, "mended")


def test_a_slider_redraws_the_picture(ada: Desk, camera: Camera) -> None:
    chosen = person.cell(ada.page, "# demonstration: draws the figure\ndef with_gap")
    picture = chosen.locator(".widget-image, img").first
    expect(picture).to_be_visible(timeout=person.SLOW)
    before = picture.get_attribute("src")
    assert person.move_slider(ada.page, chosen, 0, 2) == "100"
    expect(chosen).to_contain_text("Hidden score 100 above", timeout=person.SLOW)
    expect(picture).not_to_have_attribute("src", str(before), timeout=person.SLOW)
    camera.shoot(ada.page, "slider")


def test_the_student_submits(ada: Desk, camera: Camera) -> None:
    person.save(ada.page)
    person.command(ada.page, "nbgrader:open-assignment-list")
    person.assignment(ada.page, "fetched", LESSON).get_by_role("button", name="Submit").click()
    person.assignment(ada.page, "submitted", LESSON)
    camera.shoot(ada.page, "submitted")


@needs_the_wall
def test_the_instructor_collects_also_what_is_broken(
    instructor: Desk, places: Path, camera: Camera
) -> None:
    hand_in_broken(make_student(places / "eve", places / "exchange", "eve"))
    inside = formgrader.open_formgrader(instructor.page, instructor.lab)
    row = formgrader.assignment(inside, LESSON)
    formgrader.press(inside, row, "collect")
    expect(row.locator("td.num-submissions")).to_have_text("2")
    camera.shoot(instructor.page, "collected")


@needs_the_wall
def test_formgrader_grades_behind_the_wall(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.inside(instructor.page)
    formgrader.open_submissions(inside, LESSON)
    for student, score, state in (
        ("ada", "14 / 16", "needs manual grading"),
        ("eve", "0 / 16", "graded"),
    ):
        row = formgrader.submission(inside, student)
        formgrader.press(inside, row, "autograde")
        expect(row.locator("td.score")).to_have_text(score)
        expect(row.locator("td.status")).to_have_text(state)
    camera.show(
        instructor.page, "formgrader", inside.locator(".breadcrumb"), inside.locator("table")
    )


@needs_the_wall
def test_the_instructor_grades_the_words_by_hand(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.inside(instructor.page)
    formgrader.open_written_answers(inside, LESSON, NOTEBOOK)
    camera.shoot(instructor.page, "waiting")
    inside.locator("#main-table tr:has(td.needs-manual-grade span) a.name-hidden").click()
    expect(inside.locator("body")).to_contain_text("One point for exp(0) = 1")
    formgrader.give_points(instructor.page, inside, QUESTION, "1.5")
    formgrader.comment_on(instructor.page, inside, QUESTION, COMMENT)
    inside.locator(f"input.score[id='{QUESTION}']").scroll_into_view_if_needed()
    camera.shoot(instructor.page, "graded_by_hand")


@needs_the_wall
def test_the_instructor_returns_feedback(instructor: Desk, lesson: Lesson, camera: Camera) -> None:
    inside = formgrader.open_formgrader(instructor.page, instructor.lab)
    formgrader.open_submissions(inside, LESSON)
    expect(formgrader.submission(inside, "ada").locator("td.score")).to_have_text("15.5 / 16")
    for button in ("generate-feedback", "release-feedback"):
        for student in ("ada", "eve"):
            formgrader.press(inside, formgrader.submission(inside, student), button)
    camera.shoot(instructor.page, "returned")
    with gradebook_of(lesson.root) as gradebook:
        scores = {s.student.id: s.score for s in gradebook.assignment_submissions(LESSON)}
    assert scores == {"ada": 15.5, "eve": 0.0}


@needs_the_wall
def test_the_student_reads_the_feedback(ada: Desk, camera: Camera) -> None:
    page = person.read_feedback(ada.page, LESSON, NOTEBOOK)
    expect(page.locator("body")).to_contain_text("15.5 of 16 points")
    expect(page.locator("body")).to_contain_text("The others show no output here.")
    camera.shoot(ada.page, "feedback")
    page.get_by_role("link", name=QUESTION).first.click()
    expect(page.get_by_text(COMMENT)).to_be_in_viewport()
    camera.shoot(ada.page, "comment")
