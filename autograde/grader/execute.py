"""Run a submitted notebook: cells in order, within limits, whatever the code in them does."""

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from jupyter_client.asynchronous.client import AsyncKernelClient
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograde.course import grade_id
from autograde.kernels.private import kernel_manager
from autograde.verdict.recording import MIME

TIMED_OUT = "CellTimeoutError"
SEED_CODE = "from autograde.student.grading import begin_grading; begin_grading({seed})"


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Seconds are wall time."""

    cell_seconds: int = 30
    notebook_seconds: int = 300
    cell_output_bytes: int = 8_000_000


@dataclass
class Executed:
    """An executed notebook. `problem` ended the run early; `notes` are about single cells."""

    nb: NotebookNode
    problem: str = ""
    notes: dict[int, str] = field(default_factory=dict)


class _Client(NotebookClient):
    """A notebook client that keeps only so much output of each cell."""

    def __init__(self, nb: NotebookNode, limits: Limits, **options: Any) -> None:
        super().__init__(nb, **options)
        self._limits = limits
        self._bytes: dict[int, int] = {}
        self.flooded: set[int] = set()

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data"):
            size = self._bytes.get(cell_index, 0) + len(str(msg["content"]))
            self._bytes[cell_index] = size
            recording = MIME in msg["content"].get("data", {})
            if size > self._limits.cell_output_bytes and not recording:
                self.flooded.add(cell_index)
                return None
        return super().process_message(msg, cell, cell_index)


def execute(nb: NotebookNode, folder: Path, seed: int, limits: Limits | None = None) -> Executed:
    """Run every cell of a submission in a kernel of its own, with a copy of `folder` as its place.

    The seed is told to the kernel only when the first rubric cell is about to run.
    """
    return asyncio.run(_execute(nb, folder, seed, limits or Limits()))


async def _execute(nb: NotebookNode, folder: Path, seed: int, limits: Limits) -> Executed:
    executed = Executed(nb)
    with TemporaryDirectory(prefix="submission-") as scratch:
        place = Path(scratch, "work")
        shutil.copytree(folder, place, symlinks=True)
        client = _Client(
            nb,
            limits,
            km=kernel_manager(Path(scratch)),
            timeout=limits.cell_seconds,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": TIMED_OUT, "evalue": "", "traceback": []},
            allow_errors=True,
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(place)}},
        )
        try:
            async with client.async_setup_kernel(cleanup_kc=True):
                await _run_cells(client, executed, seed, limits)
        except (DeadKernelError, CellTimeoutError, RuntimeError) as error:
            executed.problem = executed.problem or f"The kernel could not be run: {error}"
    for index in client.flooded:
        executed.notes[index] = (
            f"printed more than {limits.cell_output_bytes // 10**6} MB; the rest was cut off"
        )
    return executed


async def _run_cells(client: _Client, executed: Executed, seed: int, limits: Limits) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.notebook_seconds
    told = False
    for index, cell in enumerate(executed.nb.cells):
        if cell.cell_type != "code":
            continue
        if loop.time() > end:
            executed.problem = (
                f"The notebook ran longer than {limits.notebook_seconds} s. "
                "The cells after that were not run."
            )
            return
        if not told and (grade_id(cell) or "").startswith("test_"):
            kernel = cast(AsyncKernelClient, client.kc)
            kernel.execute(SEED_CODE.format(seed=seed), silent=True, store_history=False)
            told = True
        client.on_cell_executed = _timeout_noter(executed)
        try:
            await client.async_execute_cell(cell, index)
        except DeadKernelError:
            executed.problem = (
                f"The kernel died in the cell that begins {_first_line(cell)!r}: the code "
                "ended the process, or it used up the memory. The cells after that were not run."
            )
            return


def _first_line(cell: NotebookNode) -> str:
    return str(cell.source.strip().splitlines()[0][:60])


def _timeout_noter(executed: Executed) -> Any:
    def note(cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        if execute_reply["content"].get("ename") == TIMED_OUT:
            executed.notes[cell_index] = "took too long and was interrupted"

    return note
