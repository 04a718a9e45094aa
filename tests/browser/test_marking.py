"""The marking page of `autograde mark` with 40 answers: keyboard, two people, harmless text."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from classes import gradebook_of
from marking_class import LESSON, QUESTION, make_marking_class, row_of
from nightly import nightly
from playwright.sync_api import Browser, Locator, Page, expect

from autograde.course.lessons import Lesson
from autograde.values.text import of_points
from browser.conftest import Camera, Lab, lab, watch
from browser.formgrader import instructors_lab
from browser.test_accessibility import faults

pytestmark = nightly

STUDENTS = 40
COMMAND = (sys.executable, "-m", "autograde.cli", "mark", LESSON)
ANSWER = """A buffer is part of the layer's state, so `.to(device)` moves it, and it is saved with
the weights.

- A plain attribute stays **where it was made**.
- A parameter would be trained.

```python
self.register_buffer("mask", torch.tril(torch.ones(n, n)))
```

This is answer {}."""
HOSTILE = """<script>window.evil = 1</script><img src=x onerror="window.evil = 1">
<article data-grade="x"><input name="score" value="2"><button id="names">b</button></article>"""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    answers = {f"student{i:03}": ANSWER.format(i) for i in range(STUDENTS - 1)}
    return make_marking_class(tmp_path_factory.mktemp("course"), {**answers, "mallory": HOSTILE})


@pytest.fixture(scope="module")
def server(lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(lesson.root, tmp_path_factory.mktemp("lab"), COMMAND) as running:
        yield running


def address(server: Lab) -> str:
    return f"{server.url}/marking/{LESSON}/{QUESTION}"


def open_page(page: Page, server: Lab) -> None:
    """Open the page as the command does, with the token in the address."""
    page.goto(f"{server.url}/marking/{LESSON}?token={server.token}")
    expect(page.locator("article")).to_have_count(STUDENTS)


def student_of(article: Locator) -> str:
    text = article.locator(".name").text_content() or ""
    return text.removeprefix(", ").split()[0]


def waiting(page: Page) -> int:
    return int(page.locator("#waiting").inner_text())


def test_points_by_keyboard_are_in_the_gradebook(
    lesson: Lesson, server: Lab, browser: Browser, camera: Camera
) -> None:
    with watch(browser) as seen:
        page = seen.page
        start = time.monotonic()
        open_page(page, server)
        print(f"{STUDENTS} answers opened in {time.monotonic() - start:.1f} s")
        articles = page.locator("article")
        assert waiting(page) == STUDENTS
        first, second, third = (articles.nth(i) for i in range(3))
        expect(first.locator("[name=score]")).to_be_focused()
        page.keyboard.type("2")
        page.keyboard.press("Enter")
        expect(first.locator(".state")).to_have_text("saved")
        expect(second.locator("[name=score]")).to_be_focused()
        assert row_of(lesson, student_of(first)) == (2.0, None, False)

        second.locator("[name=comment]").fill("Say what moves it.")
        page.keyboard.press("Shift+Tab")
        page.keyboard.type("1,5")
        page.keyboard.press("Enter")
        expect(second.locator(".state")).to_have_text("saved")
        assert row_of(lesson, student_of(second)) == (1.5, "Say what moves it.", False)

        expect(third.locator("[name=score]")).to_be_focused()
        page.keyboard.press("Alt+1")  # the comment that was just given
        page.keyboard.type("0")
        page.keyboard.press("Enter")
        expect(page.locator("#waiting")).to_have_text(str(STUDENTS - 3))
        assert row_of(lesson, student_of(third)) == (0.0, "Say what moves it.", False)

        page.keyboard.press("ArrowUp")
        expect(third.locator("[name=score]")).to_be_focused()
        camera.shoot(page, "marking")
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        expect(third.locator(".state")).to_have_text("not saved: Between 0 and 2 points, please.")
        expect(page.locator("#unsaved")).to_have_text("1 not saved")
        assert row_of(lesson, student_of(third))[0] == 0.0
        third.locator("[name=score]").fill("0")
        page.keyboard.press("Enter")
        expect(page.locator("#unsaved")).to_have_text("")
        assert [each for each in seen.errors if "400" not in each] == []
        page.reload()
        expect(first.locator("[name=score]")).to_have_value("2")
        assert waiting(page) == STUDENTS - 3


def test_the_header_hides_no_answer(server: Lab, browser: Browser) -> None:
    with watch(browser) as seen:
        seen.page.set_viewport_size({"width": 1000, "height": 700})  # its parts take two rows
        open_page(seen.page, server)
        header = seen.page.locator("header").bounding_box()
        answer = seen.page.locator("article:focus-within").bounding_box()
        assert header
        assert answer
        assert header["y"] + header["height"] < answer["y"]


def test_names_are_hidden_until_one_asks(server: Lab, browser: Browser) -> None:
    with watch(browser) as seen:
        open_page(seen.page, server)
        name = seen.page.locator("article .name").first
        expect(name).to_be_hidden()
        seen.page.get_by_label("Hide names").uncheck()
        expect(name).to_be_visible()
        link = name.get_by_role("link").get_attribute("href")
        assert seen.page.request.get(f"{server.url}{link}").ok  # Formgrader's page of it


def test_two_people_do_not_overwrite_each_other_in_silence(
    lesson: Lesson, server: Lab, browser: Browser
) -> None:
    with watch(browser) as one, watch(browser) as other:
        for seen in (one, other):
            open_page(seen.page, server)
        theirs = one.page.locator("article[data-state=waits]").last
        grade = theirs.get_attribute("data-grade")
        theirs, mine = (s.page.locator(f"article[data-grade='{grade}']") for s in (one, other))
        student = student_of(theirs)
        theirs.locator("[name=score]").fill("1")
        one.page.keyboard.press("Enter")
        expect(theirs.locator(".state")).to_have_text("saved")
        mine.locator("[name=score]").fill("2")
        other.page.keyboard.press("Enter")
        expect(mine.locator(".state")).to_contain_text("not saved: somebody has marked this")
        expect(other.page.locator("#unsaved")).to_have_text("1 not saved")
        assert row_of(lesson, student) == (1.0, None, False)


def test_a_students_text_neither_runs_nor_looks_like_a_field(server: Lab, browser: Browser) -> None:
    with watch(browser) as seen:
        open_page(seen.page, server)
        seen.page.wait_for_timeout(500)
        assert seen.page.evaluate("window.evil") is None
        assert seen.page.locator(".text").locator("input, button, article, img").count() == 0
        # a script that got through all the same would not run, either
        seen.page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "window.evil = 1";
            document.body.append(script);
        }""")
        assert seen.page.evaluate("window.evil") is None
        assert any("Content Security Policy" in error for error in seen.errors)


