"""What axe-core, the usual checker of web pages, says of our panels and pages.

Nothing serious and nothing critical: colours that are hard to read, pictures without words, tables,
headings and landmarks that a screen reader cannot follow, places that no keyboard reaches.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import nbformat.sign
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import HERE
from nbformat import NotebookNode
from nightly import nightly
from playwright.sync_api import Browser, Page, expect

from autograde.course.lessons import Lesson, lessons
from autograde.notebook.asking import in_paragraphs
from autograde.progress import Standing
from autograde.report.class_report import write_report
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief
from autograde.rubric.panel import Help, advice, panel, to_display, with_edits_noticed
from autograde.values.base import Table
from browser import person
from browser.conftest import Lab, lab, watch

pytestmark = nightly

MENDED = {"serious", "critical"}
NO_COLOURS = {"color-contrast": {"enabled": False}}
"""For pages whose colours another page has already shown; this rule takes most of the time."""


def faults(page: Page, within: str = "html", rules: dict[str, Any] | None = None) -> list[str]:
    """The serious faults in a part of a page, with everything that is folded opened.

    On a busy machine a page may still be fading in, and is pale for a moment: a fault is one that
    is there a little later, too.
    """
    if found := _faults(page, within, rules):
        page.wait_for_timeout(SETTLED_MS)
        found = _faults(page, within, rules)
    return found


def _faults(page: Page, within: str, rules: dict[str, Any] | None) -> list[str]:
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = Axe().run(page, within, {"resultTypes": ["violations"], "rules": rules or {}}).response
    unseen = [rule["id"] for rule in found["inapplicable"] if rule["id"] == "color-contrast"]
    return [f"{rule}: no text was looked at" for rule in unseen] + [
        f"{fault['id']}: {node['html'][:200]} {node['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] in MENDED
        for node in fault["nodes"]
    ]


SETTLED_MS = 3000
NO_PICTURES = {"image-alt": {"enabled": False}}
"""JupyterLab 4.6 shows a PNG output without the text alternative that is stored with it."""


BAD = {
    "pale text": '<p style="color: #bbb; background: #fff">words</p>',
    "a picture without words": '<img src="data:image/png;base64,iVBORw0KGgo=">',
    "a link without words": '<a href="#there"></a>',
    "no name for a button": "<button></button>",
    "wide code that no keyboard scrolls": f"<pre style='overflow: auto'>{'x' * 999}</pre>",
}
"""Adding a case is adding a row."""


@pytest.mark.parametrize("html", BAD.values(), ids=BAD)
def test_what_is_bad_is_found(browser: Browser, html: str) -> None:
    with watch(browser) as seen:
        seen.page.set_content(f"<html lang=en><title>x</title><main><h1>x</h1>{html}</main></html>")
        assert len(_faults(seen.page, "html", None)) == 1


GOT = Table("shape (2, 2)", (("1", "0.5000"), ("0", "-inf")), ((0, 1), (1, 1)))
FAILED = Failure("`f(x)`[0, 1] is 0.5000, expected 0.", "f(x)", GOT, GOT)
RIGHT = LineVerdict("one sentence", True, 1.0, 1.0)
WRONG = LineVerdict("a batch", False, 0.0, 1.0, FAILED)
KNOWN = Belief("no_scale", "scores need no scale.", "Look at `d_k`.", ("a batch",))
VERDICTS = {
    "right": Verdict("weights", 2.0, 2.0, (RIGHT, RIGHT)),
    "wrong": Verdict("weights", 1.0, 2.0, (RIGHT, WRONG)),
    "misconception": Verdict("weights", 0.0, 2.0, (WRONG, WRONG), beliefs=(KNOWN,)),
    "not attempted": Verdict(
        "weights", 0.0, 2.0, (WRONG,), note="Not written yet.", attempted=False
    ),
}
"""What a rubric cell may show. Adding a case is adding a row."""

HELPS = (Help("Why?", ("Because of `this`.",)), Help("Hint 1 of 2", ("a",), (Help("Hint 2", ()),)))
BEGUN = Standing("02", {"a": 1.0, "b": 2.0, "c": 2.0}, {"a": 1.0, "b": 0.5})
DONE = Standing("01", {"d": 3.0}, {"d": 3.0})
NOTES = {
    "hint 1 of 2": ["Which dimension is that of the keys?"],
    "a lesson begun": in_paragraphs(BEGUN, [DONE]),
    "a lesson done": in_paragraphs(DONE, [BEGUN]),
}
"""What `hint()` and `progress()` may show. Adding a case is adding a row."""


def shown(data: dict[str, str]) -> NotebookNode:
    return nbformat.v4.new_output("display_data", data)


@pytest.fixture(scope="module")
def panels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a notebook that shows every panel, a hint, and a lesson's outputs."""
    root, scratch = tmp_path_factory.mktemp("panels"), tmp_path_factory.mktemp("lab")
    outputs = []
    for verdict in VERDICTS.values():
        said = advice(verdict, named=True)
        outputs.append(shown(with_edits_noticed(to_display(verdict, said, HELPS))))
    outputs += [shown(panel("idle", title, said)) for title, said in NOTES.items()]
    lesson = lessons(HERE)["02_causal_mask"]
    solution = nbformat.read(lesson.solution_notebook, as_version=4)
    for cell in solution.cells:
        outputs += [o for o in cell.get("outputs", []) if "text/html" not in o.get("data", {})]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    nb.metadata = solution.metadata  # names the kernel, so that nothing asks for one
    nbformat.write(nb, root / "panels.ipynb")
    with lab(root, scratch) as running:
        notary = nbformat.sign.NotebookNotary(data_dir=str(scratch / "jupyter_data_dir"))
        notary.sign(nb)
        notary.store.close()
        yield running


