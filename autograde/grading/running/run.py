"""Run a submitted notebook: cells in order, within limits, whatever the code in them does."""

import asyncio
import atexit
import gzip
import hashlib
import json
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode, v4

from autograde.course import CourseError, code_cells, exercise_of, grade_id
from autograde.grader import GRADER
from autograde.grading.limits import LIMITS, Limits
from autograde.grading.restore import NOTE
from autograde.grading.running.deadline import finish_in_time
from autograde.grading.running.notebook_client import TIMED_OUT, BrokenConnection, GradingClient
from autograde.grading.submission import Disturbed, Problem, beside
from autograde.rubric.recording import MIME, PRACTICE_MIME
from autograde.rubric.session import PRACTICE_SEED
from autograde.rubric.text import digest
from autograde.sandbox.inside.messages import ARGUMENTS
from autograde.sandbox.provisioner import (
    WalledProvisioner,
    end_kernel,
    open_manager,
    prepare_kernel,
    walled_manager,
)

BEGIN_CODE = (
    "import os, torch; os.environ['NBGRADER_EXECUTION'] = 'autograde'; torch.set_num_threads(1)\n"
    "from autograde.notebook import unsolved, watch; watch(unsolved)\n"
    "from autograde.rubric.session import begin_grading; begin_grading()\n"
    "get_ipython().ask_exit = lambda: None"  # `exit` would end the kernel some cells later
)
AGAIN_CODE = "__import__('autograde.rubric.session').rubric.session.again({!r})"  # binds no name
QUIET = {"stdout": DEVNULL, "stderr": DEVNULL}
"""What a kernel's process itself writes, such as tracebacks of Jupyter's own, helps no grader."""
NOT_RUN = "The cells after that were not run."
START_SECONDS = 150
"""For a kernel to start and answer."""
GRACE_SECONDS = 20
"""A run past its limit of time has so long to end by itself; then its kernel is killed."""
LITTLE = 0.5
"""A time-out counts if the notebook used at least this part of the time on a processor."""
BROKEN = Problem(
    "the notebook broke its connection to the grader",
    f"The notebook broke its connection to the grader. {NOT_RUN}",
)

Look = Callable[[str, list[NotebookNode]], bool]
"""Given an exercise and its rubric cell's outputs: whether to record it on the practice seed."""


@dataclass(frozen=True)
class Job:
    """The code cells of a restored submission, each with its grade_id, and the files beside it.

    A cell that is not run has no code. The seed is the practice seed until it is replaced.
    """

    cells: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, bytes], ...]
    wall: bool
    seed: int = PRACTICE_SEED
    limits: Limits = LIMITS

    @property
    def seen(self) -> str:
        """A digest of all that the kernel sees of the submission, so of nothing else in its file.

        It is made of JSON, in which no two jobs look the same. Text cells are not in it: nbgrader
        puts marking schemes into them on the way.
        """
        files = [(name, hashlib.sha256(content).hexdigest()) for name, content in self.files]
        return digest(json.dumps([self.cells, files]))

    @property
    def key(self) -> str:
        """A digest of all that decides the result."""
        sent = [BEGIN_CODE, AGAIN_CODE]
        facts = [self.seen, sent, self.seed, self.wall, asdict(self.limits), GRADER.runs]
        return digest(json.dumps(facts))


@dataclass(frozen=True)
class Ran:
    """The result of a job: the outputs of each code cell, and notes on cells by their number.

    `key` is the job's; a `problem` ended the run early.
    """

    key: str
    cells: list[dict[str, Any]]
    problem: Problem | None
    notes: dict[int, str]
    seconds: float

    def to_bytes(self) -> bytes:
        return gzip.compress(json.dumps(asdict(self)).encode(), compresslevel=1, mtime=0)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ran | None":
        """Read what `to_bytes` made; None if it was cut short or changed."""
        try:
            plain = json.loads(gzip.decompress(data))
            notes = {int(number): text for number, text in plain.pop("notes").items()}
            problem = plain.pop("problem")
            return cls(notes=notes, problem=Problem(**problem) if problem else None, **plain)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
            return None


def make_job(nb: NotebookNode, files: dict[str, bytes], *, wall: bool, left_out: set[str]) -> Job:
    """Return the job of a restored submission, without the files that no code of a lesson reads.

    Args:
        left_out: ids of the cells that are not run.
    """
    cells = tuple(
        (grade_id(cell) or "", "" if cell.id in left_out else cell.source)
        for cell in code_cells(nb)
    )
    return Job(cells, tuple(beside(files).items()), wall)


def put_outputs(nb: NotebookNode, ran: Ran) -> None:
    """Put a job's outputs into the notebook it was made from, its problem and notes into the note.

    Raises:
        ValueError: the job was made from another notebook.
    """
    cells, note = code_cells(nb), nb.metadata[NOTE]
    for cell, done in zip(cells, ran.cells, strict=True):
        cell.outputs = nbformat.from_dict(done["outputs"])
        cell.execution_count = done["execution_count"]
    if ran.problem:
        note |= {"problem": ran.problem.words, "kind": ran.problem.kind}
    for number, text in ran.notes.items():
        if name := grade_id(cells[number]):
            note["notes"].setdefault(name, []).append(text)


