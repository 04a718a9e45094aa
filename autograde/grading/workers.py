"""Run work in processes of this machine, or on a Dask cluster; either is an `Executor`.

Work travels as plain data; no file system is shared with a cluster. The coordinator, which imports
this too, needs neither the package of a course nor what renders pages, so the work imports late.
"""

import faulthandler
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from typing import Any, cast

from autograde.course.lessons import CourseError
from autograde.course.package import bring_in
from autograde.course.versions import Version
from autograde.grader import grader_of
from autograde.grading.limits import LIMITS
from autograde.grading.state import Halted
from autograde.grading.submission import Graded, Marks, Task
from autograde.sandbox import template
from autograde.sandbox.wall import missing

CONNECT_SECONDS = 20

SWITCH_SECONDS = 0.0005
"""After this time the thread that makes the keys gives way to the one that a kernel waits for."""

PRELOADED = "autograde.grading.preloaded"
"""Importing it takes seconds, and so may the course's package. On a single machine, one process
does it and forks the workers."""

Line = tuple[socket.socket, str]
"""The connection to a template, and the package of the course that its kernels see."""

Executors = Sequence[Executor]
"""One for each submission that is graded at a time; several may be the same."""


def grade_task(task: Task, versions: tuple[Version, ...]) -> Graded:
    """Grade a submission, made from one of these versions of its lesson.

    Raises:
        CourseError: it cannot be graded, or this process may not grade it.
    """
    package = task.submission.place.lesson.package
    require_same(task.grader, task.wall, package)
    get_ready(task.wall, package)
    from autograde.grading import pipeline

    with at_most(LIMITS.hung_seconds + LIMITS.more_seconds):
        return pipeline.grade_submission(task, versions)


def require_same(grader: str, wall: bool, package: str) -> None:
    """Raises CourseError when this process would grade by other rules than the coordinator."""
    if grader != grader_of(package):
        raise CourseError(
            "this worker grades with other files of the grader or of the course's package than the "
            "coordinator: give it the same, and start it again"
        )
    if wall and (problem := missing(package)):
        raise CourseError(f"this worker has no wall: {problem}")


def get_ready(wall: bool, package: str) -> None:
    """Have the next kernel start, and import meanwhile what grading needs.

    Raises:
        Halted: the course's package cannot be imported.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    if wall:
        template.prepare(LIMITS.kernel, package)
    importlib.import_module(PRELOADED)
    try:
        bring_in(package)
    except CourseError as error:
        raise Halted(str(error)) from error


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End this process if a block takes longer, even while a call keeps all of Python waiting.

    A worker of this machine is ended and replaced before that. Of a cluster's worker nobody else
    would notice; there its nanny starts another.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def make_page(notebook: bytes, marks: Marks) -> bytes:
    """Make the page of a graded notebook again."""
    from autograde.grading import feedback
    from autograde.grading.record import from_file

    return feedback.page(from_file(notebook), marks)


def start_template(package: str) -> Line:
    """Start the kernels' template, which takes longest; return the connection to it."""
    return template.current(package).line, package


@contextmanager
def on_this_machine(number: int, wall: bool, package: str, *, now: bool) -> Iterator[Executors]:
    """Start workers, which share one template of the kernels; they end with this block.

    With `now` the template and the first of them start at once, else when there is work.
    """
    workers = [Worker(wall, package) for _ in range(number)]
    if now:
        workers[0].submit(os.getpid)
    try:
        yield workers
    finally:  # the caller has every result by now, or wants no more
        for worker in workers:
            worker.shutdown(cancel_futures=True)


@contextmanager
def on_cluster(address: str, wall: bool, package: str) -> Iterator[Executors]:
    """Connect to a Dask cluster; yield an executor for each task that it runs at once.

    Raises:
        CourseError: `distributed` is not installed, nothing answers there, no worker is connected,
            or one of them would grade by other rules.
    """
    try:
        import distributed
    except ImportError as error:
        raise CourseError("--scheduler needs Dask: pip install distributed") from error
    try:
        client = cast(Any, distributed).Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise CourseError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        threads = client.nthreads()
        if not threads:
            raise CourseError(f"the scheduler at {address} has no workers")
        client.run(require_same, grader_of(package), wall, package)
        # runs while the coordinator imports nbgrader; a worker that fails says so in its first task
        for each in threads:
            ready = client.submit(get_ready, wall, package, workers=[each], pure=False)
            cast(Any, distributed).fire_and_forget(ready)
        # a task that fails fails again; one whose worker dies the scheduler tries again anyway
        yield [client.get_executor(pure=False, retries=0)] * sum(threads.values())


class WorkerDied(Exception):
    """The process that ran a job died."""


class WorkerHung(WorkerDied):
    """The process that ran a job did not end, and was killed."""


class Worker(ThreadPoolExecutor):
    """A process that does one job after another, and a thread that waits for it.

    If a process of a ProcessPoolExecutor dies, the whole pool breaks and does not say which job was
    to blame. Here the pool has one process: a dead one is replaced for the next job.
    """

    def __init__(self, wall: bool = False, package: str = "") -> None:
        """Prepare a process, which imports a course's package if it has one."""
        super().__init__(1)
        self._wall, self._package = wall, package
        self._line: Line | None = None
        self._ended = False
        self._pool: ProcessPoolExecutor | None = None  # None: not started yet, or dead
        self._process = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._wall and self._pool is None:
            # here, not in the thread: kernels would inherit its blocked Ctrl-C
            self._line = start_template(self._package)
        return super().submit(self._run, partial(fn, *args, **kwargs))

    def _run(self, call: Callable[[], Any]) -> Any:
        try:
            self._pool = self._pool or self._start()
            job = self._pool.submit(call)
            if wait([job], LIMITS.hung_seconds).not_done:
                self._kill()
                raise WorkerHung(f"it was stopped after {LIMITS.hung_seconds} s")
            return job.result()
        except BrokenExecutor:
            self._kill()
            raise WorkerDied(
                "the process that ran it died without saying why; is there enough memory?"
            ) from None

    def _start(self) -> ProcessPoolExecutor:
        if self._ended:
            raise BrokenExecutor
        # the process inherits this, so that Ctrl-C does not reach it before it is ready for it
        resource_tracker.ensure_running()  # the first time it unblocks Ctrl-C
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        context = get_context("forkserver")
        context.set_forkserver_preload([PRELOADED])
        os.environ["AUTOGRADE_PACKAGE"] = self._package
        try:
            pool = ProcessPoolExecutor(1, context, _settle_in, (self._line,))
            self._process = pool.submit(os.getpid).result(LIMITS.hung_seconds)
        finally:
            os.environ.pop("AUTOGRADE_PACKAGE", None)  # nothing else is to import it
        if self._ended:
            self._kill()
        return pool

    def _kill(self) -> None:
        process, self._process, self._pool = self._process, 0, None
        if process:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the process; with `cancel_futures` at once, even in the middle of a job."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if cancel_futures:
            self._ended = True
            self._kill()
        super().shutdown(wait)
        if wait and self._pool:
            self._pool.shutdown()


def _settle_in(line: Line | None) -> None:
    """Set up a new worker: Ctrl-C does not reach it, and it ends when the coordinator ends."""
    if line is not None:
        template.share(*line)
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # discards a pending Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # kernels inherit it
    threading.Thread(target=_end_with_the_coordinator, daemon=True).start()


def _end_with_the_coordinator() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
