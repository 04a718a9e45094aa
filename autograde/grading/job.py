"""One submission to run, as plain data: the coordinator makes it, any worker anywhere runs it."""

import gzip
import hashlib
import json
import time
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde import __version__
from autograde.course import CourseError, grade_id
from autograde.grading.execute import execute
from autograde.grading.limits import Limits
from autograde.sandbox.wall import missing

TIMESTAMP = "timestamp.txt"
"""Where nbgrader keeps when something was handed in."""


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
    version: str = __version__

    @property
    def key(self) -> str:
        """A digest of all that decides what comes out."""
        facts = [self.cells, self.seed, self.wall, self.figures, asdict(self.limits), self.version]
        parts = [json.dumps(facts).encode()]
        for name, content in self.files:
            parts += [json.dumps(name).encode(), hashlib.sha256(content).digest()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True)
class Result:
    """What came of a job: outputs for each code cell; `problem` ended it early; notes by cell."""

    cells: list[dict[str, Any]]
    problem: str
    notes: dict[int, str]
    seconds: float

    def to_bytes(self) -> bytes:
        return gzip.compress(json.dumps(asdict(self)).encode(), compresslevel=1, mtime=0)

    @classmethod
    def readable(cls, data: bytes) -> "Result | None":
        """The result that `to_bytes` made bytes of; None if they were cut short or changed."""
        try:
            return cls.from_bytes(data)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
            return None

    @classmethod
    def from_bytes(cls, data: bytes) -> "Result":
        """The result that `to_bytes` made bytes of just now."""
        plain = json.loads(gzip.decompress(data))
        notes = {int(number): text for number, text in plain.pop("notes").items()}
        return cls(notes=notes, **plain)


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def make_job(
    nb: NotebookNode,
    files: dict[str, bytes],
    seed: int,
    *,
    wall: bool,
    figures: Iterable[str] = (),
) -> Job:
    """The job of a restored submission, without the files that no code of a lesson reads."""
    cells = tuple((grade_id(cell) or "", cell.source) for cell in code_cells(nb))
    beside = (
        (name, files[name])
        for name in sorted(files)
        if not name.endswith(".ipynb") and name != TIMESTAMP
    )
    return Job(cells, tuple(beside), seed, wall, tuple(sorted(figures)))


def run_job(job: Job) -> bytes:
    """Run a job in a kernel and folder of its own; the bytes of its result.

    Raises:
        CourseError: this worker cannot run it as the coordinator wants it run.
    """
    require_same(job.version, job.wall)
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
    return Result(
        cells=[
            {"outputs": cell.outputs, "execution_count": cell.execution_count}
            for cell in executed.nb.cells
        ],
        problem=executed.problem,
        notes=executed.notes,
        seconds=round(time.monotonic() - began, 3),
    ).to_bytes()


def require_same(version: str, wall: bool) -> None:
    """Raises CourseError when this process would run jobs by other rules than the coordinator."""
    if version != __version__:
        raise CourseError(
            f"this worker has version {__version__} of attention-notebooks, the coordinator "
            f"{version}; give all of them the same"
        )
    if wall and (problem := missing()):
        raise CourseError(f"this worker has no wall: {problem}")


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


def put_result(nb: NotebookNode, result: Result, note: dict[str, Any]) -> None:
    """Put a result's outputs into the notebook that the job was made of, its words into the note.

    Raises:
        ValueError: the result is of another notebook.
    """
    cells = code_cells(nb)
    for cell, ran in zip(cells, result.cells, strict=True):
        cell.outputs = [NotebookNode(nbformat.from_dict(output)) for output in ran["outputs"]]
        cell.execution_count = ran["execution_count"]
    note["problem"] = result.problem
    for number, text in result.notes.items():
        if name := grade_id(cells[number]):
            note["notes"].setdefault(name, []).append(text)