def run_job(job: Job, look: Look = lambda *_: False, *, alone: bool = True) -> Ran:
    """Run a job in a kernel and folder of its own.

    The kernel gets the seed only when the first rubric in a rubric cell asks for it. Without a
    wall, the code can do whatever the user who runs this can.

    Args:
        look: called for each rubric cell at the end; if left out, no rubric runs again.
        alone: no other notebook runs meanwhile, so that what happens is the notebook's own doing.

    Raises:
        Disturbed: no kernel could be started, what it was forked from has ended, or, if not
            `alone`, other notebooks may have kept this one from what it needs.
    """
    began, running = time.monotonic(), _Running(job, look, alone)
    with TemporaryDirectory(prefix="job-") as folder:
        place = Path(folder, "work")
        place.mkdir()
        for name, content in job.files:
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        running.run_in_time(place)
    cells = running.nb.cells[: len(job.cells)]
    return Ran(
        key=job.key,
        cells=[{"outputs": c.outputs, "execution_count": c.execution_count} for c in cells],
        problem=running.problem,
        notes={index: text for index, text in running.notes.items() if index < len(cells)},
        seconds=round(time.monotonic() - began, 3),
    )


class _Running:
    """A running job, and its results so far."""

    def __init__(self, job: Job, look: Look, alone: bool) -> None:
        self.job, self.limits, self.look, self.alone = job, job.limits, look, alone
        cells = [_cell(*cell) for cell in job.cells]
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

    def run_in_time(self, place: Path) -> None:
        """Run the job. What it recorded by its time is kept, whatever the code in it blocks."""
        manager = walled_manager() if self.job.wall else open_manager(place.parent)
        if isinstance(manager.provisioner, WalledProvisioner):
            self.wall = manager.provisioner
        client = GradingClient(
            self.nb,
            self.limits,
            km=manager,
            timeout=self.limits.cell_seconds,
            resources={"metadata": {"path": str(place)}},
            on_cell_executed=self._note_timeout,
            extra_arguments=ARGUMENTS,
        )
        self.until = time.monotonic() + START_SECONDS
        ended = finish_in_time(
            partial(self._run, client), lambda: self.until, partial(self._stop, manager)
        )
        if not ended:
            client.left_behind = True
            atexit.unregister(client._cleanup_kernel)
            if not self.started:
                raise Disturbed(f"no kernel could be started within {START_SECONDS} s")
            self.problem = self.too_long
        client.join_streams()
        for index in client.flooded:
            self.notes[index] = "showed too much; the rest was cut off"

    def _stop(self, manager: AsyncKernelManager) -> None:
        if self.started:
            self.problem = self.too_long
        end_kernel(manager)

    async def _run(self, client: GradingClient) -> None:
        try:
            async with client.async_setup_kernel(cleanup_kc=True, **QUIET):
                self.until = time.monotonic() + self.limits.notebook_seconds + GRACE_SECONDS
                self.started = True
                if self.wall:
                    prepare_kernel()  # for the next notebook
                await self._cells(client)
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

    async def _cells(self, client: GradingClient) -> None:
        end = time.monotonic() + self.limits.notebook_seconds
        client.tell(BEGIN_CODE)
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
                    client.timeout = ceil(min(left, self.limits.cell_seconds))
                    self.problem = self.problem or await self._cell(client, index, cell)
                if self.problem:
                    return
            if self.wall and await self.wall.poll() is None and self.wall.scarce:
                self._doubt(f"{self.wall.scarce} were used up")
            await self._practise(client, end)
        finally:
            teller.cancel()
            with suppress(asyncio.CancelledError):
                await teller

    async def _practise(self, client: GradingClient, end: float) -> None:
        """Run the rubrics that `look` asks for once more, on the practice seed.

        Everything that earns points has run. A failure here only leaves a misconception unnamed.
        """
        for index, cell in enumerate(self.nb.cells[:]):
            exercise = exercise_of(cell)
            spoilt = index in self.notes or time.monotonic() > end
            if spoilt or not exercise or not self.look(exercise, cell.outputs):
                continue
            again = nbformat.from_dict(_cell("", AGAIN_CODE.format(exercise)))
            self.nb.cells.append(again)
            try:
                dead = await self._cell(client, len(self.nb.cells) - 1, again, store_history=False)
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
            if index in self.notes:
                await self._doubt_the_clock(client.timeout or 0)
            if self.wall and (limit := await self.wall.why_it_was_interrupted()):
                self.notes[index] = f"{limit} and was interrupted"
            if index in self.notes and not await client.answers():
                return Problem(
                    "a cell ran too long and did not stop",
                    f"The cell that begins {_first_line(cell)!r} ran too long and did not stop "
                    f"when it was interrupted. {NOT_RUN}",
                )
        except DeadKernelError:
            if self.problem or client.broken:
                return self.problem or BROKEN
            if self.wall and self.wall.lost():
                raise Disturbed(
                    "the process from which kernels are forked was killed, so this notebook was "
                    "cut short; grade it again"
                ) from None
            if self.wall and (self.wall.killed() or self.wall.scarce):
                self._doubt("its kernel died")
            what = self.wall.why_it_died() if self.wall else ""
            what = what or "the code ended the process, or it used up the memory"
            return Problem(
                "the kernel died while the notebook ran",
                f"The kernel died in the cell that begins {_first_line(cell)!r}: {what}. {NOT_RUN}",
            )
        return None

    async def _doubt_the_clock(self, seconds: float, *, of_all: bool = False) -> None:
        """Doubt that a time-out is the notebook's own doing if it used little processor time."""
        if self.wall and (await self.wall.seconds_used())[of_all] < LITTLE * seconds:
            self._doubt(f"it used little processor time in {seconds} s")

    def _doubt(self, why: str) -> None:
        """Raises Disturbed, unless the notebook ran alone."""
        if not self.alone:
            raise Disturbed(f"other notebooks may have disturbed this one: {why}")

    def _note_timeout(
        self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]
    ) -> None:
        if execute_reply["content"].get("ename") == TIMED_OUT:
            self.notes[cell_index] = "took too long and was interrupted"


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
