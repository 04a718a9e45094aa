"""Release a course to students: student versions with practice data, and the environment.

nbgrader imports this to read its configuration, so what takes long is imported late.
"""

import shutil
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeReleaseAssignment

from autograde.course.built import changed_since
from autograde.course.data_files import data_files
from autograde.course.lesson_files import read_built, read_utf8
from autograde.course.lessons import (
    CURRICULUM,
    DUE,
    CourseError,
    Lesson,
    due_dates,
    lessons,
    read_course,
)
from autograde.course.package import CACHES, folder_of

ENVIRONMENT = ("LICENSE", "environment.yml", "pyproject.toml", "requirements.lock", "setup.py")
PACKAGE = "autograde"

TO_WRITE = "REPLACE:"
"""What `autograde new` writes where the author has to say something; SQL's REPLACE has no colon."""

GUIDE = "docs/student.md"
"""The page that tells students how to set up and work; the README of what is released."""


def release(root: Path, chosen: list[Lesson], target: Path) -> None:
    """Write the lessons and what they run with to a new or empty folder, and nothing else.

    The grader is in it only if it is in the course's folder.

    Raises:
        CourseError: the folder is not empty, a lesson is not built, not finished or was changed
            after the build, or the due dates are wrong.
    """
    if target.exists() and any(target.iterdir()):
        raise CourseError(f"{target} is not empty; name a new folder")
    files = {lesson: files_for_students(lesson) for lesson in chosen}
    if unknown := due_dates(root).keys() - lessons(root).keys():
        raise CourseError(f"{root / DUE} names {', '.join(sorted(unknown))}: no such lesson here")
    for lesson, of_lesson in files.items():
        copy_files(of_lesson, target / "notebooks" / lesson.name)
    others = {name: root / name for name in (*ENVIRONMENT, DUE)} | {"README.md": root / GUIDE}
    copy_files({name: path for name, path in others.items() if path.is_file()}, target)
    unwanted = shutil.ignore_patterns(*CACHES)
    if (root / PACKAGE).is_dir():
        shutil.copytree(root / PACKAGE, target / PACKAGE, ignore=unwanted)
    if package := read_course(root).package:
        shutil.copytree(folder_of(package), target / package, ignore=unwanted)


def files_for_students(lesson: Lesson) -> dict[str, Path]:
    """Return what students get of a lesson, by name: its notebook, practice data, data files.

    Raises:
        CourseError: it is not built, not finished, or was changed since it was built.
    """
    from autograde.course.config import ignored

    nb = read_built(lesson.released_notebook)
    texts = {
        lesson.root / CURRICULUM: f"{lesson.title} {lesson.about}",
        lesson.text: "\n".join(cell.source for cell in nb.cells),
        **{path: read_utf8(path) for path in sorted(lesson.folder.glob("variants/*.md"))},
    }
    unfinished = [path for path, text in texts.items() if TO_WRITE in text]
    if unfinished:
        places = ", ".join(str(path.relative_to(lesson.root)) for path in unfinished)
        raise CourseError(
            f"{lesson.name} is not finished: {places} still says “{TO_WRITE}”. "
            "To leave it out, name the finished lessons"
        )
    if changed := changed_since(lesson, lesson.released_notebook, nb):
        raise CourseError(f"{changed}. Run: autograde build {lesson.name}")
    built = (lesson.released_notebook, lesson.practice_file)
    return {path.name: path for path in built} | data_files(lesson, ignored(lesson.root))


class ReleaseAsBuilt(ExchangeReleaseAssignment):
    """Releases a lesson as it was built: not with an answer that somebody tried and saved in it."""

    def copy_files(self) -> None:
        """Say why nothing is released before nbgrader deletes what is there, or release it."""
        lesson = lessons(Path(self.coursedir.root)).get(self.coursedir.assignment_id)
        try:
            self.files = files_for_students(lesson) if lesson else None
        except CourseError as error:
            self.fail(str(error))
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what students get; an assignment without rubrics as nbgrader does."""
        if self.files is None:
            super().do_copy(src, dest, log)
        else:
            copy_files(self.files, Path(dest))


def copy_files(files: dict[str, Path], target: Path) -> None:
    """Copy files to a folder, under the names that they get there."""
    for name, path in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
