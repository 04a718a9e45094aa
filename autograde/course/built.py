"""Tell whether a lesson was changed since its notebooks were built, and whether they were.

A build writes digests into each notebook. The grader's files count in none: a new grader judges
again what was handed in, and needs no build for it. A course's package counts where students get
practice data; `grade` runs again what was handed in, with the package of today.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from autograde.course.data_files import VARIANTS, data_files
from autograde.course.lesson_files import text_of
from autograde.course.lessons import MINUTES, Lesson
from autograde.course.package import NAMED
from autograde.files import without_returns
from autograde.grader import digest_of
from autograde.progress import PRACTICE_FILE
from autograde.values.text import digest

if TYPE_CHECKING:  # slow to import
    from nbformat import NotebookNode

BUILT = "built"
"""In the metadata of a built notebook: digests of what it was made from, and with, and as what."""
OF_A_CELL = ("nbgrader", "tags", "deletable", "editable")


def note(nb: "NotebookNode", lesson: Lesson, text: str, practice: bytes) -> None:
    """Write into a notebook that was just built what it was made from, and what was made."""
    nb.metadata[BUILT] = {
        "from": made_from(lesson, text),
        "with": digest_of(lesson.package),
        "as": _made(nb, practice),
    }


def source_changed(lesson: Lesson, nb: "NotebookNode") -> str:
    """Return in words whether a lesson was changed since this notebook was built; "" if not.

    Points, text, variants, tolerances and data files count; what is withdrawn does not.
    """
    if nb.metadata.get(BUILT, {}).get("from") == made_from(lesson, text_of(lesson)):
        return ""
    return f"{lesson.name} was changed since it was built"


def changed_since(lesson: Lesson, path: Path, nb: "NotebookNode") -> str:
    """Return in words whether a lesson, its package, or what was built of it was changed."""
    if changed := source_changed(lesson, nb):
        return changed
    if nb.metadata[BUILT]["with"] != digest_of(lesson.package):
        return f"{lesson.name} was not built since {lesson.package} was changed"
    practice = path.with_name(PRACTICE_FILE)
    if nb.metadata[BUILT]["as"] == _made(nb, practice.read_bytes() if practice.is_file() else b""):
        return ""
    return f"{path.parent} was changed since it was built"


def made_from(lesson: Lesson, text: str) -> str:
    """Return a digest of all of a lesson's own that a build takes, with this text."""
    variants = sorted((lesson.folder / VARIANTS).glob("*.md"), key=Path.as_posix)
    files = [lesson.tolerance_file, *variants, *data_files(lesson).values()]
    facts = [
        [lesson.notebook, lesson.package, lesson.graded_cells],
        [each.needs for each in lesson.exercises],
        text,
        [
            (path.relative_to(lesson.folder).as_posix(), sha256(without_returns(path)).hexdigest())
            for path in filter(Path.is_file, files)
        ],
    ]
    return digest(json.dumps(facts))


def _made(nb: "NotebookNode", practice: bytes) -> str:
    """Return a digest of a notebook's cells, with what they show, and of practice data.

    Of the metadata those count that decide what a student can do; JupyterLab adds its own.
    """
    cells = [
        [cell.cell_type, cell.source, cell.get("outputs", []), *map(cell.metadata.get, OF_A_CELL)]
        for cell in nb.cells
    ]
    about = [nb.metadata.get(name) for name in (MINUTES, NAMED)]
    return digest(json.dumps([cells, about, sha256(practice).hexdigest()], sort_keys=True))
