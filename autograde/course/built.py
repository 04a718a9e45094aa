"""Whether a lesson is still what its notebooks were built from, and they are what was built.

A build writes digests into each notebook. The grader's files count in none: a new grader judges
again what was handed in, and needs no build for it. A course's package counts for a build alone, in
the notebook that it has run; `grade` runs again what was handed in, with the package of today.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from autograde.course.cells import grade_id
from autograde.course.data_files import VARIANTS, data_files
from autograde.course.lesson_files import text_of
from autograde.course.lessons import Lesson
from autograde.progress import PRACTICE_FILE
from autograde.values.text import digest

if TYPE_CHECKING:  # slow to import
    from nbformat import NotebookNode

BUILT = "built"
"""In the metadata of a built notebook: digests of what it was made from and of what was made."""
RAN_WITH = "ran_with"
"""In the metadata of a built solution: the digest of the course's package that ran in it."""


def note(nb: "NotebookNode", lesson: Lesson, text: str, practice: bytes) -> None:
    """Write into a notebook that was just built what it was made from, and what was made."""
    nb.metadata[BUILT] = {"from": made_from(lesson, text), "as": _made(nb, practice)}


def source_changed(lesson: Lesson, nb: "NotebookNode") -> str:
    """Return in words whether a lesson was changed since this notebook was built; "" if not.

    Points, text, variants, tolerances and data files count; what is withdrawn does not.
    """
    if nb.metadata.get(BUILT, {}).get("from") == made_from(lesson, text_of(lesson)):
        return ""
    return f"{lesson.name} was changed since it was built"


def changed_since(lesson: Lesson, path: Path, nb: "NotebookNode") -> str:
    """Return in words whether a lesson, or its built notebook or practice data, was changed."""
    practice = path.with_name(PRACTICE_FILE)
    content = practice.read_bytes() if practice.is_file() else b""
    if (changed := source_changed(lesson, nb)) or nb.metadata[BUILT]["as"] == _made(nb, content):
        return changed
    return f"{path.parent} was changed since it was built"


def made_from(lesson: Lesson, text: str) -> str:
    """Return a digest of all of a lesson's own that a build takes, with this text."""
    variants = sorted((lesson.folder / VARIANTS).glob("*.md"))
    files = [lesson.tolerance_file, *variants, *data_files(lesson).values()]
    facts = [
        [lesson.notebook, lesson.minutes, lesson.package, lesson.graded_cells],
        [each.needs for each in lesson.exercises],
        text,
        [
            (path.relative_to(lesson.folder).as_posix(), sha256(path.read_bytes()).hexdigest())
            for path in filter(Path.is_file, files)
        ],
    ]
    return digest(json.dumps(facts))


def _made(nb: "NotebookNode", practice: bytes) -> str:
    """Return a digest of a notebook's cells, with what they show, and of practice data."""
    cells = [
        (cell.cell_type, cell.source, grade_id(cell), cell.get("outputs", [])) for cell in nb.cells
    ]
    return digest(json.dumps([cells, sha256(practice).hexdigest()], sort_keys=True))
