"""Run a submitted notebook: cells in order, within limits, whatever the code in them does."""

import asyncio
import atexit
import threading
import time
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import Any, cast

import nbformat
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode, v4

from autograde.course.cells import exercise_of, named_cells
from autograde.course.lessons import CourseError
from autograde.files import write_files
from autograde.grading.limits import LIMITS
from autograde.grading.running.job import AGAIN_CODE, Job, Ran
from autograde.grading.running.notebook_client import BrokenConnection, GradingClient
from autograde.grading.running.outputs import CUT_OFF, settle
from autograde.grading.submission import Disturbed, Problem
from autograde.rubric.recording import MIME, PRACTICE_MIME
from autograde.sandbox import template
from autograde.sandbox.inside.messages import ARGUMENTS
from autograde.sandbox.provisioner import (
    WalledProvisioner,
    end_kernel,
    open_manager,
    walled_manager,
)

QUIET = {"stdout": DEVNULL, "stderr": DEVNULL}
"""A kernel's own process writes such things as Jupyter's tracebacks, which help no grader."""
LOOK_SECONDS = 1.0
NOT_RUN = "The cells after that were not run."
WITHOUT = "The notebook was run again without that cell."
LEFT_OUT = "it ended the kernel, so the notebook was run again without it"
MOST_LEFT_OUT = 2
"""The most cells that a notebook runs again without, because they ended its kernel."""
BROKEN = Problem(
    "the notebook broke its connection to the grader",
    "The notebook broke its connection to the grader, for example by printing more than "
    f"{LIMITS.socket_bytes // 10**6} MB at once. {NOT_RUN}",
)

Look = Callable[[str, list[NotebookNode]], bool]
"""Given an exercise and its rubric cell's outputs: whether to record it on the practice seed."""


def run_job(job: Job, look: Look = lambda *_: False, *, alone: bool = True) -> Ran:
    """Run a job in a kernel and folder of its own.

    The kernel gets the seed only when the first rubric in a rubric cell asks for it. Without a
    wall, the code can do whatever the user who runs this can.

    A cell that ends its kernel costs what needs it, and no other exercise: the notebook runs again
    without it, if there is time for all that has run so far.

    Args:
        look: called for each rubric cell at the end; if left out, no rubric runs again.
        alone: no other notebook runs meanwhile, so that what happens is the notebook's own doing.

    Raises:
        Disturbed: no kernel could be started, what it was forked from has ended, or, if not
            `alone`, other notebooks may have kept this one from what it needs.
    """
    began = time.monotonic()
    running = first = _Running(job, look, alone)
    running.run_in_a_folder()
    left_out: dict[int, str] = {}
    while running.problem and running.ended_by is not None and len(left_out) < MOST_LEFT_OUT:
        if running.time_left() < running.seconds:
            break
        said = running.notes.get(running.ended_by, "")
        left_out[running.ended_by] = "; ".join(filter(None, [said, LEFT_OUT]))
        running = _Running(job, look, alone, left_out, running.end)
        running.run_in_a_folder()
    problem = running.problem or first.problem
    if problem and (running.ended_by is not None or not running.problem):
        then = NOT_RUN if running.problem else WITHOUT
        problem = replace(problem, words=f"{problem.words} {then}")
    cells = running.nb.cells[: len(job.cells)]
    notes = running.notes | left_out
    return Ran(
        key=job.key,
        cells=[{"outputs": c.outputs, "execution_count": c.execution_count} for c in cells],
        problem=problem,
        notes={index: text for index, text in notes.items() if index < len(cells)},
        seconds=round(time.monotonic() - began, 3),
    )


