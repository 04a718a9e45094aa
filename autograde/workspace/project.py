"""A student's lessons, without the course behind them, and the folder of their work."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nbformat import NotebookNode

from autograde.course.cells import named_cells
from autograde.course.lesson_files import read_built
from autograde.course.lessons import MINUTES, CourseError, Exercise, Lesson, Written
from autograde.course.package import NAMED
from autograde.course.versions import checksums, other_rubrics
from autograde.grading.reading.parse import parse_file
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record
from autograde.installed import installed
from autograde.progress import PRACTICE_FILE, STATE


@dataclass(frozen=True)
class Project:
    """Lessons as they were handed out, and work/ to work in.

    They are the notebooks/ of a clone or of a released folder, or came with the package.
    """

    root: Path
    lessons_folder: Path

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
        return sorted(self.lessons_folder.glob("[!.]*/[!.]*.ipynb"))

    def working(self, released: Path) -> Path:
        """Return the notebook that the student works in."""
        return self.work / released.parent.name / released.name

    def saved(self, name: str) -> Path:
        """Return the notebook that a student means by a lesson's name, or by a path."""
        own = {released.parent.name: self.working(released) for released in self.released()}
        return own.get(name.rstrip("/\\"), Path(name))


def find_project(start: Path, name: str = "") -> Project:
    """Return the project that contains a folder: the nearest one above with lessons in notebooks/.

    Without such a folder, it is the installed course of this name, of whose work the folder is
    part, or the only one; its work is kept in the home folder.

    Raises:
        CourseError: there are no lessons, or several courses are installed.
    """
    for folder in (start, *start.parents):
        if any(folder.glob(f"notebooks/[!.]*/{PRACTICE_FILE}")):
            return Project(folder, folder / "notebooks")
    courses = {each.name: each for each in installed()}
    here = [each.name for each in courses.values() if each.home in (start, *start.parents)]
    if courses:
        wanted = name or next(iter(courses if len(courses) == 1 else here), "")
        if wanted not in courses:
            raise CourseError(
                f"these courses are installed: {', '.join(courses)}. Say which one you mean: "
                f"autograde --course {next(iter(courses))} lab"
            )
        return Project(courses[wanted].home, courses[wanted].lessons)
    raise CourseError(
        f"{start} is in no folder with lessons: no notebooks/LESSON/NAME.ipynb here or above. "
        "Go to the folder that holds notebooks/."
    )


read_released = partial(read_built, todo="Get the lesson again.")


def read_lesson(project: Project, path: Path) -> tuple[Lesson, NotebookNode]:
    """Return a lesson as its notebook describes it, and the notebook."""
    nb = read_released(path)
    facts = {name: cell.metadata["nbgrader"] for name, cell in named_cells(nb).items()}
    points = {name: float(about["points"]) for name, about in facts.items() if about["grade"]}
    written = [name for name in points if facts[name]["solution"]]
    headings = (line for cell in nb.cells for line in cell.source.splitlines() if line[:2] == "# ")
    lesson = Lesson(
        root=project.root,
        name=path.parent.name,
        notebook=path.stem,
        title=next(headings, "")[2:] or path.stem,
        about="",
        minutes=int(nb.metadata.get(MINUTES, 0)),
        exercises=tuple(
            Exercise(name.removeprefix("test_"), points[name])
            for name in points
            if name not in written
        ),
        written=tuple(Written(name, points[name]) for name in written),
        package=nb.metadata.get(NAMED, ""),
    )
    return lesson, nb


def read_saved(project: Project, path: Path) -> tuple[Record, Path, Lesson, NotebookNode]:
    """Read a saved notebook as grading does, and put back the lesson's own cells.

    Return it with the file that it was made from, that file's lesson, and its notebook. One in the
    working copy is recognised by its path, any other by its rubric cells.

    Raises:
        CourseError: it cannot be graded: it is not a notebook, belongs to no lesson of this
            project, or to another version of one.
    """
    record = parse_file(path)
    if record.problem:
        raise CourseError(f"{path}: {record.problem.words}")
    released = project.released()
    own = [
        project.handed_out(each.parent.name) / each.name
        for each in released
        if path.resolve() == project.working(each).resolve()
    ]
    names = checksums(record.nb).keys()
    alike = (each for each in released if names & checksums(read_released(each)).keys())
    found = next((each for each in own if each.is_file()), None) or next(alike, None)
    if found is None:
        known = ", ".join(each.parent.name for each in released)
        raise CourseError(f"{path} belongs to none of these lessons: {known}")
    lesson, original = read_lesson(project, found)
    if others := other_rubrics(record.nb, original):
        raise CourseError(
            f"your {lesson.name} was made from another version of the lesson: the rubric of "
            f"{', '.join(others)} has changed. Run: autograde update"
        )
    return restore(record, original), found, lesson, original
