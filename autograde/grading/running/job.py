"""A notebook to run and what came of it, as plain data: what both are made from, and put into.

Graded cells are run, the student's, and what these need.
"""

import gzip
import hashlib
import hmac
import json
import re
import zlib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course.cells import code_cells, grade_id
from autograde.course.versions import Version, notebook_of
from autograde.grader import grader_of
from autograde.grading.limits import LIMITS, Limits
from autograde.grading.record import Record
from autograde.grading.submission import ADDRESS, Problem, Task
from autograde.rubric.names import UNREADABLE, Names, read_names
from autograde.rubric.session import PRACTICE_SEED
from autograde.values.packing import from_plain
from autograde.values.text import digest

BEGIN_CODE = (
    "import os; os.environ['NBGRADER_EXECUTION'] = 'autograde'\n"
    "from autograde.notebook import watch; watch()\n"
    "from autograde.rubric.session import begin_grading; begin_grading({package!r})\n"
    "from autograde.values.loaded_torch import compute_on_one_thread as one; one()\n"
    "get_ipython().ask_exit = lambda: None"  # `exit` would end the kernel some cells later
)
AGAIN_CODE = "__import__('autograde.rubric.session').rubric.session.use_practice_seed()"
"""The code that the kernel runs before a rubric's second recording; it binds no name."""

LOOK_UP = {"eval", "exec", "globals", "locals", "vars", "get_ipython", "builtins", "_", "In", "Out"}
UNSPELLED = re.compile(r"__(import|main|builtins|globals)__|f_globals|sys\.modules|import \*")
"""Code with one of these may use or bind a name that it does not spell."""
BEYOND_PYTHON = re.compile(r"[%!?]|>>>|In \[|\bawait\b|\basync\b|\A\s|^[ \t]*[,;/]", re.MULTILINE)
"""IPython may run text with one of these that Python cannot read."""


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
        grader = grader_of(self.package)
        facts = [self.seen, sent, self.seed, self.wall, asdict(self.limits), grader]
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
            return from_plain(cls, json.loads(gzip.decompress(data)))
        except (OSError, EOFError, ValueError, zlib.error):
            return None


def job_of(record: Record, version: Version, task: Task) -> tuple[Record, Job]:
    """Return the job of a restored notebook, and note which cells are left out of it.

    Those are the lesson's own cells that no graded or student's cell needs. Files that no code of
    a lesson reads are left out as well. The course's secret decides the seed with the job; without
    it that of practice is used.
    """
    lesson, files = version.lesson, task.submission.files
    left_out = not_needed(record.nb, notebook_of(version))
    cells = tuple(
        (grade_id(cell) or "", "" if cell.id in left_out else cell.source)
        for cell in code_cells(record.nb)
    )
    names = (n for n in sorted(files) if not n.endswith(".ipynb") and n not in ADDRESS)
    job = Job(
        cells,
        tuple((name, files[name]) for name in names),
        task.wall,
        lesson.package,
        limits=LIMITS.with_memory(lesson.memory_gb),
    )
    if task.secret:
        job = replace(job, seed=seed_of(task.secret, lesson.name, job.seen))
    return replace(record, left_out=frozenset(() if record.problem else left_out)), job


def not_needed(nb: NotebookNode, released: NotebookNode) -> set[str]:
    """Return the ids of the lesson's own code cells that no graded or student's cell needs.

    They are experiments and figures, which only show things to students. Running them again would
    take more than half of the grading time.

    If an answer or a rubric uses a name that an own cell binds, every cell is needed, so that no
    score depends on this choice. A cell that the student added needs the cells that bind the names
    it uses, but not those that only change their values.
    """
    own: dict[str, Names] = {}
    wanted, graded, found = frozenset[str](), frozenset[str](), set[str]()
    left = Counter(cell.source.strip() for cell in code_cells(released) if not grade_id(cell))
    for cell in code_cells(nb):
        names, text = _names(cell.source), cell.source.strip()
        if names is None:
            return set()
        if grade_id(cell):
            graded |= names.used
        elif left[text]:
            left[text] -= 1
            own[cell.id] = names
        else:
            wanted |= names.used
    if any(names.bound & graded for names in own.values()):
        return set()
    while more := {each for each in own.keys() - found if own[each].bound & wanted}:
        found |= more
        wanted = wanted.union(*(own[each].used for each in more))
    return own.keys() - found


def _names(source: str) -> Names | None:
    """Return a cell's names, none of a cell that only raises a SyntaxError.

    Return None if they cannot be determined from its text.
    """
    if UNSPELLED.search(source):
        return None
    try:
        names = read_names(source)
    except UNREADABLE as error:
        unknown = not isinstance(error, SyntaxError) or BEYOND_PYTHON.search(source)
        return None if unknown else Names()
    return None if names.used & LOOK_UP else names


def seed_of(secret: bytes, lesson: str, seen: str) -> int:
    """Return a submission's seed, which depends on all that its kernel sees.

    Two submissions that could behave differently never share one: the second could bring the
    expected numbers that the feedback page of the first showed.
    """
    text = json.dumps([lesson, seen]).encode()
    return int.from_bytes(hmac.digest(secret, text, hashlib.sha256)[:7], "big")


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
