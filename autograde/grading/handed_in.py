"""What students handed in: read into memory under the names nbgrader expects; nothing is moved."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from autograde.course import CourseError, Lesson
from autograde.grading.submission import NOT_HANDED_IN, too_large
from autograde.sandbox.template import plain_files

TIMESTAMP = "timestamp.txt"
"""The file in which nbgrader keeps when something was handed in."""

MAX_FILE = 50_000_000
MAX_TOGETHER = 100_000_000


@dataclass(frozen=True)
class HandedIn:
    """The files of one submission by name, its notebook under the lesson's; a remark about them."""

    student: str
    lesson: Lesson
    files: dict[str, bytes]
    remark: str = ""

    @property
    def notebook(self) -> bytes:
        return self.files[f"{self.lesson.notebook}.ipynb"]


def submissions(root: Path, lessons: list[Lesson], student: str | None) -> list[tuple[str, Lesson]]:
    """Who handed in which of the lessons, in order: every folder submitted/STUDENT/LESSON.

    Raises:
        CourseError: no such student handed anything in, or nobody did.
    """
    folder = root / "submitted"
    students = sorted(path.name for path in folder.glob("*") if path.is_dir())
    if student is not None and student not in students:
        raise CourseError(
            f"no student {student!r} in {folder}; there are: {', '.join(students) or 'none'}"
        )
    chosen = students if student is None else [student]
    found = [
        (s, lesson) for lesson in lessons for s in chosen if (folder / s / lesson.name).is_dir()
    ]
    if not found:
        names = ", ".join(lesson.name for lesson in lessons)
        raise CourseError(f"nothing to grade: no folder {folder}/STUDENT/LESSON for {names}")
    return found


def read_handed_in(student: str, lesson: Lesson, ignore: list[str]) -> HandedIn:
    """Read a submission's plain files, and the lesson's own over them, as nbgrader does.

    A wrong file name is put right where only one notebook can be meant. Without a notebook, or when
    it is too large to read, one that says so takes its place, so that the submission is graded and
    gets its words.

    Args:
        ignore: nbgrader's `CourseDirectory.ignore`: what of the lesson's folder does not travel.

    Raises:
        OSError: a file cannot be read.
    """
    folder = lesson.root / "submitted" / student / lesson.name
    linked = folder.is_symlink() or folder.parent.is_symlink()  # to what another handed in, say
    paths = [] if linked else plain_files(folder)
    files, left_out = read_files(paths)
    files, remark = _renamed(files, left_out, lesson)
    for path in map(Path, find_all_files(str(lesson.folder), [*ignore, "*.ipynb"])):
        files[str(path.relative_to(lesson.folder))] = path.read_bytes()
    return HandedIn(student, lesson, files, remark)


def read_files(paths: Iterable[tuple[Path, str]]) -> tuple[dict[str, bytes], dict[str, int]]:
    """The contents of files by name, and the sizes of those that are too large, alone or together
    with those read before. Notebooks are read first."""
    files: dict[str, bytes] = {}
    left_out: dict[str, int] = {}
    room = MAX_TOGETHER
    for path, name in sorted(paths, key=lambda file: (not file[1].endswith(".ipynb"), file[1])):
        size = path.stat().st_size
        if size > min(MAX_FILE, room):
            left_out[name] = size
        else:
            files[name] = path.read_bytes()
            room -= size
    return files, left_out


def _renamed(
    files: dict[str, bytes], left_out: dict[str, int], lesson: Lesson
) -> tuple[dict[str, bytes], str]:
    """The files, the notebook that is graded under its right name, and a remark on that."""
    right, remark = f"{lesson.notebook}.ipynb", ""
    others = [name for name in files if name.endswith(".ipynb") and "/" not in name]
    if right not in files and len(others) == 1:
        remark = f"The file was called {others[0]}; it was graded as {right}."
        files[right] = files.pop(others[0])
    for name in [name for name in files if name.endswith(".ipynb") and name != right]:
        if "/" not in name:
            files[f"{name}.extra"] = files.pop(name)
    if right not in files:
        found = ", ".join(others) or "no notebook"
        remark = f"{right} was not handed in (found: {found})."
        for name, size in left_out.items():
            if name.endswith(".ipynb") and "/" not in name:
                remark = too_large(size)
        files[right] = json.dumps({NOT_HANDED_IN: remark}).encode()
    elif left_out:
        said = f"Too large, so left out: {', '.join(left_out)}."
        remark = f"{remark} {said}" if remark else said
    return files, remark


def find_all_files(folder: str, ignore: list[str]) -> list[str]:
    """The files below a folder, as nbgrader finds them: nothing whose name or folder is ignored."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _ignored(name, ignore)]
        found += [os.path.join(place, name) for name in names if not _ignored(name, ignore)]
    return found


def _ignored(name: str, ignore: list[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in ignore)
