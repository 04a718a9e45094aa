"""Read a submitted file, whatever it is, and restore the cells that were not the student's."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course import grade_id
from autograde.grading.limits import LIMITS
from autograde.rubric.text import well_formed

NBGRADER = ("grade_id", "checksum")
"""What is read of nbgrader's metadata: the lesson knows the rest."""


@dataclass
class Submission:
    """A submission ready to run. `problem` says why it cannot be; `notes` are for each cell.

    `remarks` say what was left out of the notebook as a whole.
    """

    nb: NotebookNode
    problem: str = ""
    notes: dict[str, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def note(self, cell: str, text: str) -> None:
        self.notes.setdefault(cell, []).append(text)


def not_readable(problem: str) -> Submission:
    """The submission of somebody whose notebook cannot be read, for the reason given."""
    return Submission(nbformat.v4.new_notebook(), problem)


def read_submission(path: Path) -> Submission:
    """The notebook in a file as it is graded, or an empty one and the problem in words."""
    return _read(path, parse_submission)


def read_whole(path: Path) -> Submission:
    """The same with all that is in the file: for the student's own copy."""
    return _read(path, parse_whole)


def _read(path: Path, parse: Callable[[bytes], Submission]) -> Submission:
    if not path.is_file() or path.is_symlink():
        return not_readable("The notebook was not handed in.")
    if (size := path.stat().st_size) > LIMITS.file_bytes:
        return not_readable(too_large(size))
    try:
        return parse(path.read_bytes())
    except OSError as error:
        return not_readable(str(error))


def parse_submission(content: bytes) -> Submission:
    """The notebook that these bytes are, as it is graded, or an empty one and the problem in words.

    Of a cell only its kind and text are read, and which cell of the lesson it was: nothing else of
    a file takes part in grading, so nothing else in it can do harm.
    """
    try:
        return _within_limits(_cells(_content(content)))
    except _Unreadable as error:
        return not_readable(str(error))


def parse_whole(content: bytes) -> Submission:
    """The notebook that these bytes are, with all that is in it: for the student's own copy."""
    try:
        return Submission(_valid(_content(content)))
    except _Unreadable as error:
        return not_readable(str(error))


def too_large(size: int) -> str:
    """What is said of a notebook of so many bytes."""
    return f"The file has {size} bytes, more than the {LIMITS.file_bytes} allowed."


class _Unreadable(Exception):
    """Says what is wrong with the file."""


def _content(data: bytes) -> dict[str, Any]:
    if not data:
        raise _Unreadable("The file is empty.")
    if len(data) > LIMITS.file_bytes:
        raise _Unreadable(too_large(len(data)))
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"The file is not JSON, so it is no notebook: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise _Unreadable("The file is JSON, but not a notebook.")
    return content


def _valid(content: dict[str, Any]) -> NotebookNode:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what can be put right in the file is put right
            nb = nbformat.convert(nbformat.reader.reads(json.dumps(content)), 4)
            _, nb = nbformat.validator.normalize(nb, relax_add_props=True)
            nbformat.validate(nb, relax_add_props=True)
    except Exception as error:  # nbformat raises many kinds, also KeyError and AttributeError
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _Unreadable(f"The file is no valid notebook: {first}") from error
    return NotebookNode(nb)


def _cells(content: dict[str, Any]) -> list[NotebookNode]:
    """The cells of a notebook of any version; before version 4 they lie on worksheets."""
    sheets = content.get("worksheets") if content["nbformat"] < 4 else [content]
    found = []
    for sheet in _list(sheets):
        for cell in _list(sheet.get("cells") if isinstance(sheet, dict) else None):
            if not isinstance(cell, dict):
                raise _Unreadable(f"The file is no valid notebook: a cell is {_kind_of(cell)}.")
            found.append(_cell(cell))
    return found


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _Unreadable("The file is no valid notebook: it has no list of cells.")
    return value


def _cell(cell: dict[str, Any]) -> NotebookNode:
    """A cell with nothing but its kind, its text, and what tells which of the lesson's it was."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _Unreadable(f"The file is no valid notebook: a cell's text is {_kind_of(source)}.")
    kind = cell.get("cell_type")
    read = {
        "cell_type": kind if kind in ("code", "raw") else "markdown",
        "metadata": _metadata(cell.get("metadata")),
        "source": well_formed(source),
    }
    if kind == "code":
        read |= {"outputs": [], "execution_count": None}
    return NotebookNode(nbformat.from_dict(read))


def _metadata(given: object) -> dict[str, Any]:
    """Its name and checksum, and that its code is folded."""
    read: dict[str, Any] = {}
    if not isinstance(given, dict):
        return read
    about, view = given.get("nbgrader"), given.get("jupyter")
    if isinstance(about, dict) and isinstance(about.get("grade_id"), str):
        read["nbgrader"] = {
            key: well_formed(about[key]) for key in NBGRADER if isinstance(about.get(key), str)
        }
    if isinstance(view, dict) and view.get("source_hidden") is True:
        read["jupyter"] = {"source_hidden": True}
    return read


def _kind_of(value: object) -> str:
    return f"of the kind {type(value).__name__}"


def _within_limits(cells: list[NotebookNode]) -> Submission:
    """A submission of the cells that there is room for, the lesson's own first."""
    submission = not_readable("")
    last = {name: number for number, cell in enumerate(cells) if (name := grade_id(cell))}
    own = set(last.values())
    order = sorted(range(len(cells)), key=lambda number: (number not in own, number))
    chars, text_chars, kept = LIMITS.source_chars, LIMITS.text_chars, []
    for number in order[: LIMITS.cells]:
        cell = cells[number]
        if cell.cell_type != "code":
            room = max(0, min(LIMITS.text_cell_chars, text_chars, chars))
            if len(cell.source) > room:
                cell.source = f"{cell.source[:room]}\n\n[cut off]"
                submission.remarks.append("A long text was cut off.")
            text_chars -= len(cell.source)
        elif len(cell.source) > chars:
            cell.source = f"# {len(cell.source)} characters of code are too many; not run"
            submission.remarks.append("A cell with very much code was not run.")
        chars -= len(cell.source)
        kept.append(number)
    if left := len(cells) - len(kept):
        submission.remarks.append(f"The notebook has {len(cells)} cells; {left} were left out.")
    submission.remarks = list(dict.fromkeys(submission.remarks))
    submission.nb.cells = [cells[number] for number in sorted(kept)]
    return submission


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
