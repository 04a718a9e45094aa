"""How long the report of a class takes to make, and its page to open in Chromium.

    python benchmarks/report_page.py [STUDENTS]

The 2,000 students, or as many as are asked for, are made up: nothing is graded.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from autograde.course import lessons
from autograde.report.class_report import render

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests"))
from big_class import made_up  # noqa: E402

LESSON = "06_multi_head"


def main() -> None:
    students = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    data = made_up(lessons(HERE)[LESSON], students)
    start = time.perf_counter()
    html = render(data)
    print(f"{students} students: page made in {time.perf_counter() - start:.1f} s, ", end="")
    print(f"{len(html) / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder, "report.html")
        page_file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        times = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            page.goto(page_file.as_uri(), wait_until="load")
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            times.append(time.perf_counter() - start)
        browser.close()
    print(f"opened and painted in {', '.join(f'{each:.2f}' for each in times)} s")


if __name__ == "__main__":
    main()