class _Running:
    """A running job, and its results so far.

    `ended_by` is the cell in which its kernel ended, by number. `end` is when its time is over, and
    `seconds` is what it has taken.
    """

    def __init__(
        self,
        job: Job,
        look: Look,
        alone: bool,
        left_out: Collection[int] = (),
        end: float | None = None,
    ) -> None:
        self.job, self.limits, self.look, self.alone = job, job.limits, look, alone
        self.end = end
        self.ended_by: int | None = None
        self.seconds = 0.0
        cells = [
            _cell(name, "" if index in left_out else source)
            for index, (name, source) in enumerate(job.cells)
        ]
        nb = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
        self.nb: NotebookNode = nbformat.from_dict(nb)
        self.problem: Problem | None = None
        self.notes: dict[int, str] = {}
        self.wall: WalledProvisioner | None = None
        self.started = False
        self.too_long = Problem(
            "the notebook ran too long",
            f"The notebook ran longer than {self.limits.notebook_seconds} s. {NOT_RUN}",
        )

    def run_in_a_folder(self) -> None:
        began = time.monotonic()
        with TemporaryDirectory(prefix="job-") as folder:
            place = Path(folder, "work")
            place.mkdir()
            write_files(place, self.job.files)
            self.run_in_time(place)
        self.seconds = time.monotonic() - began

    def time_left(self) -> float:
        return 0.0 if self.end is None else self.end - time.monotonic()

    def run_in_time(self, place: Path) -> None:
        """Run the job. What it recorded by its time is kept, whatever the code in it blocks."""
        if self.job.wall:
            manager = walled_manager(self.limits.kernel, self.job.package)
            self.wall = cast(WalledProvisioner, manager.provisioner)
        else:
            manager = open_manager(place.parent)
        client = GradingClient(
            self.nb,
            self.limits,
            km=manager,
            timeout=self.limits.cell_seconds,
            resources={"metadata": {"path": str(place)}},
            extra_arguments=ARGUMENTS,
        )
        self.until = time.monotonic() + self.limits.start_seconds
        done: Future[None] = Future()
        work = partial(self._run, client)
        # nobody waits for a daemon, not even the end of the program
        threading.Thread(target=run_in_a_loop, args=(work, done), daemon=True).start()
        try:  # it may block its loop, so it is not the loop that keeps the time
            while not done.done() and (left := self.until - time.monotonic()) > 0:
                wait([done], min(left, LOOK_SECONDS))
        finally:  # after Ctrl-C, too
            if not done.done():
                if self.started:
                    self.problem = self.too_long
                end_kernel(manager)
        wait([done], self.limits.stop_seconds)
        if done.done():
            done.result()
        else:
            client.left_behind = True
            atexit.unregister(client._cleanup_kernel)
            if not self.started:
                seconds = self.limits.start_seconds
                raise Disturbed(f"no kernel could be started within {seconds} s")
            self.problem = self.too_long
        for cell in self.nb.cells:
            settle(cell.get("outputs", []))
        for index in client.flooded:
            cut = NotebookNode(output_type="stream", name="stdout", text=CUT_OFF)
            self.nb.cells[index].outputs.append(cut)
            self.notes.setdefault(index, "showed too much; the rest was cut off")

    async def _run(self, client: GradingClient) -> None:
        try:
            async with client.async_setup_kernel(cleanup_kc=True, **QUIET):
                self.end = self.end or time.monotonic() + self.limits.notebook_seconds
                self.until = self.end + self.limits.grace_seconds
                self.started = True
                if self.wall:
                    template.prepare(self.limits.kernel, self.job.package)  # for the next notebook
                await self._cells(client, self.end)
        except CourseError:
            raise
        except BrokenConnection:
            self.problem = self.problem or BROKEN
        except Exception as error:
            if not self.started:  # no code of the student's has run, so it cannot be their fault
                raise Disturbed(f"no kernel could be started: {error}") from error
            # what a kernel sends is untrusted, so anything may be raised while it is read
            self.problem = self.problem or Problem(
                "what the kernel sent could not be read",
                f"The kernel sent data that cannot be read ({type(error).__name__}). {NOT_RUN}",
            )

    async def _cells(self, client: GradingClient, end: float) -> None:
        client.kernel.execute(self.job.begin_code, silent=True, store_history=False)
        teller = asyncio.create_task(client.tell_when_asked(str(self.job.seed)))
        try:
            for index, cell in enumerate(self.nb.cells):
                if not cell.source.strip():
                    continue
                if teller.done():
                    teller.result()
                if (left := end - time.monotonic()) <= 0:
                    await self._doubt_the_clock(self.limits.notebook_seconds, of_all=True)
                    self.problem = self.too_long
                else:
                    seconds = min(left + self.limits.grace_seconds / 2, self.limits.cell_seconds)
                    client.timeout = ceil(seconds)
                    self.problem = self.problem or await self._cell(client, index, cell)
                if self.problem:
                    return
            if self.wall and await self.wall.poll() is None and self.wall.scarce():
                self._doubt(f"{self.wall.scarce()} were used up")
            await self._practise(client, end)
        finally:
            teller.cancel()
            with suppress(asyncio.CancelledError):
                await teller

    async def _practise(self, client: GradingClient, end: float) -> None:
        """Run the rubrics that `look` asks for once more, on the practice seed.

        Everything that earns points has run. A failure here only leaves a misconception unnamed.
        The answer's cell runs once more too: as in practice, its defaults and globals are new.
        """
        answers = named_cells(self.nb)
        for cell in self.nb.cells[:]:
            exercise = exercise_of(cell)
            if time.monotonic() > end or not exercise or not self.look(exercise, cell.outputs):
                continue
            answer, noted = answers[exercise], [self.nb.cells[index] for index in self.notes]
            if any(one is answer or one is cell for one in noted):
                continue
            for source in (answer.source, f"{AGAIN_CODE}\n{cell.source}"):
                again = nbformat.from_dict(_cell("", source))
                self.nb.cells.append(again)
                place = len(self.nb.cells) - 1
                try:
                    dead = await self._cell(client, place, again, store_history=False)
                except Exception:  # what a kernel sends is untrusted
                    return
                if dead:
                    return
            for output in again.outputs:
                if recorded := output.get("data", {}).get(MIME):
                    cell.outputs.append(v4.new_output("display_data", {PRACTICE_MIME: recorded}))

    async def _cell(
        self, client: GradingClient, index: int, cell: NotebookNode, **options: Any
    ) -> Problem | None:
        """Run a cell; return the problem that ends the run, if there is one."""
        # a student's own call of input() must fail at once, as in every other cell
        client.kernel.allow_stdin = bool(exercise_of(cell)) and not client.told
        if self.wall:
            self.wall.next_cell()
        try:
            count = client.code_cells_executed + 1
            await client.async_execute_cell(cell, index, count, **options)
            if index in client.timed_out:
                may = f"a cell may run for {self.limits.cell_seconds} s"
                self.notes[index] = f"took too long and was interrupted; {may}"
                await self._doubt_the_clock(client.timeout or 0)
            if self.wall and (limit := await self.wall.why_it_was_interrupted()):
                self.notes[index] = f"{limit} and was interrupted"
            if index in self.notes and not await client.answers():
                self.ended_by = index
                return Problem(
                    "a cell ran too long and did not stop",
                    f"The cell that begins {_first_line(cell)!r} ran too long and did not stop "
                    "when it was interrupted.",
                )
        except DeadKernelError:
            if self.problem or client.broken:
                return self.problem or BROKEN
            if self.wall and self.wall.lost():
                raise Disturbed(
                    "the process from which kernels are forked was killed, so this notebook was "
                    "cut short; grade it again"
                ) from None
            if self.wall and (self.wall.killed() or self.wall.scarce()):
                self._doubt("its kernel died")
            self.ended_by = index
            what = self.wall.why_it_died() if self.wall else ""
            what = what or "the code ended the process, or it used up the memory"
            return Problem(
                "the kernel died while the notebook ran",
                f"The kernel died in the cell that begins {_first_line(cell)!r}: {what}.",
            )
        return None

    async def _doubt_the_clock(self, seconds: float, *, of_all: bool = False) -> None:
        """Doubt that a time-out is the notebook's own doing if it used little processor time."""
        enough = self.limits.busy_share * seconds
        if self.wall and (await self.wall.seconds_used())[of_all] < enough:
            self._doubt(f"it used little processor time in {seconds} s")

    def _doubt(self, why: str) -> None:
        """Raises Disturbed, unless the notebook ran alone."""
        if not self.alone:
            raise Disturbed(f"other notebooks may have disturbed this one: {why}")


def run_in_a_loop(work: Callable[[], Coroutine[Any, Any, None]], done: "Future[None]") -> None:
    """Run work in an event loop of its own, and tell when and how it ended."""
    try:
        # on Windows the default is a loop on which zmq works only with a thread more, and warns
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(work())
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(None)


def _cell(name: str, source: str) -> dict[str, Any]:
    """Make a valid cell without nbformat, which takes a millisecond to validate one."""
    metadata = {"nbgrader": {"grade_id": name}} if name else {}
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def _first_line(cell: NotebookNode) -> str:
    return str(cell.source.strip().splitlines()[0][:60])
