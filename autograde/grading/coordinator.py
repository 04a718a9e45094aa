"""The coordinator's own work on a submission: what is to do; save, write.

No other process touches the gradebook.
"""

import json
import shutil
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
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
from autograde.course_config import course_config
from autograde.grading import gradebook as book
from autograde.grading import state, task, workers
from autograde.grading.gradebook import digest
from autograde.grading.handed_in import TIMESTAMP, HandedIn, read_handed_in
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
from autograde.grading.task import Done, Graded, Marks, Task
from autograde.grading.versions import Version, versions

LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class ToGrade:
    """A submission for a worker; `graded` is a digest of all that decides its scores."""

    task: Task
    graded: str

    @property
    def handed_in(self) -> HandedIn:
        return self.task.handed_in


@dataclass(frozen=True)
class ToShow:
    """A graded notebook whose page is to show these marks; `entry` is true once it is there."""

    handed_in: HandedIn
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
        return Autograde(coursedir=self._course, config=self.config)

    @cached_property
    def _feedback(self) -> GenerateFeedback:
        return GenerateFeedback(coursedir=self._course, config=self.config)

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
        self._known[lesson] = digest(deciding), marks

    def look(self, student: str, lesson: Lesson, *, regrade: bool) -> ToGrade | ToShow | None:
        """What is to do for a submission: all of it, its page alone, or nothing.

        Raises:
            OSError: its files cannot be read.
        """
        deciding, known = self._known[lesson]
        marks = known.get(student)
        handed_in = read_handed_in(student, lesson, self._course.ignore)
        contents = sorted((name, digest(content)) for name, content in handed_in.files.items())
        graded = digest([deciding, marks.extension if marks else "None", contents])
        entry = read_entry(self.root, lesson.name, student)
        nb = self._place("autograded", handed_in) / f"{lesson.notebook}.ipynb"
        if (
            regrade
            or marks is None
            or entry is None
            or (entry.graded, entry.scores) != (graded, book.digest_of_scores(marks))
            or not nb.is_file()
        ):
            ran = b"" if regrade else read_ran(self.root, lesson.name, student)
            marks = marks or Marks(student=self._names.get(student, student))
            task = Task(handed_in, self._secret, self.wall, marks, ran)
            return ToGrade(task, graded)
        html = self._place("feedback", handed_in) / f"{lesson.notebook}.html"
        if entry.page == _page_digest(graded, marks) and html.is_file():
            return None
        # people gave scores or comments since
        book.penalise(self.gradebook, (student, lesson), self._late)
        return self._to_show(handed_in, nb.read_bytes(), entry)

    def save(self, work: ToGrade, graded: Graded) -> ToShow:
        """Save a submission that was graded.

        Raises:
            CourseError: its time stamp cannot be read.
            OSError, sqlalchemy.exc.DBAPIError: it cannot be written.
        """
        handed_in = work.handed_in
        place = handed_in.student, handed_in.lesson
        when = _when(handed_in)
        if graded.ran:
            keep_ran(self.root, handed_in.lesson.name, handed_in.student, graded.ran)
        book.save(self.gradebook, place, when, graded.scores, self._late)
        entry = Entry(
            graded=work.graded,
            scores="",
            page="",
            problem=graded.problem,
            walled=self.wall,
            seconds=graded.seconds,
            version=__version__,
        )
        return self._to_show(handed_in, graded.notebook, entry)

    def _to_show(self, handed_in: HandedIn, notebook: bytes, entry: Entry) -> ToShow:
        """What the page shows, and the entry, as the gradebook is now."""
        lesson, student = handed_in.lesson, handed_in.student
        marks = book.marks_of_class(self.gradebook, lesson, student)[student]
        page = _page_digest(entry.graded, marks)
        entry = replace(entry, scores=book.digest_of_scores(marks), page=page)
        return ToShow(handed_in, notebook, marks, entry)

    def finish(self, work: ToShow, html: bytes) -> None:
        """Write the graded notebook and its page, then note that the submission is done."""
        handed_in = work.handed_in
        lesson, files = handed_in.lesson, handed_in.files
        graded = {**files, f"{lesson.notebook}.ipynb": work.notebook}
        self._write(self._autograde, "autograded", handed_in, graded)
        others = {n: content for n, content in files.items() if not n.endswith(".ipynb")}
        page_name = f"{lesson.notebook}.html"
        self._write(self._feedback, "feedback", handed_in, {**others, page_name: html})
        keep_entry(self.root, lesson.name, handed_in.student, work.entry)

    def _place(self, kind: str, handed_in: HandedIn) -> Path:
        folder = getattr(self._course, f"{kind}_directory")
        return Path(self._course.format_path(folder, handed_in.student, handed_in.lesson.name))

    def _write(
        self, step: BaseConverter, kind: str, handed_in: HandedIn, files: dict[str, bytes]
    ) -> None:
        """Put a folder in place whole, with the permissions that nbgrader gives it."""
        target = self._place(kind, handed_in)
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
        step.set_permissions(handed_in.lesson.name, handed_in.student)


