"""Collect what students handed in, under the names nbgrader expects; the originals stay."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from autograde.course import CourseError, Lesson
from autograde.grader.seeds import state_folder
from autograde.grader.submission import NOT_HANDED_IN

MAX_FILE = 50_000_000


@dataclass(frozen=True)
class Staged:
    """One submission, copied to where it is graded; `remark` is about its files."""

    student: str
    lesson: Lesson
    remark: str = ""


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


def stage_folder(root: Path) -> Path:
    return state_folder(root) / "staged"


def stage(student: str, lesson: Lesson) -> Staged:
    """Copy a submission's plain files, its notebook under the lesson's name.

    A wrong file name is put right where only one notebook can be meant. Without a notebook, a
    file that says so takes its place, so that the submission is graded and gets its words.
    """
    source = lesson.root / "submitted" / student / lesson.name
    target = stage_folder(lesson.root) / student / lesson.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    linked = source.is_symlink() or source.parent.is_symlink()  # to what another handed in, say
    for path in [] if linked else sorted(source.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE:
            continue
        if any(part.startswith(".") for part in path.relative_to(source).parts):
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return Staged(student, lesson, _put_in_place(target, lesson))


def _put_in_place(target: Path, lesson: Lesson) -> str:
    right = target / f"{lesson.notebook}.ipynb"
    others = sorted(path for path in target.glob("*.ipynb") if path != right)
    remark = ""
    if not right.exists() and len(others) == 1:
        remark = f"The file was called {others[0].name}; it was graded as {right.name}."
        others.pop().rename(right)
    for path in others:
        path.rename(path.with_suffix(".ipynb.extra"))
    if not right.exists():
        found = ", ".join(path.name.removesuffix(".extra") for path in others) or "no notebook"
        remark = f"{right.name} was not handed in (found: {found})."
        right.write_text(json.dumps({NOT_HANDED_IN: remark}))
    return remark
