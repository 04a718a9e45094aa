"""A hub as `make hub` starts it, and what people do there first."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import HERE
from playwright.sync_api import Page, expect
from running_hub import Hub, passwords_in

from autograde.sandbox.wall import root_may_mount
from browser.conftest import Lab
from browser.person import SLOW, STARTED, wait_until

INSTALLED = HERE / ".venv" / "hub" / "ready"
START_SECONDS, STOP_SECONDS = 600, 60
USERS = ("instructor", "ada", "bob", "zoe")
OPTIONS = (
    "--Spawner.args=--LabApp.expose_app_in_browser=True "
    f"--JupyterHub.active_server_limit={len(USERS) - 1}"
)


def why_not() -> str:
    """Return what is missing for a hub; nothing if all is there."""
    if not root_may_mount():
        return "only root who may mount can start a hub"
    if shutil.which("node") is None:
        return "there is no Node for the proxy of a hub"
    if not INSTALLED.exists():
        return "the packages of a hub are not installed; run: make .venv/hub/ready"
    return ""


@contextmanager
def hub(said: Path) -> Iterator[Hub]:
    """A hub, gone at the end; what it says to the person who started it is in a file."""
    with socket.create_server(("127.0.0.1", 0)) as some:
        port = some.getsockname()[1]
    with said.open("wb") as out:
        process = subprocess.Popen(
            ["make", "hub", f"PORT={port}", f"OPTIONS={OPTIONS}"],
            cwd=HERE, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        yield Hub(f"http://127.0.0.1:{port}", _passwords(process, said), process)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _passwords(process: "subprocess.Popen[bytes]", said: Path) -> dict[str, str]:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = passwords_in(said)
        if set(USERS) <= set(found):
            return found
        time.sleep(0.5)
    raise AssertionError(f"the hub did not start:\n{said.read_text()}")


def say_who(page: Page, hub: Hub, user: str) -> None:
    """Fill in the form of the hub's first page, and send it."""
    page.goto(f"{hub.url}/hub/login")
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(hub.passwords[user])
    page.locator("#login_submit").click()


def log_in(page: Page, hub: Hub, user: str) -> Lab:
    """Log in, and wait for the JupyterLab that the hub starts for this user."""
    say_who(page, hub, user)
    page.wait_for_url(f"{hub.url}/user/{user}/lab**", timeout=SLOW)
    wait_until(page, STARTED)
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=SLOW)
    return Lab(Path(os.devnull), f"{hub.url}/user/{user}", "")
