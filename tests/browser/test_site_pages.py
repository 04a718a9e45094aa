"""The lessons' site in a browser: it asks for nothing from elsewhere, fits a phone, and can be read
by everybody."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE
from nightly import nightly
from playwright.sync_api import Browser, expect

from autograde.authoring.site import render
from autograde.course.lessons import lessons
from browser.conftest import watch
from browser.test_accessibility import NO_COLOURS, faults

pytestmark = nightly

NAMES = ["index", "search", *lessons(HERE)]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_asks_for_nothing_and_can_be_reached(
    site: Path, browser: Browser, name: str
) -> None:
    with watch(browser) as seen:
        seen.page.goto((site / f"{name}.html").as_uri())
        for width in (1280, 360):
            seen.page.set_viewport_size({"width": width, "height": 800})
            seen.page.evaluate(OPEN)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert [url for url in seen.addresses if not url.startswith((site.as_uri(), "data:"))] == []
        assert seen.errors == []
        seen.page.evaluate(PLAIN)
        assert faults(seen.page, rules=NO_COLOURS) == []


PLAIN = """() => {
    document.querySelectorAll("pre").forEach(code => { code.textContent = code.textContent });
}"""
"""Takes the colours out of code; axe-core would spend most of its time on their elements."""

OPEN = """() => {
    document.querySelectorAll("details").forEach(each => { each.open = true });
    const pictures = [...document.images];
    pictures.forEach(each => { each.loading = "eager" });
    return Promise.all(pictures.map(each => each.decode()));
}"""
"""Unfolds everything and waits for every picture; one that cannot be shown is an error."""


def test_a_figure_is_sharp_and_no_wider_than_the_page(site: Path, browser: Browser) -> None:
    with watch(browser) as seen:
        seen.page.set_viewport_size({"width": 360, "height": 800})
        seen.page.goto((site / "06_multi_head.html").as_uri())
        seen.page.evaluate(OPEN)
        widths = seen.page.evaluate("[...document.images].map(x => [x.width, x.naturalWidth])")
    assert widths
    assert all(shown <= min(328, whole) for shown, whole in widths)


@pytest.mark.parametrize("name", ["index", "06_multi_head"])
@pytest.mark.parametrize(
    ("scheme", "chosen", "filtered"),
    [
        ("light", "auto", False), ("dark", "auto", True),
        ("dark", "light", False), ("light", "dark", True),
    ],
)  # fmt: skip
def test_a_figure_is_dark_on_a_dark_page(
    site: Path, browser: Browser, scheme: Any, chosen: str, filtered: bool, name: str
) -> None:
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.goto((site / f"{name}.html").as_uri())
        seen.page.evaluate("theme => { document.body.dataset.theme = theme }", chosen)
        figure = seen.page.locator("article img").last
        turned = "img => getComputedStyle(img).filter"
        assert figure.evaluate(turned) == (TURNED if filtered else "none")
        seen.page.emulate_media(color_scheme=scheme, media="print")
        assert figure.evaluate(turned) == "none"


TURNED = "invert(1) hue-rotate(180deg)"


@pytest.mark.parametrize(("scheme", "light"), [("light", True), ("dark", False)])
def test_a_lessons_own_box_has_the_colour_of_the_page(
    site: Path, browser: Browser, scheme: Any, light: bool
) -> None:
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.goto((site / "07_tiny_gpt.html").as_uri())
        box = seen.page.locator(".cell_output .note").first
        red, *_ = box.evaluate("box => getComputedStyle(box).backgroundColor.match(/\\d+/g)")
        assert (int(red) > 127) == light


def test_folds_open_on_a_click(site: Path, browser: Browser) -> None:
    with watch(browser) as seen:
        seen.page.goto((site / "03_inf_mask.html").as_uri())
        for words in ("Show the rubric", "Show what it is"):
            summary = seen.page.get_by_text(words).first
            button = seen.page.locator("summary", has_text=words).first
            expect(button).to_have_accessible_name(re.compile(words))
            folded = summary.locator("xpath=ancestor::details[1]")
            assert folded.get_attribute("open") is None
            summary.click()
            assert folded.get_attribute("open") is not None


def test_search_finds_a_lesson(site: Path, browser: Browser) -> None:
    with watch(browser) as seen:
        seen.page.goto((site / "search.html").as_uri() + "?q=padding")
        seen.page.locator(".sidebar-search").focus()
        expect(seen.page.locator(".sidebar-search")).to_have_css("outline-style", "solid")
        seen.page.locator("#search-results li a", has_text="The -inf mask").first.wait_for()
        assert seen.errors == []


def test_a_formula_is_drawn_without_a_script(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "pages").mkdir()
    text = "# A\n\nHere $QK^\\top$ and\n\n$$\\frac{a}{\\sqrt{d_k}}$$\n"
    (tmp_path / "pages" / "index.md").write_text(text)
    render(tmp_path / "pages", tmp_path / "site", "Lessons")
    with watch(browser) as seen:
        seen.page.goto((tmp_path / "site" / "index.html").as_uri())
        inline, block = seen.page.locator("math").all()
        assert inline.bounding_box()["height"] < block.bounding_box()["height"]
        assert [url for url in seen.addresses if not url.startswith(tmp_path.as_uri())] == []
