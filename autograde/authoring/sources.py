"""Lesson text as notebooks: cell ids that repeat, and the copy that nbgrader reads."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.authoring.points import with_points
from autograde.course import CourseError, Lesson, find_root, grade_id, lessons, parse_text, text_of

MADE_FROM = "made_from"
"""In the metadata of a notebook written here: digests of the lesson's text and of what it says."""

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def identify(nb: NotebookNode) -> NotebookNode:
    """Give every cell an id that depends on its name or text alone, and plain metadata.

    A named cell keeps its grade_id; another takes a digest of its text, numbered if it repeats.
    """
    seen: Counter[str] = Counter()
    for cell in nb.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        name = grade_id(cell) or digest
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
        cell.metadata.pop("jupytext", None)
    nb.metadata = NotebookNode(kernelspec=KERNELSPEC, language_info={"name": "python"})
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def source_notebook(lesson: Lesson) -> NotebookNode:
    """Return the lesson's text as a notebook with repeatable ids and the curriculum's points.

    Raises:
        CourseError: there is no text.
    """
    return identify(parse_text(with_points(lesson, text_of(lesson))))


def sync(lesson: Lesson) -> None:
    """Write the lesson's text as the notebook that nbgrader looks for, where it is out of date.

    Raises:
        CourseError: there is no text, or the notebook has newer changes that the text lacks;
            nothing is overwritten.
    """
    path, text = lesson.source_notebook, with_points(lesson, text_of(lesson))
    made_from, there = _read(path)
    if made_from == [_digest(text.encode()), there]:
        return  # seen without parsing the text
    nb = identify(parse_text(text))
    written = _written(nb)
    changed = there not in ("", written, *made_from)
    if changed and path.stat().st_mtime > lesson.text.stat().st_mtime:
        raise CourseError(
            f"{path} has changes that {lesson.text.name} lacks. Open the .py file as a "
            "notebook and make them there, then delete the .ipynb file."
        )
    nb.metadata[MADE_FROM] = [_digest(text.encode()), written]
    path.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")


def _read(path: Path) -> tuple[list[str], str]:
    """Return what a notebook was made from, and a digest of what is written in it, or nothing."""
    try:
        plain = json.loads(path.read_bytes())
        return plain["metadata"].get(MADE_FROM, []), _written(plain)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return [], ""


def _written(nb: Any) -> str:
    """Return a digest of what an author writes in cells: kinds, texts, names, points and tags."""
    cells = [
        (
            cell["cell_type"],
            "".join(cell["source"]),
            cell["metadata"].get("nbgrader"),
            cell["metadata"].get("tags"),
        )
        for cell in nb["cells"]
    ]
    return _digest(json.dumps(cells, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    for each in lessons(find_root(Path.cwd())).values():
        sync(each)
