"""Run a submitted notebook: cells in order, within limits, whatever the code in them does."""

import asyncio
import gzip
import hashlib
import json
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from autograde import __version__
from autograde.course import CourseError, grade_id
from autograde.grading.handed_in import TIMESTAMP
from autograde.grading.limits import Limits
from autograde.grading.notebook_client import TIMED_OUT, GradingClient
from autograde.grading.sanitise import Figures
from autograde.grading.versions import Version
from autograde.rubric.recording import FIGURE_MIME
from autograde.sandbox.private import (
    cell_begins,
    open_manager,
    walled_manager,
    why_it_died,
    why_it_was_interrupted,
)

BEGIN_CODE = (
    "import os, torch; os.environ['NBGRADER_EXECUTION'] = 'autograde'; torch.set_num_threads(1)\n"
    "from autograde.notebook import prepare_kernel; prepare_kernel()\n"
    "from autograde.notebook.figures.canvas import name_only; name_only({figures})\n"
    "from autograde.rubric.session import begin_grading; begin_grading()"
)


@dataclass(frozen=True)
class Job:
    """The code cells of a restored submission, each with its grade_id, and the files beside it.

    `figures` are the keys of pictures that need no drawing.
    """

    cells: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, bytes], ...]
    seed: int
    wall: bool
    figures: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def key(self) -> str:
        """A digest of all that decides the result."""
        facts = [self.cells, self.seed, self.wall, self.figures, asdict(self.limits), __version__]
        parts = [json.dumps(facts).encode()]
        for name, content in self.files:
            parts += [json.dumps(name).encode(), hashlib.sha256(content).digest()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True)
class Ran:
    """What a job gave: outputs for each code cell; `problem` ended it early; notes by cell.

    `key` is that of the job.
    """

    key: str
    cells: list[dict[str, Any]]
    problem: str
    notes: dict[int, str]
    seconds: float

    def to_bytes(self) -> bytes:
        return gzip.compress(json.dumps(asdict(self)).encode(), compresslevel=1, mtime=0)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ran | None":
        """What `to_bytes` made bytes of; None if they were cut short or changed."""
        try:
            plain = json.loads(gzip.decompress(data))
            notes = {int(number): text for number, text in plain.pop("notes").items()}
            return cls(notes=notes, **plain)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
            return None


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def make_job(
    nb: NotebookNode, files: dict[str, bytes], seed: int, *, wall: bool, figures: Figures
) -> Job:
    """The job of a restored submission, without the files that no code of a lesson reads."""
    cells = tuple((grade_id(cell) or "", cell.source) for cell in code_cells(nb))
    beside = (
        (name, files[name])
        for name in sorted(files)
        if not name.endswith(".ipynb") and name != TIMESTAMP
    )
    return Job(cells, tuple(beside), seed, wall, tuple(sorted(figures)))


def run_job(job: Job) -> Ran:
    """Run a job in a kernel and folder of its own.

    Raises:
        CourseError: no kernel could be started.
    """
    cells = [_cell(*cell) for cell in job.cells]
    nb = nbformat.from_dict({"metadata": {}, "nbformat": 4, "nbformat_minor": 4, "cells": cells})
    began = time.monotonic()
    with TemporaryDirectory(prefix="job-") as folder:
        for name, content in job.files:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        executed = execute(
            nb, Path(folder), job.seed, wall=job.wall, figures=job.figures, limits=job.limits
        )
    return Ran(
        key=job.key,
        cells=[
            {"outputs": cell.outputs, "execution_count": cell.execution_count}
            for cell in executed.nb.cells
        ],
        problem=executed.problem,
        notes=executed.notes,
        seconds=round(time.monotonic() - began, 3),
    )


def _cell(name: str, source: str) -> dict[str, Any]:
    """What nbformat would make of a valid cell, which it would look at for a millisecond."""
    metadata = {"nbgrader": {"grade_id": name}} if name else {}
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def put_outputs(nb: NotebookNode, ran: Ran, note: dict[str, Any]) -> None:
    """Put a job's outputs into the notebook that it was made of, its words into the note.

    Raises:
        ValueError: the job was made of another notebook.
    """
    cells = code_cells(nb)
    for cell, done in zip(cells, ran.cells, strict=True):
        cell.outputs = [NotebookNode(nbformat.from_dict(output)) for output in done["outputs"]]
        cell.execution_count = done["execution_count"]
    note["problem"] = ran.problem
    for number, text in ran.notes.items():
        if name := grade_id(cells[number]):
            note["notes"].setdefault(name, []).append(text)


