"""Which version of a lesson a submission was made from, and versions kept to grade it by.

nbgrader writes a checksum into each rubric cell when a lesson is built. Each build is kept under
`.autograde/released/LESSON/DIGEST`, by the checksums of its rubric cells: text, variants,
tolerances, curriculum, built notebook, and what the gradebook held of its cells. Of builds with the
same rubric the last one is kept.
"""

import json
import shutil
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograde.authoring import expected
from autograde.course import CURRICULUM, CourseError, Lesson, grade_id, lessons
from autograde.grading.saving import LessonCells, digest, read_cells
from autograde.grading.seeds import state_folder
from autograde.grading.words import named

CELLS = "cells.json"


@dataclass(frozen=True)
class Version:
    """A lesson as it was built once: `rules` are the checksums of its rubric cells."""

    lesson: Lesson
    released: NotebookNode
    cells: LessonCells
    rules: dict[str, str]
    digest: str


def rules(nb: NotebookNode) -> dict[str, str]:
    """nbgrader's checksum of each rubric cell, as it was when the notebook was built.

    It is the digest of the cell's text, its name and its points, and stays when a student edits
    the cell.
    """
    kinds = {
        name: cell.metadata["nbgrader"]
        for cell in nb.cells
        if (name := grade_id(cell)) and name.startswith("test_")
    }
    return {name: str(kind["checksum"]) for name, kind in kinds.items() if kind.get("checksum")}


def keep(lesson: Lesson, nb: NotebookNode, gradebook: Gradebook) -> None:
    """Keep a version that was built now; its cells are in the gradebook already."""
    number = sha256(json.dumps(rules(nb), sort_keys=True).encode()).hexdigest()[:16]
    target = _kept(lesson) / number
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=state_folder(lesson.root), prefix=".keep-") as folder:
        fresh = replace(lesson, kept=Path(folder, "version"))
        unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.ipynb")
        shutil.copytree(lesson.folder, fresh.folder, ignore=unwanted)
        shutil.copy(lesson.home / CURRICULUM, fresh.home / CURRICULUM)
        fresh.released_notebook.parent.mkdir(parents=True)
        nbformat.write(nb, fresh.released_notebook)
        (fresh.home / CELLS).write_text(json.dumps(read_cells(gradebook, lesson)))
        shutil.rmtree(target, ignore_errors=True)
        fresh.home.rename(target)


def versions(lesson: Lesson, gradebook: Gradebook) -> list[Version]:
    """The version that is built now, then those that are kept."""
    found = [_version(lesson, LessonCells(read_cells(gradebook, lesson)))]
    for path in sorted(_kept(lesson).glob(f"*/{CELLS}")):
        kept = replace(lessons(path.parent)[lesson.name], root=lesson.root, kept=path.parent)
        version = _version(kept, LessonCells(json.loads(path.read_text())))
        if version.rules != found[0].rules:
            found.append(version)
    return found


def version_of(nb: NotebookNode, among: list[Version]) -> Version:
    """The version that a submission was made from, by the checksums in it.

    Raises:
        CourseError: it is none of them, or its exercises had other names or points than those that
            are in the gradebook.
    """
    now, then = among[0], rules(nb)
    found = next((each for each in among if then.items() <= each.rules.items()), None)
    if found is None:
        raise CourseError(_unknown(now, then))
    if changed := sorted(_worth(found.lesson).items() ^ _worth(now.lesson).items()):
        names = ", ".join(dict.fromkeys(name for name, _ in changed))
        raise CourseError(
            f"made from an earlier version of {now.lesson.name}, in which other points were given "
            f"for {names}. The gradebook has one number of points for each exercise, so the two "
            "versions cannot stand in it together. Give back the earlier points in "
            f"{CURRICULUM} and the lesson, or {_OTHER_WAY.format(name=now.lesson.name)}"
        )
    return found


def require_newest(lesson: Lesson, submitted: NotebookNode, released: NotebookNode) -> None:
    """Refuse to grade work done under one rubric by another one.

    nbgrader's own commands put the newest cells into what they grade, so they can do no other.

    Raises:
        CourseError: rubric cells were changed after the student got the lesson; it names them.
    """
    now, then = rules(released), rules(submitted)
    if not then.items() <= now.items():
        raise CourseError(
            f"made from another version of {lesson.name}: since it was handed out, the rubric of "
            f"{_changed(now, then)} was changed. Grade it with: autograde grade {lesson.name}"
        )


_OTHER_WAY = (
    "check out the version that students got into a course of its own, run autograde build "
    "{name} there, and grade their work there."
)


def _unknown(now: Version, then: dict[str, str]) -> str:
    name = now.lesson.name
    return (
        f"made from another version of {name}: since it was handed out, the rubric of "
        f"{_changed(now.rules, then)} was changed, and that version was not built in this course "
        f"({_kept(now.lesson)} has what was). Hand out the newest version, or "
        f"{_OTHER_WAY.format(name=name)}"
    )


def _changed(now: dict[str, str], then: dict[str, str]) -> str:
    others = sorted(name for name, checksum in then.items() if now.get(name) != checksum)
    return named(name.removeprefix("test_") for name in others)


def _worth(lesson: Lesson) -> dict[str, float]:
    by_rubric = {exercise.name: exercise.points for exercise in lesson.exercises}
    return by_rubric | {written.name: written.points for written in lesson.written}


def _version(lesson: Lesson, cells: LessonCells) -> Version:
    content = lesson.released_notebook.read_bytes()
    nb = NotebookNode(nbformat.reads(content.decode(), as_version=4))
    facts = digest([content, expected.digest(lesson)])
    return Version(lesson, nb, cells, rules(nb), facts)


def _kept(lesson: Lesson) -> Path:
    return state_folder(lesson.root) / "released" / lesson.name
