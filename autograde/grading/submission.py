"""Read a submitted file, whatever it is, and restore the cells that were not the student's."""

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course import grade_id

MAX_BYTES = 30_000_000
NOT_HANDED_IN = "not handed in"


@dataclass
class Submission:
    """A submission ready to run. `problem` says why it cannot be; `notes` are for each cell."""

    nb: NotebookNode
    problem: str = ""
    notes: dict[str, list[str]] = field(default_factory=dict)

    def note(self, cell: str, text: str) -> None:
        self.notes.setdefault(cell, []).append(text)


def read_submission(path: Path) -> Submission:
    """The notebook in a file, or an empty one and the problem in words."""
    if not path.is_file() or path.is_symlink():
        return Submission(nbformat.v4.new_notebook(), "The notebook was not handed in.")
    try:
        return parse_submission(path.read_bytes())
    except OSError as error:
        return Submission(nbformat.v4.new_notebook(), str(error))


def parse_submission(content: bytes) -> Submission:
    """The notebook that these bytes are, or an empty one and the problem in words."""
    try:
        return Submission(_parse(content))
    except _Unreadable as error:
        return Submission(nbformat.v4.new_notebook(), str(error))


def too_large(size: int) -> str:
    """What is said of a notebook of so many bytes."""
    return f"The file has {size} bytes, more than the {MAX_BYTES} allowed."


class _Unreadable(Exception):
    """Says what is wrong with the file."""


def _parse(data: bytes) -> NotebookNode:
    if not data:
        raise _Unreadable("The file is empty.")
    if len(data) > MAX_BYTES:
        raise _Unreadable(too_large(len(data)))
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"The file is not JSON, so it is no notebook: {error}") from error
    if isinstance(content, dict) and set(content) == {NOT_HANDED_IN}:
        raise _Unreadable(str(content[NOT_HANDED_IN]))
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise _Unreadable("The file is JSON, but not a notebook.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what can be put right in the file is put right
            nb = nbformat.convert(nbformat.reader.reads(json.dumps(content)), 4)
            _, nb = nbformat.validator.normalize(nb, relax_add_props=True)
            nbformat.validate(nb, relax_add_props=True)
    except Exception as error:  # nbformat raises many kinds, also KeyError and AttributeError
        raise _Unreadable(f"The file is no valid notebook: {_first_line(error)}") from error
    return NotebookNode(nb)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def restore(submission: Submission, released: NotebookNode) -> Submission:
    """Put back what the lesson owns: rubric cells, locked cells, names, kinds and points.

    The student's answers stay. What was changed is noted under the cell's grade_id.
    """
    nb = submission.nb
    nb.metadata = nbformat.from_dict(released.metadata)
    nb.nbformat, nb.nbformat_minor = 4, 5
    owned = {name: cell for cell in released.cells if (name := grade_id(cell))}
    _forget_outputs_and_claims(submission, set(owned))
    place = -1
    for name, original in owned.items():
        index = _index(nb, name)
        if index is None:
            if not submission.problem:
                submission.note(name, "the cell was deleted; it was put back")
            nb.cells.insert(place + 1, _replacement(original))
            place += 1
            continue
        _restore_cell(submission, nb.cells[index], original)
        place = index
    for number, cell in enumerate(nb.cells):
        cell["id"] = grade_id(cell) or f"cell-{number}"
    return submission


def _forget_outputs_and_claims(submission: Submission, owned: set[str]) -> None:
    """Clear outputs, and the names of cells that are not the lesson's or stand twice."""
    seen: set[str] = set()
    for cell in reversed(submission.nb.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        name = grade_id(cell)
        if name is None:
            cell.metadata.pop("nbgrader", None)
        elif name not in owned or name in seen:
            if name in seen:
                submission.note(name, "the cell stands there twice; the last one counts")
            del cell.metadata["nbgrader"]
        else:
            seen.add(name)


def _index(nb: NotebookNode, name: str) -> int | None:
    return next((i for i, cell in enumerate(nb.cells) if grade_id(cell) == name), None)


def _is_students(original: NotebookNode) -> bool:
    return bool(original.metadata["nbgrader"].get("solution"))


def _replacement(original: NotebookNode) -> NotebookNode:
    """A deleted cell, to be put back; a deleted answer comes back empty.

    The answer may stand in another cell, and the stub would overwrite it.
    """
    cell = NotebookNode(nbformat.from_dict(original))
    if _is_students(original):
        cell.source = ""
    return cell


def _restore_cell(submission: Submission, cell: NotebookNode, original: NotebookNode) -> None:
    name = grade_id(original) or ""
    if cell.cell_type != original.cell_type:
        submission.note(
            name,
            f"the cell had become {cell.cell_type}; it was turned back into {original.cell_type}",
        )
        source = cell.source
        cell.clear()
        cell.update(nbformat.from_dict(original))
        cell.source = source
    cell.metadata = nbformat.from_dict(original.metadata)
    if not _is_students(original) and cell.source != original.source:
        submission.note(name, "the cell was changed; the original was put back")
        cell.source = original.source
