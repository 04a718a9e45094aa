"""Read a submitted file, whatever it is, as a notebook of which only the cells' text counts."""

import json
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.grading.limits import LIMITS
from autograde.grading.record import Record
from autograde.grading.submission import Problem, Submission
from autograde.values.text import well_formed

NBGRADER = ("grade_id", "checksum")
"""Only this is read of nbgrader's metadata: the lesson knows the rest."""

WANTED = "What counts is the lesson's .ipynb file, as Jupyter saves it."


class _NoNotebook(Exception):
    """The file is JSON, but no notebook."""


def parse_submission(submission: Submission) -> Record:
    """Parse the notebook of a submission."""
    record = Record(problem=submission.problem)
    if not submission.problem:
        record = parse(submission.files[f"{submission.place.lesson.notebook}.ipynb"])
    if submission.remark:
        record.remarks.insert(0, submission.remark)
    return record


def parse(content: bytes, *, whole: bool = False) -> Record:
    """Parse a notebook file; an unreadable one gives an empty notebook and the problem.

    Only a cell's kind, its text, and which cell of the lesson it was are read. Nothing else in a
    file takes part in grading, so nothing else can do harm.

    Args:
        whole: keep all that is in the file, for the student's own copy.
    """
    if len(content) > LIMITS.file_bytes:
        return Record(problem=too_large(len(content)))
    if not content:
        return Record(problem=Problem("the file is empty", f"The file is empty. {WANTED}"))
    try:
        plain = json.loads(content)  # UTF-8, or UTF-16 as PowerShell saves it
    except (ValueError, RecursionError) as error:
        words = f"The file is not JSON, so it is not a notebook: {error}. {WANTED}"
        return Record(problem=Problem("the file is not JSON", words))
    try:
        cells = _cells(plain)
        return Record(_valid(plain)) if whole else _within_limits(cells)
    except _NoNotebook:
        words = f"The file is JSON, but not a notebook. {WANTED}"
        return Record(problem=Problem("the file is not a notebook", words))


def parse_file(path: Path, *, whole: bool = False) -> Record:
    """Parse a notebook from its place on disk."""
    if not path.is_file() or path.is_symlink():
        words = "The notebook was not handed in."
        return Record(problem=Problem("no notebook was handed in", words))
    if (size := path.stat().st_size) > LIMITS.file_bytes:
        return Record(problem=too_large(size))
    try:
        return parse(path.read_bytes(), whole=whole)
    except OSError as error:
        return Record(problem=Problem("the file cannot be read", str(error)))


def too_large(size: int) -> Problem:
    """Return the problem with a notebook of this many bytes."""
    most = LIMITS.file_bytes / 1e6
    words = (
        f"The file has {size / 1e6:.1f} MB, more than the {most:.0f} MB allowed. "
        "Clear all outputs, save, and submit it again."
    )
    return Problem("the file is too large", words)


def _valid(content: object) -> NotebookNode:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbformat warns of what it repairs
            nb = nbformat.v4.reads(json.dumps(content))  # an older one would lose its text
            _, nb = nbformat.validator.normalize(nb, relax_add_props=True)
            nbformat.validate(nb, relax_add_props=True)
    except Exception as error:  # nbformat raises many kinds, also KeyError and AttributeError
        raise _NoNotebook from error
    for cell in nb.cells:
        cell.source = _with_newlines(cell.source)
    return NotebookNode(nb)


def _cells(content: object) -> list[object]:
    """Return the cells of a notebook; programs have written version 4 since 2015."""
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise _NoNotebook
    return cells


def _cell(cell: object) -> NotebookNode:
    """Return a cell with only its kind, text and id, and which of the lesson's cells it was."""
    if not isinstance(cell, dict):
        raise _NoNotebook
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _NoNotebook
    cell_type = cell.get("cell_type")
    read = {
        "cell_type": cell_type if cell_type in ("code", "raw") else "markdown",
        "metadata": _metadata(cell.get("metadata")),
        "source": _with_newlines(well_formed(source)),
    }
    if isinstance(cell.get("id"), str):
        read["id"] = cell["id"]
    if cell_type == "code":
        read |= {"outputs": [], "execution_count": None}
    return NotebookNode(nbformat.from_dict(read))


def _with_newlines(source: str) -> str:
    """Return a cell's text with lines ended as the lesson's are; Windows and old Macs differ."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _metadata(given: object) -> dict[str, Any]:
    """Return a cell's name and checksum."""
    about = given.get("nbgrader") if isinstance(given, dict) else None
    if not isinstance(about, dict) or not isinstance(about.get("grade_id"), str):
        return {}
    read = {key: well_formed(about[key]) for key in NBGRADER if isinstance(about.get(key), str)}
    return {"nbgrader": read}


def _name(cell: object) -> str:
    """Return the name that a cell carries, read or not, or ""."""
    metadata = _metadata(cell.get("metadata") if isinstance(cell, dict) else None)
    return str(metadata.get("nbgrader", {}).get("grade_id", ""))


def _within_limits(given: list[object]) -> Record:
    """Read the cells that there is room for, the lesson's own first.

    No other cell is read: two bytes of JSON would become a kilobyte.
    """
    seen = given[: LIMITS.cells_seen]
    last = {name: number for number, cell in enumerate(seen) if (name := _name(cell))}
    own = set(last.values())
    others = islice((n for n in range(len(seen)) if n not in own), LIMITS.cells)
    kept = [*sorted(own), *others][: LIMITS.cells]
    cells = {number: _cell(given[number]) for number in kept}
    chars, text_chars = LIMITS.source_chars, LIMITS.text_chars
    remarks = {}  # each once, in order
    for number in kept:
        cell = cells[number]
        if cell.cell_type != "code":
            room = max(0, min(LIMITS.text_cell_chars, text_chars, chars))
            if len(cell.source) > room:
                cell.source = f"{cell.source[:room]}\n\n[cut off]"
                remarks["A long text was cut off."] = True
            text_chars -= len(cell.source)
        elif len(cell.source) > chars:
            cell.source = f"# {len(cell.source)} characters of code are too many; not run"
            remarks["A cell with too much code was not run."] = True
        chars -= len(cell.source)
    if left := len(given) - len(kept):
        remarks[f"The notebook has {len(given)} cells; {left} were left out."] = True
    record = Record(remarks=list(remarks))
    record.nb.cells = [cells[number] for number in sorted(kept)]
    return record
