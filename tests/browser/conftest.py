"""JupyterLab on a course, and a real browser that notes what goes wrong on a page."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
START_SECONDS = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if CHROMIUM is None and str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason="there is no Chromium to open pages with"))


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab. Its scratch folders keep what it writes away from the user's own."""

    root: Path
    url: str
    token: str


@contextmanager
def lab(root: Path, scratch: Path, command: tuple[str, ...] = ("jupyter", "lab")) -> Iterator[Lab]:
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
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with open(scratch / "server.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
             "--port-retries=0", f"--IdentityProvider.token={token}",
             "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"],
            cwd=root, stdout=log, stderr=log, env={**os.environ, **folders, "PATH": path},
        )  # fmt: skip
    running = Lab(root, f"http://127.0.0.1:{port}", token)
    try:
        _wait_until_it_answers(("127.0.0.1", port), process, scratch / "server.log")
        yield running
    finally:
        process.terminate()
        process.wait(30)


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


@pytest.fixture(scope="session")
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


@contextmanager
def watch(browser: Browser, token: str = "") -> Iterator[Watched]:
    """A new page of a new visitor, who holds the server's token."""
    headers = {"Authorization": f"token {token}"} if token else {}
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, extra_http_headers=headers
    )
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
