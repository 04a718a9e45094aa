"""Worker processes on this machine, of which one may die without harm to the others' work."""

import os
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from contextlib import suppress
from functools import partial
from multiprocessing import connection, get_context, parent_process
from typing import Any

from autograde.course import CourseError

ATTEMPTS = 2
LONGEST_SECONDS = 600
"""No job takes longer (a notebook may take 300 s, its kernel's start 120 s); one that does hangs."""


_Job = tuple[Future[Any], Callable[[], Any]]


class WorkerDied(CourseError):
    """The process that ran a job ended, each time it was tried."""


class Processes(Executor):
    """Worker processes, each behind a thread of its own.

    A ProcessPoolExecutor of many is broken whole when one of its processes dies, and nobody knows
    whose job it was. Here each has one process: what dies is replaced, and its job tried once more.
    """

    def __init__(self, number: int) -> None:
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._pids: set[int] = set()
        self._stopped = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, partial(fn, *args, **kwargs)))
        return future

    def _serve(self) -> None:
        # a worker inherits this, so that Ctrl-C does not reach it before it is ready for it
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        pool: ProcessPoolExecutor | None = None
        pid = 0
        while (job := self._jobs.get()) is not None:
            future, call = job
            if not future.set_running_or_notify_cancel():
                continue
            for _ in range(ATTEMPTS):
                try:
                    if pool is None:
                        pool = _pool()
                        pid = pool.submit(os.getpid).result(LONGEST_SECONDS)
                        self._pids.add(pid)
                    future.set_result(pool.submit(call).result(LONGEST_SECONDS))
                    break
                except (BrokenExecutor, TooLong):
                    self._pids.discard(pid)
                    _kill(pid)
                    pool = None
                    if self._stopped:
                        break
                except BaseException as error:
                    future.set_exception(error)
                    break
            if not future.done():
                future.set_exception(
                    WorkerDied(
                        f"the process that ran it died {ATTEMPTS} times, without a reason that it "
                        "could tell; is there enough memory?"
                    )
                )
        if pool is not None:
            pool.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers; with `cancel_futures` at once, whatever they are at."""
        if cancel_futures:
            self._stopped = True
            with suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    job[0].cancel()
            for pid in self._pids.copy():
                _kill(pid)
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else []:
            thread.join()


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_settle_in)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _settle_in() -> None:
    """In a new worker: Ctrl-C is for the coordinator alone, and without it there is no work."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that waits
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # kernels inherit it
    threading.Thread(target=_end_with_the_coordinator, daemon=True).start()


def _end_with_the_coordinator() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
