"""Grade a class: executors run and judge submissions, this process alone saves."""

import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import DBAPIError

from autograde.course import CourseError, Lesson
from autograde.course_config import course_config
from autograde.grading import guard, pages
from autograde.grading.cluster import cluster
from autograde.grading.coordinator import Desk, Page, Prepared
from autograde.grading.guard import Stop
from autograde.grading.handed_in import HandedIn
from autograde.grading.job import Job, run_job
from autograde.grading.judged import Judged, judge_result
from autograde.grading.keys import keys_for
from autograde.grading.state import keep_result, stored_bytes, sweep
from autograde.grading.workers import Processes, WorkerDied

AHEAD = 3
"""How many submissions are at work for each worker: run, judged, on a page; none waits."""
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Graded:
    """What became of one submission. `problem` is what a teacher should know; `failed`: no score.

    `unchanged`: it was graded before, by the same rules, and nothing was done.
    """

    student: str
    lesson: str
    problem: str = ""
    failed: bool = False
    unchanged: bool = False


@dataclass(frozen=True)
class How:
    """How a class is graded: behind a wall, all of it anew, on how many processes or on what."""

    workers: int
    wall: bool = True
    regrade: bool = False
    scheduler: str = ""


def grade_class(
    submissions: list[tuple[str, Lesson]], how: How, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Graded]:
    """Grade submissions of one course, in the order in which they are done.

    Killed at any moment, the next call goes on from what is stored. When `stopped()` says so,
    what runs is ended, and what has run is kept.

    Raises:
        Stop: nothing (more) can be graded, whatever the submission.
        CourseError: the cluster cannot be used, or nbgrader's configuration is missing.
    """
    root = submissions[0][1].root
    with guard.one_run(root), ExitStack() as opened:
        guard.require_room(root)
        sweep(root)
        config = course_config(root)
        guard.copy_gradebook(root, CourseDirectory(config=config).db_url)
        gradebook = opened.enter_context(guard.open_gradebook(config))
        local = opened.enter_context(_ending(Processes(how.workers)))
        away: Executor = local
        number = how.workers
        if how.scheduler:
            away, number = opened.enter_context(cluster(how.scheduler, wall=how.wall))
        desk = Desk(root, config, gradebook, wall=how.wall)
        run = _Run(desk, local, away, AHEAD * max(number, how.workers), how.regrade)
        yield from run.all(submissions, stopped)


@contextmanager
def _ending(processes: Processes) -> Iterator[Processes]:
    try:
        yield processes
    except BaseException:
        processes.shutdown(cancel_futures=True)
        raise
    processes.shutdown()


@dataclass(frozen=True)
class _Work:
    """What is at work for a submission, what to do with what comes of it, and under which key to
    keep that if the run is stopped before."""

    handed_in: HandedIn
    then: Callable[[Any], Graded | None]
    key: str = ""


