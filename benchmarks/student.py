"""One student on a hub, who asks for what a browser would ask for and notes how long it takes."""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import nbformat
from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from nbformat import NotebookNode
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

SIGN_IN = "signing in, until the server answers"
FETCH = "fetching the lesson"
OPEN = "opening it, until its kernel is ready"
SET_UP = "the set-up cell"
REST = "all other cells"
RUBRIC = "a rubric"
SAVE = "saving"
SUBMIT = "submitting"
STEPS = (SIGN_IN, FETCH, OPEN, SET_UP, REST, RUBRIC, SAVE, SUBMIT)

COURSE = "attention"
BUTTONS = {"fetch": "fetched", "submit": "submitted"}
"""Of nbgrader's list of assignments: what the lesson is afterwards."""
PATIENCE = 600
"""Seconds that a student waits for an answer; what takes longer has failed."""
AGAIN = re.compile(r'http-equiv="refresh" content="(\d+)"')
"""On a page that loads itself again: after how many seconds."""
LARGEST = 200 << 20


class Lost(Exception):
    """A kernel died, or something was refused that a student needs."""


@dataclass(frozen=True)
class Task:
    """What a student does: a lesson, and answers to its exercises with whether each is right."""

    lesson: str
    notebook: str
    answers: dict[str, tuple[str, bool]]


@dataclass
class Student:
    """A student's name, what to type, and how long everything took."""

    name: str
    password: str
    hub: str
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refusals: list[str] = field(default_factory=list)
    """Sentences with which the hub asked to try again later."""

    @property
    def server(self) -> str:
        """The address of the student's own server."""
        return f"{self.hub}/user/{self.name}"

    @contextmanager
    def clock(self, step: str) -> Iterator[None]:
        """Note the seconds that this block takes."""
        start = time.monotonic()
        yield
        self.seconds[step].append(time.monotonic() - start)


async def work(student: Student, task: Task) -> None:
    """Do everything from the login to the submission."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=PATIENCE) as web:
        with student.clock(SIGN_IN):
            await sign_in(student, web)
        with student.clock(FETCH):
            await _press(student, web, "fetch", task.lesson)
        path = f"api/contents/{task.lesson}/{task.notebook}.ipynb"
        start = time.monotonic()
        model = (await _ask(student, web, "GET", path)).json()
        async with _kernel(student, web, task) as kernel:
            await kernel.is_ready()
            student.seconds[OPEN].append(time.monotonic() - start)
            notebook = nbformat.from_dict(model["content"])
            await run_all(student, kernel, notebook)
            await answer(student, kernel, notebook, task)
            with student.clock(SAVE):
                saved = {"type": "notebook", "format": "json", "content": notebook}
                await _ask(student, web, "PUT", path, json=saved)
            with student.clock(SUBMIT):
                await _press(student, web, "submit", task.lesson)


async def sign_in(student: Student, web: httpx.AsyncClient) -> None:
    """Log in, and come back as long as the hub asks to; end when JupyterLab's page is there."""
    await web.get(f"{student.hub}/hub/login")
    form = {
        "username": student.name,
        "password": student.password,
        "_xsrf": web.cookies.get("_xsrf", path="/hub/") or "",
    }
    page = await web.post(f"{student.hub}/hub/login", data=form)
    until = time.monotonic() + PATIENCE
    while not str(page.url).startswith(student.server):
        if page.status_code == httpx.codes.TOO_MANY_REQUESTS:
            student.refusals.append(_sentence(page.text))
        elif page.is_error:
            raise Lost(f"{student.name}: {page.status_code} {_sentence(page.text)}")
        if time.monotonic() > until:
            raise Lost(f"{student.name}: no server")
        again = AGAIN.search(page.text)
        await asyncio.sleep(float(again[1]) if again else 1)
        page = await web.get(f"{student.hub}/hub/spawn")


def _sentence(page: str) -> str:
    """Return what a page of the hub says."""
    _, _, rest = page.partition('<div class="error">')
    return " ".join(re.sub("<[^>]*>", " ", rest.partition("</div>")[0]).split())


async def _ask(
    student: Student, web: httpx.AsyncClient, method: str, path: str, **given: Any
) -> httpx.Response:
    """Ask the student's server; an error is one for the student, too."""
    xsrf = web.cookies.get("_xsrf", path=f"/user/{student.name}/") or ""
    said = await web.request(
        method, f"{student.server}/{path}", headers={"X-XSRFToken": xsrf}, **given
    )
    if said.is_error:
        raise Lost(f"{student.name}: {path} says {said.status_code} {said.text[:200]}")
    return said


