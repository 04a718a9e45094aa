"""A student's lessons, without the course behind them, and the folder of their work."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course import CourseError, Exercise, Lesson, Written, grade_id
from autograde.notebook.practice import PRACTICE_FILE
from autograde.notebook.standing import STATE
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.packing import BadData
from autograde.versions import rules


@dataclass(frozen=True)
class Project:
    """A clone of the course or a released folder: notebooks/ as handed out, work/ to work in."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def state(self) -> Path:
        return self.work / STATE

    def handed_out(self, lesson: str) -> Path:
        """Return the folder of the version that the working copy of a lesson was made from."""
        return self.state / "handed_out" / lesson

    def released(self) -> list[Path]:
        """Return the notebook of each lesson, in order."""
        return sorted(self.root.glob("notebooks/[!.]*/[!.]*.ipynb"))

    @cached_property
    def lessons(self) -> list[tuple[Path, Lesson]]:
        """The notebook of each lesson, and the lesson as its files describe it; read once.

        Raises:
            CourseError: a lesson cannot be read.
        """
        return [(path, read_lesson(self, path)[0]) for path in self.released()]

    def working(self, released: Path) -> Path:
        """Return the notebook that the student works in."""
        return self.work / released.parent.name / released.name


def find_project(start: Path) -> Project:
    """Return the project that contains a folder: the nearest one above with lessons in notebooks/.

    Raises:
        CourseError: there is none.
    """
    for folder in (start, *start.parents):
        if (project := Project(folder)).released():
            return project
    raise CourseError(
        f"{start} is in no folder with lessons: no notebooks/LESSON/NAME.ipynb here or above. "
        "Go to the folder that holds notebooks/."
    )


def read_lesson(project: Project, path: Path) -> tuple[Lesson, NotebookNode, dict[str, Key]]:
    """Return a lesson as its notebook and its practice keys describe it, and these two.

    Raises:
        CourseError: one of them cannot be read.
    """
    try:
        nb = NotebookNode(nbformat.read(path, as_version=4))
        keys = unpack_keys((path.parent / PRACTICE_FILE).read_bytes())
    except (OSError, ValueError, EOFError, BadData, nbformat.ValidationError) as error:
        raise CourseError(
            f"{path} or {PRACTICE_FILE} beside it cannot be read; get the lesson again: {error}"
        ) from error
    written = [
        Written(grade_id(cell) or "", float(kind["points"]))
        for cell in nb.cells
        if (kind := cell.metadata.get("nbgrader", {})).get("grade") and kind.get("solution")
    ]
    lesson = Lesson(
        root=project.root,
        name=path.parent.name,
        notebook=path.stem,
        title=title_of(nb) or path.stem,
        about="",
        minutes=0,
        exercises=tuple(Exercise(key.exercise, key.points, key.needs) for key in keys.values()),
        written=tuple(written),
    )
    return lesson, nb, keys


def handed_out_for(project: Project, path: Path, nb: NotebookNode) -> Path:
    """Return the handed-out notebook that a student's notebook was made from.

    A notebook of the working copy is found by its place, another one by its rubric cells.

    Raises:
        CourseError: it is of no lesson of this project.
    """
    mine = rubric_cells(nb)
    for released in project.released():
        kept = project.handed_out(released.parent.name) / released.name
        if path.resolve() == project.working(released).resolve() and kept.is_file():
            return kept
    for released in project.released():
        if mine & rubric_cells(NotebookNode(nbformat.read(released, as_version=4))):
            return released
    known = ", ".join(path.parent.name for path in project.released())
    raise CourseError(f"{path} is a notebook of none of these lessons: {known}")


def rubric_cells(nb: NotebookNode) -> set[str]:
    return {name for cell in nb.cells if (name := grade_id(cell)) and name.startswith("test_")}


def same_version(lesson: Lesson, nb: NotebookNode, released: NotebookNode) -> None:
    """Raises CourseError when a notebook was made from another version of the lesson's rubric."""
    now = rules(released)
    others = [name for name, rule in rules(nb).items() if now.get(name) != rule]
    if others:
        names = ", ".join(sorted(name.removeprefix("test_") for name in others))
        raise CourseError(
            f"your {lesson.name} was made from another version of the lesson: the rubric of "
            f"{names} has changed. Run: autograde update"
        )


def title_of(nb: NotebookNode) -> str:
    """Return the first heading of a notebook."""
    lines = (line for cell in nb.cells for line in cell.source.splitlines())
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "")
