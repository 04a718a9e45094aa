"""What a student waits for, in Chromium: the median of three runs, each with a new server.

    python benchmarks/waits.py

Prints a table in Markdown, in five minutes. Seconds are those of the clock, so nothing else should
run meanwhile. It leaves the page of lessons alone, and at the end the lesson, and says how busy
each keeps the browser.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil
from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE / "tests")]
from browser import person  # noqa: E402
from browser.conftest import ARGUMENTS, CHROMIUM, Lab, lab, watch  # noqa: E402

from autograde.authoring.release import release  # noqa: E402
from autograde.course.lessons import lessons  # noqa: E402

ROUNDS = 3
COMMAND = (sys.executable, "-m", "autograde.cli")
LESSON, EXERCISE = "01_self_attention", "attention_scores"
WRONG = "def attention_scores(queries, keys):\n    return queries @ keys"
RIGHT = f"{WRONG}.T"
FIGURE = 'show(heatmap(attention_scores(inputs, inputs), tokens, tokens, title="scores"), "scores")'
FIRST, EXPLORER = "model = course_model()", "# demonstration: what each word looks at"
ALONE_SECONDS = 30

Times = dict[str, float]


@contextmanager
def clock(times: Times, name: str) -> Iterator[None]:
    """Add the seconds that this block takes."""
    start = time.monotonic()
    yield
    times[name] = time.monotonic() - start


def in_a_terminal(times: Times, name: str, root: Path, *arguments: str) -> None:
    with clock(times, name):
        subprocess.run([*COMMAND, *arguments], cwd=root, check=True, capture_output=True)


def arrive(times: Times, running: Lab, page: Page) -> None:
    """Open the page of lessons."""
    page.set_viewport_size({"width": 1366, "height": 768})
    with clock(times, "the page of lessons, in a server that runs"):
        page.goto(running.url)
        expect(page.locator(".jp-MarkdownViewer:visible table").first).to_be_visible()


def work(times: Times, page: Page) -> None:
    """Open the lesson and do what a student does in it."""
    notebook = lessons(HERE)[LESSON].notebook
    with clock(times, "a lesson opened, until its first output"):
        with clock(times, "of this: until its kernel is ready"):
            person.open_notebook(page, f"{LESSON}/{notebook}.ipynb")
        with clock(times, "of this: the set-up cell"):
            person.run_cell(page, "setup")
        first = person.run_cell(page, FIRST)
        expect(first.locator(".jp-OutputArea-output").first).to_be_visible()
    with clock(times, "the explorer"):
        explorer = person.run_cell(page, EXPLORER)
        expect(explorer.locator(".ae-word").first).to_be_visible()
    with clock(times, "a press that switches a head off"):
        explorer.get_by_role("button", name="at every word").click()
        expect(explorer.locator(".ae-changed")).to_have_count(1)
    person.type_into(page, EXERCISE, WRONG)
    person.run_cell(page, EXERCISE)
    with clock(times, "the first rubric, of a wrong answer"):
        person.run_rubric(page, EXERCISE)
    with clock(times, "a hint"):
        panel = person.panel_of(person.cell(page, f"test_{EXERCISE}"))
        panel.locator("summary", has_text="Hint 1 of").click()
        expect(panel.locator("summary", has_text="Hint 2 of")).to_be_visible()
    person.type_into(page, EXERCISE, RIGHT)
    person.run_cell(page, EXERCISE)
    with clock(times, "a rubric, of a right answer"):
        person.run_rubric(page, EXERCISE)
    person.type_into(page, "scores = attention_scores", FIGURE)
    with clock(times, "a figure"):
        person.run_cell(page, FIGURE)
        expect(person.cell(page, FIGURE).locator("img").first).to_be_visible()
    person.save(page)
    with clock(times, "Validate"):
        person.validate(page)
    person.close_dialog(page)


def busy(page: Page) -> float:
    """Return the share of a processor that the browser takes while nobody does anything."""
    page.wait_for_timeout(5000)
    before = _used()
    page.wait_for_timeout(1000 * ALONE_SECONDS)
    return (_used() - before) / ALONE_SECONDS


def _used() -> float:
    """Return the processor seconds of all processes of the browser so far."""
    browser = Path(str(CHROMIUM)).name
    started = psutil.Process().children(recursive=True)
    used = [p.cpu_times() for p in started if p.is_running() and browser in p.name()]
    return sum(times.user + times.system for times in used)


def one_round(browser: Browser, folder: Path) -> tuple[Times, float, float]:
    """Return the seconds of each wait of a new student, and how busy JupyterLab idles.

    First with the page of lessons, then with a lesson as well.
    """
    times: Times = {}
    root = folder / "lessons"
    release(HERE, [lessons(HERE)[LESSON]], root)
    in_a_terminal(times, "`autograde --help`", root, "--help")
    start = time.monotonic()
    with lab(root, folder, (*COMMAND, "lab")) as running, watch(browser, running.token) as seen:
        times["`autograde lab`, until its server answers"] = time.monotonic() - start
        arrive(times, running, seen.page)
        before = busy(seen.page)
        work(times, seen.page)
        after = busy(seen.page)
    in_a_terminal(times, f"`autograde submit {LESSON} --yes`", root, "submit", LESSON, "--yes")
    return times, before, after


def main() -> None:
    """Print the table."""
    rounds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        for _ in range(ROUNDS):
            with TemporaryDirectory() as folder:
                rounds.append(one_round(browser, Path(folder)))
        browser.close()
    times, before, after = zip(*rounds, strict=True)
    print("| what | seconds |\n|---|--:|")
    for name in times[0]:
        print(f"| {name} | {median(each[name] for each in times):.1f} |")
    print(
        f"\nAn open lesson that nobody touches takes {median(after):.1%} of a processor, and the "
        f"page of lessons before it {median(before):.1%}."
    )


if __name__ == "__main__":
    main()
