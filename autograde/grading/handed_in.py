"""What students handed in: read into memory under the names nbgrader expects; nothing is moved."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from autograde.course import CourseError, Lesson
from autograde.grading.limits import LIMITS
from autograde.grading.submission import Submission, not_readable, parse_submission, too_large
from autograde.words import named

TIMESTAMP = "timestamp.txt"
"""The file in which nbgrader keeps when something was handed in."""

MAX_FILE = 50_000_000
MAX_TOGETHER = 100_000_000


@dataclass(frozen=True)
class HandedIn:
    """The files of one submission by name, its notebook under the lesson's; a remark about them.

    With a `problem` there is no notebook to read, and the problem's words stand in its place.
    """

    student: str
    lesson: Lesson
    files: dict[str, bytes]
    remark: str = ""
    problem: str = ""

    @property
    def submission(self) -> Submission:
        """The notebook, or an empty one and the problem in words."""
        if self.problem:
            return not_readable(self.problem)
        read = parse_submission(self.files[f"{self.lesson.notebook}.ipynb"])
        read.remarks = [*filter(None, [self.remark]), *read.remarks]
        return read


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

    A wrong file name is put right where only one notebook can be meant.

    Args:
        ignore: nbgrader's `CourseDirectory.ignore`: what of the lesson's folder does not travel.

    Raises:
        OSError: a file cannot be read.
    """
    folder = lesson.root / "submitted" / student / lesson.name
    linked = folder.is_symlink() or folder.parent.is_symlink()  # to what another handed in, say
    own = {
        str(path.relative_to(lesson.folder)): path
        for path in map(Path, find_all_files(str(lesson.folder), [*ignore, "*.ipynb"]))
    }
    notebook = f"{lesson.notebook}.ipynb"
    taken = {notebook, f"{lesson.notebook}.html", *own}
    found = [] if linked else list(visible_files(folder))
    kept = sorted((file for file in found if not _in_the_way(file[1], taken)), key=_notebooks_first)
    files, left_out = read_files(kept[: LIMITS.files])
    files, remarks = _renamed(files, notebook)
    problem = "" if notebook in files else _problem(files, left_out, notebook)
    if problem:
        files[notebook] = problem.encode()
    elif left_out:
        remarks.append(f"Too large, so left out: {named(left_out)}.")
    if more := len(found) - min(len(kept), LIMITS.files):
        remarks.append(f"{len(found)} files were handed in; {more} were left out.")
    files |= {name: path.read_bytes() for name, path in own.items()}
    return HandedIn(student, lesson, files, " ".join(remarks), problem)


def visible_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The plain, visible files below a folder and their names in it, those near its top first; no
    links, nothing hidden, and nothing deep below."""
    level = [folder]
    for _ in range(LIMITS.folder_depth):
        below: list[Path] = []
        for place in level:
            if not place.is_dir():
                continue
            with os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.startswith("."):
                        continue
                    if entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), str(Path(entry.path).relative_to(folder))
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(Path(entry.path))
        level = below


def _notebooks_first(file: tuple[Path, str]) -> tuple[bool, int, str]:
    """The order in which files find room: notebooks, the one nearest the top first."""
    name = file[1]
    return not name.endswith(".ipynb"), name.count("/"), name


def _in_the_way(name: str, taken: set[str]) -> bool:
    """Whether a file lies in a folder, or is called like a folder, where another file belongs."""
    parents = {str(parent) for parent in Path(name).parents}
    return bool(parents & taken) or any(other.startswith(f"{name}/") for other in taken)


def read_files(paths: Iterable[tuple[Path, str]]) -> tuple[dict[str, bytes], dict[str, int]]:
    """The contents of files by name, and the sizes of those that are too large, alone or together
    with those read before. Notebooks are read first."""
    files: dict[str, bytes] = {}
    left_out: dict[str, int] = {}
    room = MAX_TOGETHER
    for path, name in sorted(paths, key=_notebooks_first):
        size = path.stat().st_size
        if size > min(MAX_FILE, room):
            left_out[name] = size
        else:
            files[name] = path.read_bytes()
            room -= size
    return files, left_out


def _renamed(files: dict[str, bytes], right: str) -> tuple[dict[str, bytes], list[str]]:
    """The files, the notebook that is graded under its right name, and remarks on that."""
    remarks = []
    others = [name for name in files if name.endswith(".ipynb") and "/" not in name]
    if right not in files and len(others) == 1:
        remarks.append(f"The file was called {named(others)}; it was graded as {right}.")
        files[right] = files.pop(others[0])
    for name in others:
        if name != right and name in files:
            files[f"{name}.extra"] = files.pop(name)
    return files, remarks


def _problem(files: dict[str, bytes], left_out: dict[str, int], right: str) -> str:
    """The reason that there is no notebook to grade."""
    large = [size for name, size in left_out.items() if _is_notebook(name)]
    if large:
        return too_large(large[-1])
    found = [name.removesuffix(".extra") for name in files if _is_notebook(name)]
    return f"{right} was not handed in (found: {named(found) or 'no notebook'})."


def _is_notebook(name: str) -> bool:
    return name.removesuffix(".extra").endswith(".ipynb") and "/" not in name


def find_all_files(folder: str, ignore: list[str]) -> list[str]:
    """The files below a folder, as nbgrader finds them: nothing whose name or folder is ignored."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _ignored(name, ignore)]
        found += [os.path.join(place, name) for name in names if not _ignored(name, ignore)]
    return found


def _ignored(name: str, ignore: list[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in ignore)
