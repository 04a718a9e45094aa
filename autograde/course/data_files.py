"""A lesson's data files: what lies beside its text and goes wherever its notebook goes.

nbgrader copies every file beside a notebook, except what `c.CourseDirectory.ignore` names. What
would give answers away never leaves the lesson's folder, whatever that names.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from autograde.cards import CARD_FILE
from autograde.course.lessons import Lesson
from autograde.files import kept_by_tools

ANSWERS = (b"BEGIN SOLUTION", b"BEGIN MARK SCHEME")
"""The marks of an author's solution or marking scheme; a copy of a lesson's text has them too."""
VARIANTS = "variants"


def data_files(lesson: Lesson, ignore: Iterable[str] = ()) -> dict[str, Path]:
    """Return the files that travel with a lesson, by their paths from its folder.

    Args:
        ignore: nbgrader's `CourseDirectory.ignore`: patterns for more files to leave out.
    """
    found = _files(lesson.folder).items()
    return {
        name: path
        for name, path in found
        if not _stays(lesson, path)
        and not any(fnmatch(part, pattern) for part in Path(name).parts for pattern in ignore)
        and not holds_answers(path)
    }


def readable_files(lesson: Lesson) -> tuple[tuple[str, bytes], ...]:
    """Return the data files that a lesson's code may read, each with its content.

    Only the panel reads the lesson's card.
    """
    found = data_files(lesson).items()
    return tuple((name, path.read_bytes()) for name, path in found if name != CARD_FILE)


def withhold(lesson: Lesson, folder: Path) -> None:
    """Delete from a folder what was copied there from beside a lesson and must not leave it."""
    for name in _files(lesson.folder).keys() - data_files(lesson).keys():
        copy = folder / name
        if copy.is_file() and copy.suffix != ".ipynb":  # nbgrader copies none, but makes one there
            copy.unlink()
        for parent in copy.relative_to(folder).parents[:-1]:
            if (folder / parent).is_dir() and not any((folder / parent).iterdir()):
                (folder / parent).rmdir()


def misplaced(lesson: Lesson) -> Iterator[str]:
    """Yield a sentence for each file that would be taken for one of the lesson's own."""
    for path in _files(lesson.folder).values():
        if path.suffix == ".ipynb" and path.parent == lesson.folder:
            if path != lesson.source_notebook:
                yield (
                    f"{path} is a second notebook, which nbgrader would hand out as part of the "
                    "lesson; move it to another folder"
                )
        elif not _stays(lesson, path) and holds_answers(path):
            yield (
                f"{path} holds a solution or a marking scheme, and students get the files beside "
                "a lesson; move it to another folder"
            )


def holds_answers(path: Path) -> bool:
    """Return whether a file contains an author's solution or marking scheme."""
    content = path.read_bytes()
    return any(mark in content for mark in ANSWERS)


def _stays(lesson: Lesson, path: Path) -> bool:
    """Return whether a file is the author's alone, whatever is in it."""
    parts = path.relative_to(lesson.folder).parts
    return (
        path in (lesson.text, lesson.tolerance_file)
        or path.suffix in (".ipynb", ".pyc")
        or parts[0] == VARIANTS
        or kept_by_tools(path.relative_to(lesson.folder))
    )


def _files(folder: Path) -> dict[str, Path]:
    found = sorted(filter(Path.is_file, folder.rglob("*")), key=Path.as_posix)
    return {path.relative_to(folder).as_posix(): path for path in found}
