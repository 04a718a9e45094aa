"""Release a course to students: student versions with practice data, and the environment."""

import re
import shutil
from pathlib import Path

import nbformat

from autograde.authoring.lint import lint_student
from autograde.authoring.sources import source_notebook
from autograde.course import DUE, CourseError, Lesson, due_dates
from autograde.course import lessons as lessons_of

ENVIRONMENT = ("LICENSE", "environment.yml", "pyproject.toml", "requirements.lock", "setup.py")
PACKAGES = ("autograde", "attention_course")
"""The grader, and what this course's lessons import beside it."""

TO_WRITE = "REPLACE"
"""What `autograde new` writes where the author has to say something."""

GUIDE = "docs/student.md"
"""How students set up and work; the README of what is released."""


def release(root: Path, lessons: list[Lesson], target: Path) -> None:
    """Write the lessons and what they run with to a new or empty folder, and nothing else.

    Raises:
        CourseError: the folder is not empty, a lesson is not built, not finished or was changed
            after the build, the due dates are wrong, or the course lacks the environment's files.
    """
    if target.exists() and any(target.iterdir()):
        raise CourseError(f"{target} is not empty; name a new folder")
    for lesson in lessons:
        if not lesson.released_notebook.is_file():
            raise CourseError(f"{lesson.name} is not built. Run: autograde build {lesson.name}")
        _require_finished(lesson)
    if missing := [name for name in (*ENVIRONMENT, GUIDE, *PACKAGES) if not (root / name).exists()]:
        raise CourseError(f"{root} lacks {', '.join(missing)}, which students need")
    if unknown := due_dates(root).keys() - lessons_of(root).keys():
        raise CourseError(f"{root / DUE} names {', '.join(sorted(unknown))}: no such lesson here")
    folders = {lesson.released_notebook.parent: f"notebooks/{lesson.name}" for lesson in lessons}
    unwanted = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for folder, name in (folders | {root / name: name for name in PACKAGES}).items():
        shutil.copytree(folder, target / name, ignore=unwanted)
    for name in (*ENVIRONMENT, DUE):
        if (root / name).is_file():
            shutil.copyfile(root / name, target / name)
    shutil.copyfile(root / GUIDE, target / "README.md")


def _require_finished(lesson: Lesson) -> None:
    """Raises CourseError when text is to be written still, or somebody saved answers in it."""
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    texts = [lesson.title, lesson.about, *(cell.source for cell in nb.cells)]
    if any(re.search(rf"\b{TO_WRITE}\b", text) for text in texts):
        raise CourseError(f"{lesson.name} is not finished: it still says {TO_WRITE}")
    if faults := [*lint_student(source_notebook(lesson), nb)]:
        said = f"{lesson.released_notebook} is not as built. Run: autograde build {lesson.name}"
        raise CourseError("\n".join([said, *(f"- {fault}" for fault in faults)]))
