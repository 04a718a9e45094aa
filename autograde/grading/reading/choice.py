"""Choose the notebook of a submission: the files' content decides, then their names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from nbformat import NotebookNode

from autograde.course.lessons import exercise_of, named_cells
from autograde.course.versions import checksums
from autograde.grading.reading.parse import parse
from autograde.words import named, quoted

LAST_NUMBER = re.compile(r"(\d+)\D*$")
REASONS = ("it is from this lesson", "it has the most answers", "it has something of the student's")
LATER, BY_NAME = "the number in its name is the highest", "it has the name of the lesson's"


def is_notebook(name: str, content: bytes) -> bool:
    """Return whether a file is a notebook: it says so itself, or its name does."""
    text = content.replace(b"\0", b"") if b"\0" in content[:4] else content  # UTF-16
    inside = text.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"{") and all(
        word in text for word in (b'"nbformat"', b'"cells"')
    )
    return inside or name.lower().endswith(".ipynb")


def choose(
    files: Mapping[str, bytes], right: str, handed_out: Sequence[NotebookNode]
) -> tuple[str, str] | None:
    """Choose among the notebooks of a submission; return a name, and a sentence on the others.

    The sentence is empty if there are no others. Return None if it cannot be told.

    A notebook made from this lesson comes before others, then the one with the most answers, then
    the one with the highest number, as in "mask-Copy2.ipynb" or "mask (1).ipynb".

    Args:
        files: notebooks by name.
        right: the name that the lesson's notebook has.
        handed_out: the notebook that students got, in each version.
    """
    if len(set(files.values())) == 1:
        return (right if right in files else min(files)), ""
    facts = {name: _facts(content, handed_out) for name, content in files.items()}
    if not any(kin for kin, *_ in facts.values()):
        return (right, _said(right, files, BY_NAME)) if right in files else None

    def order(name: str) -> tuple[int, ...]:
        return *facts[name], _number(name, right), int(name == right), -name.count("/")

    *_, second, best = sorted(sorted(files), key=order)
    pairs = zip(order(best), order(second), (*REASONS, LATER), strict=False)
    why = next((reason for one, other, reason in pairs if one != other), BY_NAME)
    return best, _said(best, files, why)


def _facts(content: bytes, handed_out: Iterable[NotebookNode]) -> tuple[int, int, int]:
    """Return how sure a notebook is from this lesson, its answers, whether it has anything new."""
    record = parse(content)
    if record.problem:
        return 0, 0, 0
    nb, found = record.nb, (0, 0, 0)
    mine, cells = checksums(nb), named_cells(nb)
    texts = {cell.source.strip() for cell in nb.cells} - {""}
    for original in handed_out:
        theirs, given = checksums(original), named_cells(original)
        lost = any(exercise_of(c) and c.source.strip() in texts for c in original.cells)
        kin = 2 if mine.items() & theirs.items() else int(bool(mine.keys() & theirs.keys()) or lost)
        new = texts - {cell.source.strip() for cell in original.cells}
        answers = sum(
            name in cells and cells[name].source.strip() in new
            for name, cell in given.items()
            if cell.metadata["nbgrader"].get("solution")
        )
        found = max(found, (kin, answers if cells else len(new), int(bool(new))))
    return found if found[0] else (0, 0, 0)


def _number(name: str, right: str) -> int:
    """Return the last number that was added to a notebook's name."""
    stem = PurePosixPath(name).name.partition(".")[0]
    found = LAST_NUMBER.search(stem.removeprefix(right.removesuffix(".ipynb")))
    return int(found[1][:9]) if found else 0


def _said(best: str, files: Mapping[str, bytes], why: str) -> str:
    others = [name for name in sorted(files) if files[name] != files[best]]
    return f"{quoted(best)} was graded, because {why}; not graded: {named(others)}."
