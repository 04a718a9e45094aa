"""Lesson text as notebooks: cell ids that repeat, and the copy that nbgrader reads."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.course import CourseError, Lesson, grade_id, lessons, read_text

MADE_FROM = "made_from"
"""In the metadata of a notebook written here: digests of the lesson's text and of its own cells."""

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
    """Return the lesson's text as a notebook with repeatable ids."""
    return identify(read_text(lesson))


def _written(nb: NotebookNode) -> list[tuple[object, ...]]:
    """Return what an author writes in a notebook: kinds, texts, names, points and tags."""
    return [
        (cell.cell_type, cell.source, cell.metadata.get("nbgrader"), cell.metadata.get("tags"))
        for cell in nb.cells
    ]


def sync(root: Path) -> None:
    """Write each lesson's text as the notebook that nbgrader reads, where it is out of date.

    Raises:
        CourseError: the notebook has newer changes that the text lacks; nothing is overwritten.
    """
    for lesson in lessons(root).values():
        path, text = lesson.source_notebook, lesson.text.read_bytes()
        made_from, untouched = _origin(path)
        if untouched and made_from == _digest(text):
            continue  # seen without parsing the text, which takes a second for a course
        nb = source_notebook(lesson)
        if path.is_file() and not untouched:
            if _written(nbformat.read(path, as_version=4)) == _written(nb):
                continue
            if path.stat().st_mtime > lesson.text.stat().st_mtime:
                raise CourseError(
                    f"{path} has changes that {lesson.text.name} lacks. Open the .py file as a "
                    "notebook and make them there, then delete the .ipynb file."
                )
        nb.metadata[MADE_FROM] = [_digest(text), _of_cells(json.loads(nbformat.writes(nb)))]
        path.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")


def _origin(path: Path) -> tuple[str, bool]:
    """Return the digest of the text that a notebook was made from, and whether it is unchanged.

    A notebook without such a note has an empty digest, and may have been changed.
    """
    try:
        plain = json.loads(path.read_bytes())
        text, cells = plain["metadata"][MADE_FROM]
        return text, cells == _of_cells(plain)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return "", False


def _of_cells(plain: Any) -> str:
    return _digest(json.dumps(plain["cells"], sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