@lru_cache(maxsize=8)
def figures_of(version: Version) -> Figures:
    """The pictures of the executed reference, as outputs, by the key of what they show.

    A kernel that is about to draw one of these names it instead. Most pictures of right answers
    are the reference's. Without a solution there are none, and all are drawn.
    """
    cells = nbformat.v4.reads(version.solution.decode()).cells if version.solution else []
    return {
        output.metadata[FIGURE_MIME]: output
        for cell in cells
        for output in cell.get("outputs", [])
        if FIGURE_MIME in output.get("metadata", {}) and "image/png" in output.data
    }


@dataclass(frozen=True)
class Told:
    """What a kernel is told: at first which pictures not to draw; the seed when it asks."""

    figures: tuple[str, ...]
    seed: int


@dataclass
class Executed:
    """An executed notebook. `problem` ended the run early; `notes` are about single cells."""

    nb: NotebookNode
    problem: str = ""
    notes: dict[int, str] = field(default_factory=dict)


def execute(
    nb: NotebookNode,
    folder: Path,
    seed: int,
    *,
    wall: bool = True,
    figures: tuple[str, ...] = (),
    limits: Limits | None = None,
) -> Executed:
    """Run every cell of a submission, in a kernel and folder of its own.

    Pictures whose keys are in `figures` are named in the outputs, not drawn. The seed is told to
    the kernel only when the first rubric in a rubric cell asks for it. Without a wall the code can
    do whatever the user can who runs this.

    Raises:
        CourseError: no kernel could be started.
    """
    cells = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    # Formgrader calls this from a server whose event loop is running
    run = run_sync(_execute)
    return run(Executed(nb), cells, folder, Told(figures, seed), wall, limits or Limits())


@contextmanager
def _kernel(folder: Path, wall: bool) -> Iterator[tuple[AsyncKernelManager, Path]]:
    """A manager for the kernel, and the folder whose files it gets."""
    if wall:
        yield walled_manager(prepares_another=True), folder
        return
    with TemporaryDirectory(prefix="submission-") as scratch:
        place = Path(scratch, "work")
        shutil.copytree(folder, place, symlinks=True)
        yield open_manager(Path(scratch)), place


async def _execute(
    executed: Executed, cells: list[int], folder: Path, told: Told, wall: bool, limits: Limits
) -> Executed:
    with _kernel(folder, wall) as (manager, place):
        client = GradingClient(
            executed.nb,
            limits,
            km=manager,
            timeout=limits.cell_seconds,
            resources={"metadata": {"path": str(place)}},
        )
        started = False
        try:
            async with client.async_setup_kernel(cleanup_kc=True):
                started = True
                await _run_cells(client, executed, cells, told, limits)
        except Exception as error:
            if not started:  # no code of the student's has run, so it cannot be their fault
                raise CourseError(f"no kernel could be started: {error}") from error
            # what a kernel sends is untrusted, so anything may be raised while it is read
            executed.problem = executed.problem or (
                f"The kernel sent what cannot be read ({type(error).__name__}). "
                "The cells after that were not run."
            )
    client.join_streams()
    for index in client.flooded:
        executed.notes[index] = "showed too much; the rest was cut off"
    return executed


async def _run_cells(
    client: GradingClient, executed: Executed, cells: list[int], told: Told, limits: Limits
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.notebook_seconds
    client.tell(BEGIN_CODE.format(figures=told.figures))
    async with client.telling(str(told.seed)) as teller:
        for index in cells:
            if teller.done():
                teller.result()
            if loop.time() > end:
                executed.problem = (
                    f"The notebook ran longer than {limits.notebook_seconds} s. "
                    "The cells after that were not run."
                )
                return
            if problem := await _run_cell(client, executed, index):
                executed.problem = f"{problem}. The cells after that were not run."
                return


async def _run_cell(client: GradingClient, executed: Executed, index: int) -> str:
    """Run a cell; what ended the kernel with it, if something did."""
    cell = executed.nb.cells[index]
    client.on_cell_executed = _timeout_noter(executed)
    # a question of the student's own must fail at once, as it does in every other cell
    client.kernel.allow_stdin = not client.told and (grade_id(cell) or "").startswith("test_")
    manager = client.km
    cell_begins(manager)
    try:
        await client.async_execute_cell(cell, index)
        if limit := await why_it_was_interrupted(manager):
            executed.notes[index] = f"{limit} and was interrupted"
        if index in executed.notes and not await client.answers():
            return f"{_place(cell)} ran too long and did not stop when it was interrupted"
    except DeadKernelError:
        what = why_it_died(manager) or "the code ended the process, or it used up the memory"
        return f"The kernel died in {_place(cell, first=False)}: {what}"
    return ""


def _place(cell: NotebookNode, first: bool = True) -> str:
    line = cell.source.strip().splitlines()[0][:60]
    return f"{'The' if first else 'the'} cell that begins {line!r}"


def _timeout_noter(executed: Executed) -> Any:
    def note(cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        if execute_reply["content"].get("ename") == TIMED_OUT:
            executed.notes[cell_index] = "took too long and was interrupted"

    return note