def test_panels_in_jupyterlab(panels: Lab, browser: Browser) -> None:
    with watch(browser, panels.token) as seen:
        seen.page.goto(f"{panels.url}/lab/tree/panels.ipynb?reset&token={panels.token}")
        shown = seen.page.locator(".jp-OutputArea").locator(".rubric, .note")
        expect(shown).to_have_count(len(VERDICTS) + len(NOTES))
        expect(
            seen.page.locator(".jp-OutputArea").get_by_text("hint 1 of 2", exact=True)
        ).to_be_visible()
        # its body is of no height, and what such a body hides counts as not shown
        seen.page.add_style_tag(content="body { height: 100vh }")
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            person.command(seen.page, "apputils:change-theme", theme=theme)
            seen.page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
            # what the splash covers does not count as shown
            expect(seen.page.locator("#jupyterlab-splash")).to_have_count(0)
            found = faults(seen.page, ".jp-OutputArea", NO_PICTURES)
            assert found == [], theme


@pytest.mark.parametrize(
    ("student", "scheme"), [("bob", "light"), ("bob", "dark"), ("eve", "dark")]
)
def test_feedback(small_class: Lesson, browser: Browser, student: str, scheme: Any) -> None:
    page = small_class.root / "feedback" / student / small_class.name / "causal_mask.html"
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.goto(page.as_uri())
        assert faults(seen.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report(small_class: Lesson, browser: Browser, scheme: Any) -> None:
    page = write_report(small_class)
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.set_viewport_size({"width": 360, "height": 800})
        seen.page.goto(page.as_uri())
        assert faults(seen.page) == []


SHOWN = [
    ("index", "light"),
    ("search", "light"),
    ("02_causal_mask", "light"),
    ("02_causal_mask", "dark"),
]


@pytest.mark.parametrize(("name", "scheme"), SHOWN)
def test_the_sites_colours(site: Path, browser: Browser, name: str, scheme: Any) -> None:
    with watch(browser) as seen:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.goto((site / f"{name}.html").as_uri())
        assert faults(seen.page) == []