async def _press(student: Student, web: httpx.AsyncClient, button: str, lesson: str) -> None:
    """Press a button of nbgrader's list of assignments."""
    named = {"course_id": COURSE, "assignment_id": lesson}
    said = (await _ask(student, web, "POST", f"assignments/{button}", params=named)).json()
    if not said["success"]:
        raise Lost(f"{student.name} could not {button}: {said['value']}")
    done = {entry["status"] for entry in said["value"] if entry["assignment_id"] == lesson}
    if BUTTONS[button] not in done:
        raise Lost(f"{student.name} could not {button}: {done}")


@dataclass
class Kernel:
    """A running kernel, through the student's server."""

    owner: str
    socket: WebSocketClientConnection
    session: Session

    async def is_ready(self) -> None:
        """Wait until it answers."""
        await self._request("kernel_info_request", {})

    async def run(self, code: str) -> tuple[bool, list[NotebookNode]]:
        """Run a cell; return whether it went well, and its outputs."""
        asks = {"code": code, "silent": False, "store_history": True, "stop_on_error": False}
        return await self._request("execute_request", {**asks, "allow_stdin": False})

    async def _request(self, kind: str, content: object) -> tuple[bool, list[NotebookNode]]:
        asked = self.session.msg(kind, content)
        await self.socket.write_message(
            json.dumps({**asked, "channel": "shell"}, default=json_default)
        )
        outputs: list[NotebookNode] = []
        well: bool | None = None
        idle = False
        while well is None or not idle:
            heard = await asyncio.wait_for(self.socket.read_message(), PATIENCE)
            if heard is None:
                raise Lost(f"{self.owner}: the connection to the kernel ended")
            said = json.loads(heard)
            kind, content = said["header"]["msg_type"], said["content"]
            if kind == "status" and content["execution_state"] in ("dead", "restarting"):
                raise Lost(f"{self.owner}: the kernel died")
            if said["parent_header"].get("msg_id") != asked["header"]["msg_id"]:
                continue
            if said["channel"] == "shell":
                well = content["status"] == "ok"
            elif kind == "status":
                idle = content["execution_state"] == "idle"
            elif kind in ("stream", "display_data", "execute_result", "error"):
                outputs.append(nbformat.v4.output_from_msg(said))
        return well, outputs


@asynccontextmanager
async def _kernel(student: Student, web: httpx.AsyncClient, task: Task) -> AsyncIterator[Kernel]:
    """A kernel of the lesson's own."""
    about = {
        "path": f"{task.lesson}/{task.notebook}.ipynb",
        "type": "notebook",
        "name": task.notebook,
        "kernel": {"name": "python3"},
    }
    made = (await _ask(student, web, "POST", "api/sessions", json=about)).json()
    session = Session()
    address = (
        f"{student.server.replace('http', 'ws', 1)}/api/kernels/{made['kernel']['id']}"
        f"/channels?session_id={session.session}"
    )
    jar = web.build_request("GET", f"{student.server}/api/kernels").headers["Cookie"]
    socket = await websocket_connect(
        HTTPRequest(address, headers={"Cookie": jar, "Origin": student.hub}, request_timeout=60),
        max_message_size=LARGEST,
    )
    try:
        yield Kernel(student.name, socket, session)
    finally:
        socket.close()


async def run_all(student: Student, kernel: Kernel, notebook: NotebookNode) -> None:
    """Run all cells, as they were given."""
    first, *others = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with student.clock(SET_UP):
        well, first.outputs = await kernel.run(first.source)
    if not well:
        raise Lost(f"{student.name}: the set-up failed: {first.outputs}")
    with student.clock(REST):
        for cell in others:
            _, cell.outputs = await kernel.run(cell.source)


async def answer(student: Student, kernel: Kernel, notebook: NotebookNode, task: Task) -> None:
    """Type each answer, run it, and run its rubric."""
    by_name = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    for exercise, (code, right) in task.answers.items():
        cell, rubric = by_name[exercise], by_name[f"test_{exercise}"]
        cell.source = code
        _, cell.outputs = await kernel.run(code)
        with student.clock(RUBRIC):
            well, rubric.outputs = await kernel.run(rubric.source)
        if well != right:
            raise Lost(f"{student.name}: the rubric of {exercise} said the wrong thing")
