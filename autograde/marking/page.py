"""The marking page: a Jupyter server extension, behind the server's token."""

import asyncio
import json
import secrets
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, DictLoader, PrefixLoader
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from nbconvert.exporters import HTMLExporter
from tornado import web
from traitlets.config import Config

from autograde import server
from autograde.course.lessons import CourseError, Lesson, find_root
from autograde.grading.feedback import template
from autograde.marking import answers
from autograde.marking.answers import Refused, Sent

HERE = Path(__file__).parent
ADDRESS = "/marking"
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""The page runs its own script, which may talk to this server, and nothing else."""

LINK = """\
{% extends "nbgrader/gradebook_assignments.tpl" %}
{% block messages %}
<p><a href="{{ base_url }}/marking" target="_blank">Mark question by question</a></p>
{% endblock %}
"""


class MarkingHandler(JupyterHandler):
    """One question: its page, and the marks that it sends."""

    def initialize(self, root: Path) -> None:
        self.root = root

    @web.authenticated
    async def get(self, lesson: str | None = None, question: str | None = None) -> None:
        """Send the page of a question, or redirect to the first that waits."""
        try:
            waiting = await asyncio.to_thread(answers.all_waiting, self.root)
            if lesson is None or question is None:
                self.redirect(url_path_join(self.base_url, ADDRESS, *_first(waiting, lesson)))
                return
            found = await asyncio.to_thread(answers.read_question, self.root, lesson, question)
        except CourseError as error:
            raise web.HTTPError(_status(error), str(error)) from error
        nonce = secrets.token_urlsafe(16)
        self.set_header("Content-Security-Policy", POLICY.format(nonce=nonce))
        self.set_header("Cache-Control", "no-store")  # else "back" would show old marks
        page = template(HERE / "page.html.j2").render(
            nonce=nonce,
            question=found,
            waiting=waiting,
            address=url_path_join(self.base_url, ADDRESS),
            formgrader=url_path_join(self.base_url, "formgrader", "submissions"),
            xsrf=self.xsrf_token.decode(),
            script=(HERE / "marking.js").read_text(encoding="utf-8"),
        )  # fmt: skip
        self.finish(page)

    @web.authenticated
    async def put(self, lesson: str, question: str) -> None:
        """Save a mark, or respond with the reason that it is refused."""
        try:
            sent = read_sent(self.request.body)
            mark, seen = await asyncio.to_thread(answers.save, self.root, lesson, question, sent)
        except CourseError as error:
            self._say(_status(error), message=str(error))
        else:
            waiting = await asyncio.to_thread(answers.all_waiting, self.root)
            self._say(200, now=vars(mark), seen=seen, waiting=waiting[lesson, question])

    def _say(self, status: int, **said: Any) -> None:
        self.set_status(status)
        self.finish(said)  # as JSON


def _status(error: CourseError) -> int:
    return getattr(error, "status", HTTPStatus.INTERNAL_SERVER_ERROR)


def read_sent(body: bytes) -> Sent:
    """Parse a mark as the page sends it.

    Raises:
        Refused: the body is something else.
    """
    try:
        sent = json.loads(body)
        score = None if sent["score"] is None else float(sent["score"])
        return Sent(str(sent["grade"]), str(sent["seen"]), score, sent["comment"].strip())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"This is not a mark: {error}") from error


def _first(waiting: dict[tuple[str, str], int], lesson: str | None) -> tuple[str, str]:
    """Return the first question with waiting answers, else the first of all."""
    names = [name for name in waiting if lesson in (None, name[0])]
    if not names:
        what = lesson or "This course"
        raise Refused(HTTPStatus.NOT_FOUND, f"{what} has no question to mark by hand.")
    return next((name for name in names if waiting[name]), names[0])


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "autograde.marking.page"}]


def _load_jupyter_server_extension(app: ServerApp) -> None:
    try:
        root = find_root(Path(app.root_dir))
    except CourseError as error:
        app.log.warning("no marking page: %s", error)
        return
    base = url_path_join(app.base_url, ADDRESS)
    ends = ("/?", "/([^/]+)", "/([^/]+)/([^/]+)")  # the first question, a lesson's first, this one
    handlers = [(base + end, MarkingHandler, {"root": root}) for end in ends]
    app.web_app.add_handlers(".*$", handlers)  # type: ignore[no-untyped-call]
    app.web_app.settings["marking"] = root


async def _start_jupyter_server_extension(app: ServerApp) -> None:
    """Change Formgrader, which is loaded by now: a link above its table for manual grading leads
    to this page, and its page of one submission is folded."""
    settings = app.web_app.settings
    if "marking" not in settings or "nbgrader_jinja2_env" not in settings:
        return
    pages, config = settings["nbgrader_jinja2_env"], Config(settings["nbgrader_formgrader"].config)
    ours, theirs = DictLoader({"gradebook_assignments.tpl": LINK}), pages.loader
    pages.loader = ChoiceLoader([ours, theirs, PrefixLoader({"nbgrader": theirs})])
    html, folders = config.HTMLExporter, config.HTMLExporter.extra_template_basedirs
    html.extra_template_paths = folders  # ours extends "formgrade/index.html.j2"
    html.extra_template_basedirs = [*folders, str(HERE)]
    html.template_name = "marked_formgrade"
    settings["nbgrader_exporter"] = HTMLExporter(config=config)


def open_page(lesson: Lesson, options: tuple[str, ...]) -> None:
    """Run a Jupyter server on a lesson's page in this process, until it is stopped."""
    arguments = [
        f"--ServerApp.default_url={ADDRESS}/{lesson.name}",
        "--ServerApp.jpserver_extensions={'autograde.marking.page': True}",
        "--ServerApp.open_browser=True",
    ]
    server.run(ServerApp, lesson.root, [*arguments, *options])