class _Run:
    """One run over a class: what is at work where, and what is to be done when it is finished."""

    def __init__(
        self, desk: Desk, local: Executor, away: Executor, ahead: int, regrade: bool
    ) -> None:
        self.desk, self.local, self.away, self.ahead = desk, local, away, ahead
        self.regrade = regrade
        self.working: dict[Future[Any], _Work] = {}
        self.keys: dict[tuple[Lesson, int], Future[Any]] = {}

    def all(
        self, submissions: list[tuple[str, Lesson]], stopped: Callable[[], bool]
    ) -> Iterator[Graded]:
        todo = iter(submissions)
        left = True
        while (left or self.working) and not stopped():
            while left and len(self.working) < self.ahead and not stopped():
                if submission := next(todo, None):
                    yield from self._try(*submission, self._begin, *submission)
                else:
                    left = False
            done, _ = wait(self.working, LOOK_SECONDS, FIRST_COMPLETED)
            for future in done:
                work = self.working.pop(future)
                handed_in = work.handed_in
                yield from self._try(handed_in.student, handed_in.lesson, self._go_on, work, future)
        if left or self.working:
            self._keep_what_has_run()
            raise KeyboardInterrupt

    @staticmethod
    def _go_on(work: _Work, future: Future[Any]) -> Graded | None:
        return work.then(future.result())

    def _keep_what_has_run(self) -> None:
        for future, work in self.working.items():
            if work.key and _came(future):
                keep_result(self.desk.root, work.key, future.result())

    def _try(
        self, student: str, lesson: Lesson, step: Callable[..., Graded | None], *arguments: Any
    ) -> Iterator[Graded]:
        """Do a step; a submission that it fails on is named, and the others go on."""
        try:
            graded = step(*arguments)
        except (Stop, DBAPIError):
            raise
        except (CourseError, WorkerDied) as error:
            graded = Graded(student, lesson.name, str(error), failed=True)
        except OSError as error:
            if error.errno in guard.FULL:
                raise Stop(guard.why_disk(self.desk.root, error)) from error
            graded = Graded(
                student, lesson.name, f"{error.filename}: {error.strerror}", failed=True
            )
        except Exception as error:  # the grader's own fault, and no reason to leave the others
            graded = Graded(student, lesson.name, self._own_fault(error), failed=True)
        if graded is not None:
            yield graded

    def _own_fault(self, error: Exception) -> str:
        log = self.desk.root / ".autograde" / "grading.log"
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        self.desk.gradebook.db.rollback()
        return f"the grader failed: {type(error).__name__}: {error} (all of it: {log})"

    def _begin(self, student: str, lesson: Lesson) -> Graded | None:
        todo = self.desk.look(student, lesson, regrade=self.regrade)
        if todo is None:
            return Graded(student, lesson.name, unchanged=True)
        if isinstance(todo, Page):
            self._render(todo)
        elif todo.job is None:
            self._judge(todo, None)
        elif not self.regrade and (kept := stored_bytes(self.desk.root, todo.job.key)):
            self._judge(todo, kept, kept=True)
        else:
            self._run(todo, todo.job)
        return None

    def _run(self, prepared: Prepared, job: Job) -> None:
        place = prepared.version, job.seed
        if place not in self.keys:  # the first that needs an answer key has it made meanwhile
            self.keys[place] = self.local.submit(_make_keys, *place)
        work = _Work(prepared.handed_in, partial(self._ran, prepared, job), job.key)
        self.working[self.away.submit(run_job, job)] = work

    def _ran(self, prepared: Prepared, job: Job, result: bytes) -> None:
        keep_result(self.desk.root, job.key, result)
        self.keys[prepared.version, job.seed].result()
        self._judge(prepared, result)

    def _judge(self, prepared: Prepared, result: bytes | None, *, kept: bool = False) -> None:
        handed_in = prepared.handed_in
        future = self.local.submit(judge_result, prepared.version, prepared.restored, result)
        self.working[future] = _Work(handed_in, partial(self._judged, prepared, kept))

    def _judged(self, prepared: Prepared, kept: bool, judged: Judged | None) -> None:
        if judged is not None:
            self._render(self.desk.save(prepared, judged))
        elif kept and prepared.job:  # a file of .autograde/done was cut short or changed
            self._run(prepared, prepared.job)
        else:
            raise CourseError("a worker sent a result that cannot be read; grade it again")

    def _render(self, page: Page) -> None:
        future = self.local.submit(pages.render, *page.arguments)
        self.working[future] = _Work(page.handed_in, partial(self._rendered, page))

    def _rendered(self, page: Page, made: tuple[bytes, bytes]) -> Graded:
        self.desk.finish(page, *made)
        handed_in = page.handed_in
        problem = page.entry.problem or handed_in.remark
        return Graded(handed_in.student, handed_in.lesson.name, problem)


def _came(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _make_keys(lesson: Lesson, seed: int) -> None:
    """In a worker: make the answer keys, which are then on disk."""
    keys_for(lesson, seed)


def check_released(lessons: list[Lesson]) -> None:
    """Raises CourseError when one of the lessons cannot be graded: it was never built here."""
    for lesson in lessons:
        if not lesson.released_notebook.is_file():
            raise CourseError(
                f"{lesson.name} is not built here. Run: autograde build {lesson.name}"
            )
    with guard.open_gradebook(course_config(lessons[0].root)) as gradebook:
        known = {assignment.name for assignment in gradebook.assignments}
    for lesson in lessons:
        if lesson.name not in known:
            raise CourseError(
                f"the gradebook does not know {lesson.name}. Run: autograde build {lesson.name}"
            )