class Run:
    """One run over a class: what is at work, and where."""

    def __init__(
        self, coordinator: Coordinator, executor: Executor, share: workers.Share, regrade: bool
    ) -> None:
        self.coordinator, self.executor, self.share = coordinator, executor, share
        self.regrade = regrade
        self.shared: dict[Lesson, Any] = {}
        self.working: dict[Future[Any], ToGrade | ToShow] = {}
        self.closed: set[Lesson] = set()

    def all(
        self, submissions: list[tuple[str, Lesson]], ahead: int, stopped: Callable[[], bool]
    ) -> Iterator[Done]:
        todo = iter(submissions)
        left = True
        while (left or self.working) and not stopped():
            while left and len(self.working) < ahead and not stopped():
                if submission := next(todo, None):
                    yield from self._try(*submission, self._begin, *submission)
                else:
                    left = False
            finished, _ = wait(self.working, LOOK_SECONDS, FIRST_COMPLETED)
            yield from self._take(finished)
        if left or self.working:
            yield from self._take({future for future in self.working if future.done()})
            raise KeyboardInterrupt

    def _take(self, finished: set[Future[Any]]) -> Iterator[Done]:
        for future in finished:
            work = self.working.pop(future)
            place = work.handed_in.student, work.handed_in.lesson
            yield from self._try(*place, self._go_on, work, future)

    def _try(
        self, student: str, lesson: Lesson, step: Callable[..., Done | None], *arguments: Any
    ) -> Iterator[Done]:
        """Do a step; a submission that it fails on is named, and the others go on."""
        try:
            done = step(*arguments)
        except (Stop, DBAPIError):
            raise
        except (CourseError, workers.WorkerDied) as error:
            done = Done(student, lesson.name, str(error), failed=True)
        except OSError as error:
            if error.errno in state.FULL:
                raise Stop(state.why_disk(self.coordinator.root, error)) from error
            done = Done(student, lesson.name, f"{error.filename}: {error.strerror}", failed=True)
        except Exception as error:  # the grader's own fault, and no reason to leave the others
            done = Done(student, lesson.name, self._own_fault(error), failed=True)
        if done is not None:
            yield done

    def _own_fault(self, error: Exception) -> str:
        log = self.coordinator.root / ".autograde" / "grading.log"
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        self.coordinator.gradebook.db.rollback()
        return f"the grader failed: {type(error).__name__}: {error} (all of it: {log})"

    def _begin(self, student: str, lesson: Lesson) -> Done | None:
        if lesson in self.closed:
            return Done(student, lesson.name, failed=True)
        if lesson not in self.shared:
            self.shared[lesson] = self._open(lesson)
        work = self.coordinator.look(student, lesson, regrade=self.regrade)
        match work:
            case None:
                return Done(student, lesson.name, unchanged=True)
            case ToGrade():
                future = self.executor.submit(task.grade, work.task, self.shared[lesson])
                self.working[future] = work
            case ToShow():
                self._make_page(work)
        return None

    def _open(self, lesson: Lesson) -> Any:
        """What every worker needs of a lesson; a lesson that cannot be graded is named once."""
        try:
            found = versions(lesson)
            self.coordinator.open(lesson, found)
        except CourseError:
            self.closed.add(lesson)
            raise
        return self.share(found)

    def _go_on(self, work: ToGrade | ToShow, future: Future[Any]) -> Done | None:
        """Save what a worker made: a graded submission, or a page that was made anew."""
        made = future.result()
        if isinstance(work, ToGrade):
            graded, work = made, self.coordinator.save(work, made)
            if work.marks != graded.marks:  # as when it is late: the page is to show that
                self._make_page(work)
                return None
            made = graded.page
        self.coordinator.finish(work, made)
        handed_in = work.handed_in
        problem = work.entry.problem or handed_in.remark
        return Done(handed_in.student, handed_in.lesson.name, problem)

    def _make_page(self, work: ToShow) -> None:
        name = work.handed_in.lesson.notebook
        future = self.executor.submit(task.page, work.notebook, name, work.marks)
        self.working[future] = work


def shown(root: Path, lesson: Lesson, known: dict[str, Marks]) -> bool:
    """Whether the page of each submission shows what the gradebook of the course holds."""
    course = CourseDirectory(config=course_config(root))
    usual = make_url(course.db_url).database == str(root / "gradebook.db")
    entries = {student: read_entry(root, lesson.name, student) for student in known}
    return usual and all(
        entry is None or entry.page == _page_digest(entry.graded, known[student])
        for student, entry in entries.items()
    )


def _page_digest(graded: str, marks: Marks) -> str:
    """A digest of all that is on a page."""
    return digest([graded, book.digest_by_hand(marks)])


def _settings(config: Config) -> str:
    """nbgrader's configuration as text, apart from where the course lies."""
    plain = {name: value for name, value in config.items() if name != "CourseDirectory"}
    return json.dumps(
        plain, sort_keys=True, default=lambda value: getattr(value, "__name__", str(type(value)))
    )


def _when(handed_in: HandedIn) -> datetime | None:
    """When it was handed in, from the file in which nbgrader keeps that.

    Raises:
        CourseError: the file holds no time.
    """
    text = handed_in.files.get(TIMESTAMP, b"").decode(errors="replace").strip()
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
