"""The coordinator's own work on each submission: decide what is to do, save, write.

No other process touches the gradebook.
"""

import json
import shutil
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, BaseConverter, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from traitlets.config import Config

from autograde import __version__
from autograde.course import CourseError, Lesson
from autograde.grading import gradebook as book
from autograde.grading import state, workers
from autograde.grading.gradebook import digest_of
from autograde.grading.limits import Limits
from autograde.grading.state import (
    Entry,
    Stop,
    course_secret,
    keep_entry,
    keep_ran,
    read_entry,
    read_ran,
)
from autograde.grading.submission import (
    TIMESTAMP,
    Done,
    Graded,
    Marks,
    Submission,
    Task,
    read_submission,
)
from autograde.versions import Version, versions

LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class ToGrade:
    """A submission for a worker; `graded` is a digest of all that decides its scores."""

    task: Task
    graded: str


@dataclass(frozen=True)
class ToShow:
    """A graded notebook, the marks for its feedback page, and the entry noted after the page."""

    submission: Submission
    notebook: bytes
    marks: Marks
    entry: Entry


class Coordinator:
    """The course while it is graded: its configuration and the open gradebook."""

    def __init__(self, root: Path, config: Config, gradebook: Gradebook, *, wall: bool) -> None:
        self.root, self.config, self.gradebook, self.wall = root, config, gradebook, wall
        self._course = CourseDirectory(config=config)
        self._secret = course_secret(root)
        self._known: dict[Lesson, tuple[str, dict[str, Marks]]] = {}
        self._names = book.names_of_students(gradebook)

    @cached_property
    def _autograde(self) -> Autograde:
        return Autograde(coursedir=self._course, config=_without_exporters(self.config))

    @cached_property
    def _feedback(self) -> GenerateFeedback:
        return GenerateFeedback(coursedir=self._course, config=_without_exporters(self.config))

    @cached_property
    def _late(self) -> AssignLatePenalties:
        late = AssignLatePenalties(parent=self._autograde, config=self.config)
        late.init_plugin()
        return late

    def open(self, lesson: Lesson, versions: tuple[Version, ...]) -> None:
        """Read what decides the scores of a lesson, and what the gradebook holds of them.

        Raises:
            CourseError: the gradebook does not know the lesson.
        """
        if lesson.name not in {assignment.name for assignment in self.gradebook.assignments}:
            raise CourseError(
                f"the gradebook does not know {lesson.name}. Run: autograde build {lesson.name}"
            )
        deciding = [
            [version.digest for version in versions],
            self._secret,
            self.wall,
            asdict(Limits()),
            str(self.gradebook.find_assignment(lesson.name).duedate),
            _settings(self.config),
        ]
        marks = book.marks_of_class(self.gradebook, lesson)
        self._known[lesson] = digest_of(deciding), marks

    def look(self, student: str, lesson: Lesson, *, regrade: bool) -> ToGrade | ToShow | None:
        """Decide what is to do for a submission: all of it, its page alone, or nothing.

        Raises:
            OSError: its files cannot be read.
        """
        deciding, known = self._known[lesson]
        marks = known.get(student)
        submission = read_submission(student, lesson, self._course.ignore)
        contents = sorted((name, sha256(c).hexdigest()) for name, c in submission.files.items())
        graded = digest_of([deciding, marks.extension if marks else "None", contents])
        entry = read_entry(self.root, lesson.name, student)
        nb = self._place("autograded", submission) / f"{lesson.notebook}.ipynb"
        if (
            regrade
            or marks is None
            or entry is None
            or (entry.graded, entry.scores) != (graded, book.digest_of_scores(marks))
            or not nb.is_file()
        ):
            ran = b"" if regrade else read_ran(self.root, lesson.name, student)
            marks = marks or Marks(student=self._names.get(student, student))
            task = Task(submission, self._secret, self.wall, marks, ran)
            return ToGrade(task, graded)
        html = self._place("feedback", submission) / f"{lesson.notebook}.html"
        if entry.page == _page_digest(graded, marks) and html.is_file():
            return None
        # people gave scores or comments since
        book.penalise(self.gradebook, (student, lesson), self._late)
        return self._to_show(submission, nb.read_bytes(), entry)

    def save(self, work: ToGrade, graded: Graded) -> ToShow:
        """Save a submission that was graded.

        Raises:
            CourseError: its time stamp cannot be read.
            OSError, sqlalchemy.exc.DBAPIError: it cannot be written.
        """
        submission = work.task.submission
        student, lesson = submission.student, submission.lesson
        when = _when(submission)
        if graded.fault:
            self.log(graded.fault)
        if graded.ran:
            keep_ran(self.root, lesson.name, student, graded.ran)
        book.save(self.gradebook, (student, lesson), when, graded.scores, self._late)
        entry = Entry(
            graded=work.graded,
            scores="",
            page="",
            problem=graded.problem,
            walled=self.wall,
            seconds=graded.seconds,
            version=__version__,
        )
        return self._to_show(submission, graded.notebook, entry)

    def _to_show(self, submission: Submission, notebook: bytes, entry: Entry) -> ToShow:
        """Return what the page shows, and the entry, as the gradebook is now."""
        lesson, student = submission.lesson, submission.student
        marks = book.marks_of_class(self.gradebook, lesson, student)[student]
        page = _page_digest(entry.graded, marks)
        entry = replace(entry, scores=book.digest_of_scores(marks), page=page)
        return ToShow(submission, notebook, marks, entry)

    def finish(self, work: ToShow, html: bytes) -> None:
        """Write the graded notebook and its page, then note that the submission is done."""
        submission = work.submission
        lesson, files = submission.lesson, submission.files
        graded = {**files, f"{lesson.notebook}.ipynb": work.notebook}
        self._write(self._autograde, "autograded", submission, graded)
        others = {n: content for n, content in files.items() if not n.endswith(".ipynb")}
        page_name = f"{lesson.notebook}.html"
        self._write(self._feedback, "feedback", submission, {**others, page_name: html})
        keep_entry(self.root, lesson.name, submission.student, work.entry)

    def log(self, fault: str) -> Path:
        """Add a traceback to the log of the grader's own faults, and return where that is."""
        log = self.root / ".autograde" / "grading.log"
        with log.open("a", encoding="utf-8") as file:
            file.write(fault)
        return log

    def _place(self, kind: str, submission: Submission) -> Path:
        folder = getattr(self._course, f"{kind}_directory")
        return Path(self._course.format_path(folder, submission.student, submission.lesson.name))

    def _write(
        self, step: BaseConverter, kind: str, submission: Submission, files: dict[str, bytes]
    ) -> None:
        """Put a folder in place whole, with the permissions that nbgrader gives it."""
        target = self._place(kind, submission)
        fresh = target.with_name(f".{target.name}.fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            for name, content in files.items():
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if target.exists():
                shutil.rmtree(target)
            fresh.rename(target)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        step.set_permissions(submission.lesson.name, submission.student)


Steps = Generator[Future[Any], Any, Done]
"""The way of one submission: it hands out what a worker is to do, and is sent the result."""


@dataclass(frozen=True)
class OnItsWay:
    """A submission at work."""

    student: str
    lesson: Lesson
    steps: Steps


class Run:
    """One run over a class."""

    def __init__(
        self, coordinator: Coordinator, executor: Executor, share: workers.Share, regrade: bool
    ) -> None:
        self.coordinator, self.executor, self.share = coordinator, executor, share
        self.regrade = regrade
        self.shared: dict[Lesson, Any] = {}
        self.closed: set[Lesson] = set()
        self.working: dict[Future[Any], OnItsWay] = {}

    def all(
        self, submissions: list[tuple[str, Lesson]], ahead: int, stopped: Callable[[], bool]
    ) -> Iterator[Done]:
        """Keep so many submissions with the workers until all are done."""
        todo = submissions[::-1]
        while (todo or self.working) and not stopped():
            while todo and len(self.working) < ahead and not stopped():
                student, lesson = todo.pop()
                way = OnItsWay(student, lesson, self._steps(student, lesson))
                yield from self._go_on(way, None)
            finished, _ = wait(self.working, LOOK_SECONDS, FIRST_COMPLETED)
            for future in finished:
                yield from self._go_on(self.working.pop(future), future)
        if todo or self.working:
            for future in [each for each in self.working if each.done()]:
                yield from self._go_on(self.working.pop(future), future)
            raise KeyboardInterrupt

    def _steps(self, student: str, lesson: Lesson) -> Steps:
        """Grade one submission; workers do what it yields."""
        if lesson in self.closed:
            return Done(student, lesson.name, failed=True)
        if lesson not in self.shared:
            self.shared[lesson] = self._open(lesson)
        work = self.coordinator.look(student, lesson, regrade=self.regrade)
        if work is None:
            return Done(student, lesson.name, unchanged=True)
        html = None
        if isinstance(work, ToGrade):
            graded = yield self.executor.submit(workers.grade, work.task, self.shared[lesson])
            work = self.coordinator.save(work, graded)
            # where it is late, say, the page is to show other marks
            html = graded.page if work.marks == graded.marks else None
        if html is None:
            html = yield self.executor.submit(
                workers.page, work.notebook, lesson.notebook, work.marks
            )
        self.coordinator.finish(work, html)
        return Done(student, lesson.name, work.entry.problem or work.submission.remark)

    def _open(self, lesson: Lesson) -> Any:
        """Share what every worker needs of a lesson; one that cannot be graded is named once."""
        try:
            found = versions(lesson)
            self.coordinator.open(lesson, found)
        except CourseError:
            self.closed.add(lesson)
            raise
        return self.share(found)

    def _go_on(self, way: OnItsWay, done: Future[Any] | None) -> Iterator[Done]:
        """Do a submission's next steps; one that fails is named, and the others go on."""
        student, lesson = way.student, way.lesson.name
        try:
            future = way.steps.send(done.result() if done else None)
        except StopIteration as end:
            yield end.value
        except (Stop, DBAPIError):
            raise
        except (CourseError, workers.WorkerDied) as error:
            yield Done(student, lesson, str(error), failed=True)
        except OSError as error:
            if error.errno in state.FULL:
                full = error.filename or self.coordinator.root
                raise Stop(f"the disk is full ({full}). Make room. {state.GO_ON}") from error
            yield Done(student, lesson, f"{error.filename}: {error.strerror}", failed=True)
        except Exception as error:  # the grader's own fault, and no reason to leave the others
            yield Done(student, lesson, self._own_fault(error), failed=True)
        else:
            self.working[future] = way

    def _own_fault(self, error: Exception) -> str:
        log = self.coordinator.log("".join(traceback.format_exception(error)))
        self.coordinator.gradebook.db.rollback()
        return f"the grader failed: {type(error).__name__}: {error} (all of it: {log})"


def shown(config: Config, lesson: Lesson, known: dict[str, Marks]) -> bool:
    """Return whether the page of each submission shows what the gradebook of the course holds."""
    course, root = CourseDirectory(config=config), lesson.root
    usual = make_url(course.db_url).database == str(root / "gradebook.db")
    entries = {student: read_entry(root, lesson.name, student) for student in known}
    return usual and all(
        entry is None or entry.page == _page_digest(entry.graded, known[student])
        for student, entry in entries.items()
    )


def _page_digest(graded: str, marks: Marks) -> str:
    """Return a digest of all that is on a page."""
    return digest_of([graded, book.digest_by_hand(marks)])


def _without_exporters(config: Config) -> Config:
    """Return a configuration for converters that convert nothing: exporters import torch."""
    config = deepcopy(config)
    for converter in ("Autograde", "GenerateFeedback"):
        config[converter].pop("exporter_class", None)
    return config


def _settings(config: Config) -> str:
    """Return nbgrader's configuration as text, apart from where the course lies."""
    plain = {name: value for name, value in config.items() if name != "CourseDirectory"}
    return json.dumps(
        plain, sort_keys=True, default=lambda value: getattr(value, "__name__", str(type(value)))
    )


def _when(submission: Submission) -> datetime | None:
    """Read when it was handed in from the file in which nbgrader keeps that.

    Raises:
        CourseError: the file holds no time.
    """
    text = submission.files.get(TIMESTAMP, b"").decode(errors="replace").strip()
    if not text:
        return None
    try:
        when: datetime = parse_utc(text)
    except (ValueError, OverflowError) as error:
        raise CourseError(
            f"{TIMESTAMP} says {text[:60]!r}, which is no time. Put it right, as in "
            "2026-02-28 23:59:00 UTC"
        ) from error
    return when
