"""What a submission brings along does not run in the browser of the person who grades it."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from classes import file_of, grade, gradebook_of, make_course, put_file
from nbconvert import HTMLExporter
from nightly import nightly
from playwright.sync_api import Browser

from autograde.course.cells import grade_id
from autograde.course.lessons import lessons
from browser.conftest import Lab, Watched, lab, watch

pytestmark = nightly

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"
ACT = "window.evil = 1; fetch('/evil')"

TEXTS = {
    "script": f"<script>{ACT}</script>",
    "picture": f'<img src=x onerror="{ACT}">',
    "svg": f'<svg onload="{ACT}"><script>{ACT}</script></svg>',
    "frame": '<iframe srcdoc="<script>parent.window.evil = 1</script>"></iframe>',
    "link": f'<a id="bait" href="javascript:{ACT}">read me</a> [and me](javascript:window.evil=1)',
    "formula": f"$\\href{{javascript:{ACT}}}{{x}}$ $\\class{{evil}}{{x}}$",
    "style": "<style>body { background: url(/evil) }</style>",
    "form": '<form action="/evil"><button>ok</button></form><base href="/evil/">',
    "details": f'<details open ontoggle="{ACT}"><summary>x</summary></details>',
    "code block that ends": f"```\n</code></pre><script>{ACT}</script>\n```",
}
"""As Markdown cells, and as raw cells. Adding a case is adding a row."""

BAIT = "a:text-is('read me'), a:text-is('and me'), summary:text-is('x'), button:text-is('ok')"

OUTPUTS = f"""
from IPython.display import HTML, SVG, Javascript, Markdown, display
act = {ACT!r}
display(HTML(f"<script>{{act}}</script><img src=x onerror='window.evil = 1'>"))
display(Javascript(act))
display(Markdown(f"<script>{{act}}</script><img src=x onerror='window.evil = 1'>"))
svg = f"<svg xmlns='http://www.w3.org/2000/svg'><script>{{act}}</script></svg>"
display({{"image/svg+xml": svg}}, raw=True)
display({{"text/latex": "$\\\\href{{javascript:window.evil=1}}{{x}}$"}}, raw=True)
display({{"application/vnd.jupyter.widget-view+json": {{"model_id": "x", "version_major": 2}},
         "text/html": f"<script>{{act}}</script>",
         "text/plain": f"<script>{{act}}</script>"}}, raw=True)
display({{"image/png": "\\"><script>window.evil = 1</script>", "text/plain": ""}}, raw=True)
about = {{"alt": "\\"><script>window.evil = 1</script>", "width": "1\\" onload=\\"window.evil=1"}}
data = {{"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "text/plain": ""}}
display(data, metadata={{"image/png": about}}, raw=True)
print(f"</pre><script>{{act}}</script>\\x1b]8;;javascript:window.evil=1\\x1b\\\\link\\x1b]8;;\\x1b\\\\")
raise ValueError(f"<script>{{act}}</script>")
"""


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with one submission that is full of script, not graded yet."""
    root = tmp_path_factory.mktemp("hostile")
    lesson = make_course(root, ())
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    nb.cells = [cell for cell in nb.cells if grade_id(cell)]
    for cell in nb.cells:
        if cell.metadata.nbgrader.get("solution"):
            cell.source = OUTPUTS
    for text in TEXTS.values():
        nb.cells.append(nbformat.v4.new_markdown_cell(text))
        nb.cells.append(nbformat.v4.new_raw_cell(text))
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": {
        "model_name": "HTMLModel", "model_module": "@jupyter-widgets/controls",
        "model_module_version": "2.0.0", "state": {"value": TEXTS["picture"]}}}}}  # fmt: skip
    put_file(lesson, "mallory", nb)
    return root


@pytest.fixture(scope="module")
def graded(handed_in: Path) -> Path:
    """The same course, graded; behind a wall where there is one."""
    done = grade(handed_in)
    assert done.returncode == 0, done.stdout
    return handed_in


@pytest.fixture(scope="module")
def server(graded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(graded, tmp_path_factory.mktemp("lab")) as running:
        yield running


def signs_of_evil(browser: Browser, address: str, token: str = "") -> list[str]:
    """What ran on a page that should not have: it left a mark, asked for an address, opened."""
    with watch(browser, token) as seen:
        opened: list[str] = []
        seen.page.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
        seen.page.goto(address)
        seen.page.wait_for_timeout(1500)
        if not (found := _marks(seen) + opened):
            for bait in seen.page.locator(BAIT).all():
                bait.click(timeout=2000, no_wait_after=True)
            found = _marks(seen) + opened
        return found


def _marks(seen: Watched) -> list[str]:
    ran = [frame.url for frame in seen.page.frames if frame.evaluate("!!window.evil")]
    return ran + [address for address in seen.addresses if "evil" in address]


def test_the_signs_are_seen_where_nothing_is_sanitised(
    handed_in: Path, browser: Browser, tmp_path: Path
) -> None:
    nb = nbformat.read(file_of(lessons(handed_in)[LESSON], "mallory"), as_version=4)
    page = tmp_path / "raw.html"
    page.write_text(HTMLExporter(sanitize_html=False).from_notebook_node(nb)[0])
    with watch(browser) as seen:
        seen.page.goto(page.as_uri())
        assert seen.page.evaluate("window.evil") == 1


def test_nothing_runs_in_formgrader(server: Lab, browser: Browser) -> None:
    with gradebook_of(server.root) as gradebook:
        notebook = gradebook.find_submission_notebook(NOTEBOOK, LESSON, "mallory").id
    for path in (f"submissions/{notebook}/", f"gradebook/{LESSON}/{NOTEBOOK}", "manage_students"):
        address = f"{server.url}/formgrader/{path}"
        assert signs_of_evil(browser, address, server.token) == []


def test_formgrader_shows_the_submission(server: Lab, browser: Browser) -> None:
    with gradebook_of(server.root) as gradebook:
        notebook = gradebook.find_submission_notebook(NOTEBOOK, LESSON, "mallory").id
    with watch(browser, server.token) as seen:
        seen.page.goto(f"{server.url}/formgrader/submissions/{notebook}/")
        said = seen.page.locator("body").inner_text()
    assert "read me" in said
    assert "test_causal_mask" in said


def test_nothing_runs_on_the_feedback_page(graded: Path, browser: Browser) -> None:
    page = graded / "feedback" / "mallory" / LESSON / f"{NOTEBOOK}.html"
    assert signs_of_evil(browser, page.as_uri()) == []


def test_feedback_asks_for_nothing_else(graded: Path, browser: Browser) -> None:
    page = graded / "feedback" / "mallory" / LESSON / f"{NOTEBOOK}.html"
    with watch(browser) as seen:
        seen.page.goto(page.as_uri())
        seen.page.wait_for_timeout(500)
        assert [url for url in seen.addresses if not url.startswith(("file:", "data:"))] == []
        assert seen.errors == []
