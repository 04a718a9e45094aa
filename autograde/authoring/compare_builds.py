"""A lesson built on two machines: the same when it reads, judges and recognises alike.

Processors differ in the last bits of what they compute, so neither those bits nor pixels are
compared. In the practice data, the outcomes of the one must be right by the other, and each known
mistake must be recognised.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course.lesson_files import read_built
from autograde.course.lessons import CourseError
from autograde.progress import PRACTICE_FILE
from autograde.rubric.judge import judge
from autograde.rubric.key import Key, Mistake, unpack_keys
from autograde.rubric.kinds import KINDS
from autograde.values.base import BadData

NOT_COMPARED = "nbval-ignore-output"
"""nbval's tag for a cell whose output may differ from machine to machine."""
NUMBERS = re.compile(r"[-+.\de]+")
"""Numbers are left out of the text of a call, which holds small inputs in full."""


def other_files(made: Path, committed: Path) -> Iterator[str]:
    """Yield in words how the files in one folder differ from those in another."""
    files = [path for folder in (made, committed) for path in folder.glob("*") if path.is_file()]
    for name in sorted({path.name for path in files}):
        new, old = made / name, committed / name
        if not old.is_file():
            yield f"{old}: missing"
        elif not new.is_file():
            yield f"{old}: should not be there"
        else:
            yield from (f"{old}: {change}" for change in _differing(new, old))


def keep_same(made: Path, committed: Path) -> None:
    """Put the committed file in place of each that was made and is the same, times included."""
    for old in committed.glob("*"):
        new = made / old.name
        if new.is_file() and old.is_file() and not any(_differing(new, old)):
            shutil.copy2(old, new)


def _differing(made: Path, committed: Path) -> Iterator[str]:
    if made.name == PRACTICE_FILE:
        yield from _practice(made, committed)
    elif made.suffix == ".ipynb":
        yield from _cells(made, committed)
    elif made.read_bytes() != committed.read_bytes():
        yield "other content"


def _cells(made: Path, committed: Path) -> Iterator[str]:
    try:
        new, old = map(read_built, (made, committed))
    except CourseError:
        yield "cannot be read"
        return
    if [cell.id for cell in new.cells] != [cell.id for cell in old.cells]:
        yield "other cells"
    elif new.metadata != old.metadata:
        yield "other notebook metadata"
    else:
        pairs = zip(new.cells, old.cells, strict=True)
        yield from (f"cell {a.id} differs" for a, b in pairs if _compared(a) != _compared(b))


def _compared(cell: NotebookNode) -> NotebookNode:
    """Return the parts of a cell that are the same on every machine.

    Outputs that nbval ignores may differ in any part, so they are left out. A picture's metadata
    says which code drew it.
    """
    cell = nbformat.from_dict(cell)
    if NOT_COMPARED in cell.metadata.get("tags", []):
        cell.outputs = []
    for output in cell.get("outputs", []):
        for mime in output.get("data", {}):
            if mime.startswith("image/"):
                output["data"][mime] = "picture"
    return cell


def _practice(made: Path, committed: Path) -> Iterator[str]:
    try:
        new, old = (unpack_keys(path.read_bytes()) for path in (made, committed))
    except BadData as error:
        yield str(error)
        return
    if list(new) != list(old):
        yield "practice data of other exercises"
        return
    for name in new:
        yield from _key(new[name], old[name])


def _key(new: Key, old: Key) -> Iterator[str]:
    if _frame(new) != _frame(old):
        yield f"other lines, points, hints or mistakes of {new.exercise}"
        return
    if _calls(new) != _calls(old):
        yield f"other texts of calls of {new.exercise}"
        return
    judged = judge(new.expected, old, trusted=True)
    if not judged.judged:
        yield f"other inputs of {new.exercise}: {judged.note}"
        return
    for line, verdict in zip(new.expected.lines, judged.lines, strict=True):
        # a key leaves out what is checked rather than compared
        if KINDS[line.kind].tolerance is None and not verdict.passed:
            yield f"other inputs or another outcome of “{line.name}” of {new.exercise}"
    for mistake, known in zip(new.mistakes, old.mistakes, strict=True):
        if not _alike(mistake, known, new):
            yield f"the mistake {mistake.name} of {new.exercise} would not be recognised"


def _frame(key: Key) -> Key:
    """Return the part of a key that is words and structure: the same on every machine."""
    lines = tuple(replace(line, cases=()) for line in key.expected.lines)
    mistakes = tuple(replace(m, failed=dict.fromkeys(m.failed, ())) for m in key.mistakes)
    return replace(key, expected=replace(key.expected, lines=lines), mistakes=mistakes)


def _calls(key: Key) -> list[str]:
    cases = (case for line in key.expected.lines for case in line.cases)
    return [NUMBERS.sub("", case.call) for case in cases]


def _alike(mistake: Mistake, known: Mistake, key: Key) -> bool:
    return all(
        KINDS[key.expected.lines[i].kind].alike(got, wanted, key.tolerances[i])
        for i in mistake.failed
        for got, wanted in zip(mistake.failed[i], known.failed[i], strict=True)
    )
