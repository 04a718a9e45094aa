"""Run a submitted notebook: cells in order, within limits, whatever the code in them does."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from autograde.course import CourseError, grade_id
from autograde.grading.limits import Limits
from autograde.grading.notebook_client import TIMED_OUT, GradingClient
from autograde.sandbox.private import (
    cell_begins,
    open_manager,
    walled_manager,
    why_it_died,
    why_it_was_interrupted,
)

BEGIN_CODE = (
    "from autograde.notebook.canvas import name_only; name_only({figures})\n"
    "from autograde.rubric.hand_over import begin_grading; begin_grading()"
)


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
