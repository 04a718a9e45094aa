"""Feedback and class report in a browser: on a phone nothing runs off to the side."""

import pytest
from playwright.sync_api import Browser, expect

from autograde.course.lessons import Lesson
from autograde.report.class_report import write_report
from browser.conftest import Camera, watch

FEEDBACK = "feedback/{}/02_causal_mask/causal_mask.html"
PAGES = [FEEDBACK.format("bob"), FEEDBACK.format("eve"), "report/02_causal_mask.html"]


@pytest.fixture(scope="module")
def reported(small_class: Lesson) -> Lesson:
    write_report(small_class)
    return small_class


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [360, 1280])
def test_a_page_fits_and_asks_for_nothing(
    reported: Lesson, browser: Browser, path: str, width: int
) -> None:
    with watch(browser) as seen:
        seen.page.set_viewport_size({"width": width, "height": 800})
        seen.page.goto((reported.root / path).as_uri())
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert [url for url in seen.addresses if not url.startswith(("file:", "data:"))] == []
        assert seen.errors == []


def test_feedback_shows_the_belief_behind_a_mistake(
    small_class: Lesson, browser: Browser, camera: Camera
) -> None:
    with watch(browser) as seen:
        seen.page.set_viewport_size({"width": 1000, "height": 1400})
        seen.page.goto((small_class.root / FEEDBACK.format("bob")).as_uri())
        first = seen.page.locator(".exercise", has_text="causal_mask:").first
        expect(first).to_contain_text("usually comes from assuming that")
        camera.show(seen.page, "feedback", seen.page.locator("h1"), first)


@pytest.mark.parametrize("path", [PAGES[0], PAGES[-1]])
def test_a_page_is_dark_where_pages_are_and_light_on_paper(
    reported: Lesson, browser: Browser, path: str
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    turned = "img => getComputedStyle(img).filter"
    with watch(browser) as seen:
        seen.page.goto((reported.root / path).as_uri())
        figure = seen.page.locator("img").first
        seen.page.emulate_media(color_scheme="dark")
        assert seen.page.evaluate(ground) == "rgb(27, 27, 27)"
        assert figure.evaluate(turned) == "invert(1) hue-rotate(180deg)"
        seen.page.emulate_media(color_scheme="dark", media="print")
        assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"
        assert figure.evaluate(turned) == "none"


def test_code_on_a_feedback_page_is_coloured(small_class: Lesson, browser: Browser) -> None:
    with watch(browser) as seen:
        seen.page.goto((small_class.root / FEEDBACK.format("bob")).as_uri())
        code = seen.page.locator(".highlight").filter(has_text="def ").first
        colours = code.evaluate(
            "code => [code, code.querySelector('.k')].map(each => getComputedStyle(each).color)"
        )
        assert colours[0] != colours[1]
