"""Note in a lesson which of its cells take long, so that the first run shows what is left, too."""

import time
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

SECONDS = "seconds"
"""In a cell's metadata: about how long the reference's run took, if it was long."""
STEPS = (2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 400)
"""A run is rounded up to one of these: another build, or another machine, hardly differs."""


class Stopwatch:
    """Hooks of nbclient that note in each cell how long it took, if it took long."""

    def __init__(self) -> None:
        self._began = 0.0

    def begin(self, cell: NotebookNode, cell_index: int) -> None:
        self._began = time.monotonic()

    def end(self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        took = time.monotonic() - self._began
        if took >= STEPS[0]:
            cell.metadata[SECONDS] = next((step for step in STEPS if step >= took), STEPS[-1])


def hand_on(executed: Path, student: Path) -> None:
    """Write the seconds of an executed notebook's cells into the student version."""
    solution, nb = (NotebookNode(nbformat.read(path, as_version=4)) for path in (executed, student))
    seconds = {cell.id: cell.metadata.get(SECONDS) for cell in solution.cells}
    for cell in nb.cells:
        cell.metadata.pop(SECONDS, None)
        if seconds.get(cell.id):
            cell.metadata[SECONDS] = seconds[cell.id]
    nbformat.write(nb, student)
