"""Build a lesson: nbgrader generates the student version and the executed solution."""

import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode
from nbgrader.converters import BaseConverter, GenerateAssignment, GenerateSolution

from autograde.authoring.same import keep_same, other_files
from autograde.authoring.sources import changes, sync, with_points
from autograde.authoring.variants import other_ways
from autograde.course import Lesson, text_of
from autograde.course_config import convert, course_config
from autograde.grading.gradebook import maxima, open_gradebook
from autograde.versions import keep

STEPS = "autograde.authoring.build_steps"
KEEP = f"{STEPS}.KeepVersion"
SLOW = {KEEP, *(f"{STEPS}.{step}" for step in ("LintSource", "LintStudent", "AddPracticeData"))}


def build(lesson: Lesson) -> list[str]:
    """Write notebooks/LESSON and solutions/LESSON, and make the lesson known to the gradebook.

    Both are built elsewhere and moved into place together: a failed build changes neither. A file
    that says the same stays as it is. Return what is worth other points now.

    Raises:
        CourseError: the lesson has faults; the message lists them.
    """
    with open_gradebook(course_config(lesson.root)) as gradebook:
        changed = changes(lesson, maxima(gradebook, lesson))
    with TemporaryDirectory(dir=lesson.root, prefix=".build-") as folder:
        made = _convert(lesson, Path(folder))
        for new, old in zip(made, _committed(lesson), strict=True):
            keep_same(new, old)
            shutil.rmtree(old, ignore_errors=True)
            old.parent.mkdir(exist_ok=True)
            shutil.move(new, old)
    return changed


def adopt(lesson: Lesson) -> None:
    """Make a lesson that is built already known to this course, as `build` does."""
    with TemporaryDirectory() as folder:  # what it generates is there already
        generate(lesson, Path(folder))
    released = NotebookNode(nbformat.read(lesson.released_notebook, as_version=4))
    keep(lesson, released, lesson.practice_file.read_bytes(), other_ways(lesson))


def generate(lesson: Lesson, folder: Path) -> Path:
    """Write the student version alone, unchecked; the gradebook knows the lesson afterwards."""
    released, _ = _convert(lesson, folder, [GenerateAssignment], without=SLOW)
    return released


def out_of_date(lesson: Lesson) -> list[str]:
    """List what a build would change in notebooks/ and solutions/, apart from picture bytes."""
    with TemporaryDirectory() as folder:
        nowhere = f"sqlite:///{folder}/gradebook.db"
        made = _convert(lesson, Path(folder), without={KEEP}, db_url=nowhere)
        text = text_of(lesson)
        other_points = [] if with_points(lesson, text) == text else [f"{lesson.text}: other points"]
        return other_points + [
            change
            for new, old in zip(made, _committed(lesson), strict=True)
            for change in other_files(new, old)
        ]


def _committed(lesson: Lesson) -> tuple[Path, Path]:
    return lesson.released_notebook.parent, lesson.solution_notebook.parent


def _convert(
    lesson: Lesson,
    folder: Path,
    converters: Iterable[type[BaseConverter]] = (GenerateAssignment, GenerateSolution),
    *,
    without: Collection[str] = (),
    db_url: str = "",
) -> tuple[Path, Path]:
    """Write a lesson's student version and solution below a folder; return both places."""
    config = course_config(lesson.root)
    sync(lesson)  # nbgrader looks for a notebook
    if db_url:
        config.CourseDirectory.db_url = db_url
    steps = config.GenerateAssignment
    steps.preprocessors = [name for name in steps.preprocessors if name not in without]
    config.CourseDirectory.release_directory = str(folder / "notebooks")
    config.CourseDirectory.solution_directory = str(folder / "solutions")
    config.CourseDirectory.assignment_id = lesson.name
    for converter in converters:
        convert(converter, config)
    return folder / "notebooks" / lesson.name, folder / "solutions" / lesson.name
