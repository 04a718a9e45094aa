"""JupyterLab on a course, and a real browser that notes what goes wrong on a page."""

import io
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import HERE
from PIL import Image
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
JUPYTERLAB = ("jupyter", "lab", "--LabApp.extension_manager=readonly")
START_SECONDS = 120
WAIT_MILLISECONDS = 60_000
expect.set_options(timeout=WAIT_MILLISECONDS)
NOTIFICATIONS = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"

WITHOUT_A_NETWORK = (
    "Formgrader shows a submission with MathJax, which it loads from the network; where there is "
    "none, formulas stay as they were typed"
)
KNOWN_ERRORS: dict[str, str] = {
    r"^Failed to load resource: .* \(https://[^)]*/mathjax/": WITHOUT_A_NETWORK,
    r"^MathJax is not defined$": WITHOUT_A_NETWORK,
}
"""Errors on the console of an instructor that stand there whatever we do, and why. Students, and
readers of our own pages, have none."""

FAILED = pytest.StashKey[bool]()
BROKEN = pytest.StashKey[dict[Path, str]]()
COLOURS, MARGIN = 256, 8
SCREENSHOTS = HERE / "build" / "screenshots"
PICTURES = HERE / "docs" / "pictures"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", action="store_true", help="write docs/pictures anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if CHROMIUM is None and str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason="there is no Chromium to open pages with"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In a file marked as a story a step that fails ends it: the next ones build on it."""
    report = yield
    if report.failed and item.get_closest_marker("story"):
        item.stash[FAILED] = True
        item.session.stash.setdefault(BROKEN, {}).setdefault(item.path, item.name)
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    if (failed := item.session.stash.get(BROKEN, {}).get(item.path)) is not None:
        pytest.fail(f"not tried: an earlier step of this story failed: {failed}", pytrace=False)


class Camera:
    """Keeps what was to be seen, numbered in the order of the steps."""

    def __init__(self, story: str, pictures: bool) -> None:
        self._folder, self._pictures, self._taken = SCREENSHOTS / story, pictures, 0
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)

    def shoot(self, page: Page, name: str) -> bytes:
        """Take a screenshot."""
        self._taken += 1
        png = page.screenshot(animations="disabled")
        (self._folder / f"{self._taken:02}_{name}.png").write_bytes(png)
        return png

    def show(self, page: Page, name: str, *parts: Locator) -> None:
        """Take a screenshot; what lies around the parts goes into the docs, when asked for."""
        parts[0].evaluate("part => part.scrollIntoView({block: 'start'})")
        png = self.shoot(page, name)
        if self._pictures:
            PICTURES.mkdir(exist_ok=True)
            whole = Image.open(io.BytesIO(png)).convert("RGB")
            few = whole.crop(_around(parts, whole.size)).quantize(COLOURS)
            few.save(PICTURES / f"{name}.png", optimize=True)


def _around(parts: Sequence[Locator], screen: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what holds all the parts, as far as it is on the screen."""
    boxes = [box for part in parts if (box := part.bounding_box()) is not None]
    return (
        max(0, int(min(box["x"] for box in boxes)) - MARGIN),
        max(0, int(min(box["y"] for box in boxes))),
        min(screen[0], int(max(box["x"] + box["width"] for box in boxes)) + MARGIN),
        min(screen[1], int(max(box["y"] + box["height"] for box in boxes)) + MARGIN),
    )


@pytest.fixture(scope="module")
def camera(request: pytest.FixtureRequest) -> Camera:
    pictures = request.config.getoption("--pictures", default=False)
    return Camera(request.path.stem.removeprefix("test_"), bool(pictures))


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab. Its scratch folders keep what it writes away from the user's own."""

    root: Path
    url: str
    token: str


@contextmanager
def lab(root: Path, scratch: Path, command: tuple[str, ...] = JUPYTERLAB) -> Iterator[Lab]:
    """JupyterLab on a folder, gone at the end; another command may open it."""
    with socket.create_server(("127.0.0.1", 0)) as some:
        port = some.getsockname()[1]
    token = secrets.token_hex(16)
    folders = {
        name: str(scratch / name.lower())
        for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    for folder in folders.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    if command[: len(JUPYTERLAB)] == JUPYTERLAB:  # `autograde lab` has to see to this itself
        _no_notifications(Path(folders["JUPYTER_CONFIG_DIR"]))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with open(scratch / "server.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
             "--port-retries=0", f"--IdentityProvider.token={token}",
             "--LabApp.expose_app_in_browser=True",
             "--JupyterNotebookApp.expose_app_in_browser=True"],
            cwd=root, stdout=log, stderr=log, env={**os.environ, **folders, "PATH": path},
        )  # fmt: skip
    running = Lab(root, f"http://127.0.0.1:{port}", token)
    try:
        _wait_until_it_answers(("127.0.0.1", port), process, scratch / "server.log")
        yield running
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()  # one that is still running would never end


def _no_notifications(config: Path) -> None:
    settings = config / "lab" / "user-settings" / NOTIFICATIONS
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))


def _wait_until_it_answers(
    address: tuple[str, int], process: "subprocess.Popen[bytes]", log: Path
) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with socket.create_connection(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield started
        started.close()


@dataclass
class Watched:
    """A page and what happened on it: errors on the console, addresses asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def unknown_errors(self) -> list[str]:
        """What the console said so far and is not in the table of known errors."""
        return [e for e in self.errors if not any(re.search(k, e) for k in KNOWN_ERRORS)]


@dataclass(frozen=True)
class Desk:
    """Somebody at a browser, with a JupyterLab of their own."""

    lab: Lab
    seen: Watched

    @property
    def page(self) -> Page:
        return self.seen.page


@contextmanager
def watch(browser: Browser, token: str = "") -> Iterator[Watched]:
    """A new page of a new visitor, who holds the server's token."""
    headers = {"Authorization": f"token {token}"} if token else {}
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, extra_http_headers=headers
    )
    context.set_default_timeout(WAIT_MILLISECONDS)
    watched = Watched(context.new_page())

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            watched.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def note(request: Request) -> None:
        watched.addresses.append(request.url)

    watched.page.on("console", hear)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("request", note)
    yield watched
    context.close()
