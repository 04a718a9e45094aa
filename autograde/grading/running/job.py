"""A notebook to run and what came of it, as plain data: what both are made from, and put into."""

import gzip
import hashlib
import json
import zlib
from dataclasses import asdict, dataclass, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course import code_cells, grade_id
from autograde.grader import grader_of
from autograde.grading.limits import LIMITS, Limits
from autograde.grading.record import Record
from autograde.grading.submission import Problem, beside
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.text import digest

BEGIN_CODE = (
    "import os; os.environ['NBGRADER_EXECUTION'] = 'autograde'\n"
    "from autograde.notebook import unsolved, watch; watch(unsolved)\n"
    "from autograde.rubric.session import begin_grading; begin_grading({package!r})\n"
    "from autograde.values.loaded import compute_on_one_thread as one; one()\n"
    "get_ipython().ask_exit = lambda: None"  # `exit` would end the kernel some cells later
)
AGAIN_CODE = "__import__('autograde.rubric.session').rubric.session.again({!r})"  # binds no name


@dataclass(frozen=True)
class Job:
    """The code cells of a restored submission, each with its grade_id, and the files beside it.

    A cell that is not run has no code. The seed is the practice seed until it is replaced.
    `package` is the course's.
    """

    cells: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, bytes], ...]
    wall: bool
    package: str = ""
    seed: int = PRACTICE_SEED
    limits: Limits = LIMITS

    @property
    def begin_code(self) -> str:
        """The code that the kernel runs before the first cell."""
        return BEGIN_CODE.format(package=self.package)

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
        sent = [self.begin_code, AGAIN_CODE]
        facts = [
            self.seen,
            sent,
            self.seed,
            self.wall,
            asdict(self.limits),
            grader_of(self.package).runs,
        ]
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


def make_job(
    nb: NotebookNode, files: dict[str, bytes], *, wall: bool, package: str, left_out: set[str]
) -> Job:
    """Return the job of a restored submission, without the files that no code of a lesson reads.

    Args:
        left_out: ids of the cells that are not run.
    """
    cells = tuple(
        (grade_id(cell) or "", "" if cell.id in left_out else cell.source)
        for cell in code_cells(nb)
    )
    return Job(cells, tuple(beside(files).items()), wall, package)


def put_outputs(record: Record, ran: Ran) -> Record:
    """Put a job's outputs into the notebook it was made from, its problem and notes beside it.

    Raises:
        ValueError: the job was made from another notebook.
    """
    cells = code_cells(record.nb)
    for cell, done in zip(cells, ran.cells, strict=True):
        cell.outputs = nbformat.from_dict(done["outputs"])
        cell.execution_count = done["execution_count"]
    for number, text in ran.notes.items():
        if name := grade_id(cells[number]):
            record.note(name, text)
    return replace(record, problem=ran.problem)