def test_only_who_has_the_token_may_look_or_save(server: Lab, browser: Browser) -> None:
    with watch(browser) as seen:
        answer = seen.page.request.get(address(server))
        assert "/login" in answer.url
        assert seen.page.request.put(address(server), data="{}").status == 403
        open_page(seen.page, server)  # a cookie alone is not enough, either: another site has it
        assert seen.page.request.put(address(server), data="{}").status == 403


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_on_it_is_hard_to_read_or_to_reach(
    server: Lab, browser: Browser, scheme: Any
) -> None:
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        open_page(seen.page, server)
        seen.page.get_by_label("Hide names").uncheck()
        assert faults(seen.page) == []
        seen.page.set_viewport_size({"width": 360, "height": 800})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.fixture(scope="module")
def instructor(lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with instructors_lab(lesson.root, tmp_path_factory.mktemp("instructor")) as running:
        yield running


def test_formgrader_leads_to_it(instructor: Lab, browser: Browser) -> None:
    with watch(browser, instructor.token) as seen:
        seen.page.goto(f"{instructor.url}/formgrader/gradebook")
        link = seen.page.get_by_role("link", name="Mark question by question")
        with seen.page.context.expect_page() as opened:
            link.click()
        expect(opened.value.locator("article")).to_have_count(STUDENTS)


def standing(lesson: Lesson) -> tuple[float, float, float]:
    """The score of the first student, its maximum, and the points that await marking."""
    with gradebook_of(lesson.root) as gradebook:
        marks = gradebook.find_submission_notebook(lesson.notebook, LESSON, "student000").grades
        waiting = sum(m.max_score for m in marks if (m.manual_score, m.auto_score) == (None, None))
        return sum(m.score for m in marks), lesson.points, waiting


def test_formgraders_page_of_a_submission_is_folded_and_says_the_score(
    lesson: Lesson, instructor: Lab, browser: Browser, camera: Camera
) -> None:
    with gradebook_of(lesson.root) as gradebook:
        number = gradebook.find_submission_notebook(lesson.notebook, LESSON, "student000").id
    with watch(browser, instructor.token) as seen:
        seen.page.goto(f"{instructor.url}/formgrader/submissions/{number}/")
        rubric = f"test_{lesson.exercises[0].name}"
        cell = seen.page.locator(f".nbgrader_cell:has(input[id='{rubric}'])")
        expect(cell.locator("input.score")).to_be_visible()
        expect(seen.page.get_by_role("status")).to_have_text(of_points(*standing(lesson)))
        expect(cell.locator(".input_area pre")).to_be_hidden()
        camera.shoot(seen.page, "folded")
        cell.get_by_text("The rubric").click()
        expect(cell.locator(".input_area pre")).to_be_visible()
        answer = seen.page.locator(f".nbgrader_cell:has([id='{lesson.exercises[0].name}-comment'])")
        expect(answer.locator(".input_area pre")).to_be_visible()
        assert seen.page.evaluate(FRAME) == "0px"


FRAME = """() => {
    const picture = document.querySelector("#notebook").appendChild(document.createElement("img"));
    return getComputedStyle(picture).borderTopWidth;
}"""
