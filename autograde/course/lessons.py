"""The course in a folder: its lessons, their exercises and their files."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from autograde.progress import PRACTICE_FILE

T = TypeVar("T")

MINUTES = "minutes"
"""In the metadata of a built notebook: the lesson's minutes, for students' page of lessons."""

CURRICULUM = Path("source", "curriculum.toml")
DUE = "due.toml"
"""An optional file that tells students when lessons are due."""


class CourseError(Exception):
    """Something is wrong with the course; the message says what it is and what to do."""


@dataclass(frozen=True)
class Course:
    """A course as a whole. `package` is what its lessons import beside the grader, or ""."""

    title: str = "Lessons"
    package: str = ""


@dataclass(frozen=True)
class Exercise:
    """An exercise by name; `needs` are earlier ones that its rubric or an answer may call.

    `withdrawn` are lines of its rubric that count as right for everybody who tried it.
    """

    name: str
    points: float
    needs: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()

    @property
    def rubric_cell(self) -> str:
        return f"test_{self.name}"


@dataclass(frozen=True)
class Written:
    """A question answered in words, or by a figure, and graded by hand; it has no rubric.

    The question's cell ends with the marking scheme, which graders see and students do not.
    """

    name: str
    points: float

    @property
    def question_cell(self) -> str:
        return f"question_{self.name}"


@dataclass(frozen=True)
class Lesson:
    """One lesson. `root` is the course's folder, `package` the course's, or "".

    `memory_gb` is what the kernel of a submission gets.
    """

    root: Path
    name: str
    notebook: str
    title: str
    about: str
    minutes: int
    exercises: tuple[Exercise, ...]
    written: tuple[Written, ...] = ()
    package: str = ""
    memory_gb: float = 2

    @property
    def numbered_title(self) -> str:
        """The title in a table of lessons: 03 The -inf mask."""
        number, _, _ = self.name.partition("_")
        return f"{number} {self.title}" if number.isdigit() else self.title

    @property
    def folder(self) -> Path:
        return self.root / "source" / self.name

    @property
    def text(self) -> Path:
        """The lesson as jupytext percent text, the only place where it is written."""
        return self.folder / f"{self.notebook}.py"

    @property
    def source_notebook(self) -> Path:
        """The text as a notebook, for nbgrader."""
        return self.folder / f"{self.notebook}.ipynb"

    @property
    def tolerance_file(self) -> Path:
        """The measured tolerance of each rubric line; see `autograde check --measure`."""
        return self.folder / "tolerances.json"

    @property
    def released_notebook(self) -> Path:
        return self.root / "notebooks" / self.name / f"{self.notebook}.ipynb"

    @property
    def practice_file(self) -> Path:
        """The practice data, beside the notebook that students get."""
        return self.released_notebook.parent / PRACTICE_FILE

    @property
    def solution_notebook(self) -> Path:
        return self.root / "solutions" / self.name / f"{self.notebook}.ipynb"

    @property
    def worth(self) -> dict[str, float]:
        """The points of each exercise, then of each question answered in words."""
        graded: tuple[Exercise | Written, ...] = (*self.exercises, *self.written)
        return {each.name: each.points for each in graded}

    @property
    def graded_cells(self) -> dict[str, float]:
        """The points of each cell that is graded: rubric cells, then written answers."""
        cells = {each.rubric_cell: each.points for each in self.exercises}
        return cells | {each.name: each.points for each in self.written}

    @property
    def points(self) -> float:
        return sum(self.worth.values())

    def with_points(self, cells: Mapping[str, float]) -> "Lesson":
        return replace(
            self,
            exercises=tuple(
                replace(each, points=cells.get(each.rubric_cell, each.points))
                for each in self.exercises
            ),
            written=tuple(
                replace(each, points=cells.get(each.name, each.points)) for each in self.written
            ),
        )

    def as_today(self, today: "Lesson") -> "Lesson":
        """Return this earlier version with today's points, withdrawn lines and memory."""
        version = self.with_points(today.graded_cells)
        withdrawn = {each.name: each.withdrawn for each in today.exercises}
        exercises = (
            replace(each, withdrawn=withdrawn.get(each.name, ())) for each in version.exercises
        )
        return replace(version, exercises=tuple(exercises), memory_gb=today.memory_gb)

    def exercise(self, name: str) -> Exercise:
        return next(exercise for exercise in self.exercises if exercise.name == name)


def find_root(start: Path) -> Path:
    """Return the course that contains a folder: the nearest folder above with a curriculum.

    Raises:
        CourseError: there is none.
    """
    for folder in (start, *start.parents):
        if (folder / CURRICULUM).is_file():
            return folder
    raise CourseError(
        f"{start} is not in a course: no {CURRICULUM} here or above. Go to a course, or make one: "
        "autograde init FOLDER. To study lessons: autograde lab"
    )


def lessons(root: Path) -> dict[str, Lesson]:
    """Return the lessons of the curriculum by name, in its order.

    Raises:
        CourseError: the curriculum cannot be read.
    """
    package, entries = read_course(root).package, read_toml(root / CURRICULUM).get("lesson", [])
    try:
        found = [_lesson(root, package, entry) for entry in entries]
    except KeyError as error:
        raise CourseError(f"{root / CURRICULUM}: a lesson lacks {error.args[0]!r}") from error
    except TypeError as error:
        raise CourseError(f"{root / CURRICULUM} cannot be read: {error}") from error
    names = Counter(lesson.name for lesson in found)
    if twice := [name for name, number in names.items() if number > 1]:
        raise CourseError(f"{root / CURRICULUM}: two lessons have the name {twice[0]!r}")
    return {lesson.name: lesson for lesson in found}


def read_course(root: Path) -> Course:
    """Return what the curriculum says of the course as a whole, under `[course]`.

    Raises:
        CourseError: the curriculum cannot be read, or the package is no name of one.
    """
    try:
        course = Course(**read_toml(root / CURRICULUM).get("course", {}))
        if course.package and not course.package.isidentifier():
            raise TypeError(f"package = {course.package!r} names no Python package")
    except (AttributeError, TypeError) as error:
        raise CourseError(f"{root / CURRICULUM}: [course] cannot be read: {error}") from error
    return course


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file of the course holds.

    Raises:
        CourseError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from error


def _lesson(root: Path, package: str, entry: dict[str, Any]) -> Lesson:
    points, written, needs = entry["points"], entry.get("written", {}), entry.get("needs", {})
    withdrawn, memory = entry.get("withdrawn", {}), entry.get("memory_gb", Lesson.memory_gb)
    numbers = {"minutes": entry["minutes"], "memory_gb": memory, **points, **written}
    wrong = [
        f"{name} needs a number above 0, not {value!r}"
        for name, value in numbers.items()
        if not _is_positive(value)
    ]
    if _is_positive(memory) and memory < 1:
        wrong += [f"memory_gb = {memory!r}: a kernel needs 1 at least"]
    wrong += [
        f"needs: {name} = {earlier!r} is no list of exercises here"
        for name, earlier in needs.items()
        if not isinstance(earlier, list) or not {name, *earlier} <= points.keys()
    ]
    wrong += [
        f"withdrawn: {name} = {lines!r} is no list of lines of an exercise here"
        for name, lines in withdrawn.items()
        if not isinstance(lines, list) or name not in points
    ]
    wrong += [
        f"{name} may not begin with test_ or question_, as the cells of rubrics and questions do"
        for name in {**points, **written}
        if name.startswith(("test_", "question_"))
    ]
    wrong += [
        f"{name} is the name of an exercise and of a question" for name in points.keys() & written
    ]
    if wrong:
        raise CourseError(f"{root / CURRICULUM}: {entry['name']}: {'; '.join(wrong)}")
    return Lesson(
        root=root,
        package=package,
        memory_gb=memory,
        **{name: entry[name] for name in ("name", "notebook", "title", "about", "minutes")},
        exercises=tuple(
            Exercise(name, float(value), tuple(needs.get(name, ())), tuple(withdrawn.get(name, ())))
            for name, value in points.items()
        ),
        written=tuple(Written(name, float(value)) for name, value in written.items()),
    )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def plain_assignments(root: Path) -> list[str]:
    """Name the folders in source/ that are no lessons but hold a notebook: nbgrader's to grade."""
    folders = {path.parent.name for path in (root / "source").glob("[!.]*/[!.]*.ipynb")}
    return sorted(folders - lessons(root).keys())


def choose(root: Path, names: tuple[str, ...], what: str = "lesson") -> list[Lesson]:
    """Return the lessons of these names, each once, or all when none is named.

    `what` says in an error what could have been named.

    Raises:
        CourseError: a name is unknown, and the message lists the known ones; it is that of a plain
            assignment; or there is no lesson.
    """
    known = lessons(root)
    if plain := sorted({*names}.intersection(plain_assignments(root))):
        raise CourseError(
            f"{plain[0]} is a plain nbgrader assignment, no lesson: it is left to nbgrader, so use "
            f"Formgrader or nbgrader's commands, for example: nbgrader autograde {plain[0]}"
        )
    if not known:
        raise CourseError(f"{CURRICULUM} names no lesson yet. Run: autograde new 01_my_lesson")
    return [pick(what, name, known) for name in dict.fromkeys(names) or known]


def choose_exercises(root: Path, names: tuple[str, ...]) -> dict[Lesson, tuple[Exercise, ...]]:
    """Return the lessons that are named, each with the exercises of it that are named instead."""
    known = [*lessons(root).values()]
    exercises = {each.name for lesson in known for each in lesson.exercises}
    whole = tuple(name for name in names if name not in exercises)
    found = {
        lesson: tuple(each for each in lesson.exercises if each.name in names) for lesson in known
    }
    found = {lesson: named for lesson, named in found.items() if named}
    for lesson in choose(root, whole, "lesson or exercise") if whole or not names else ():
        found[lesson] = ()
    return found


def pick(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return what somebody named.

    Raises:
        CourseError: there is nothing of this name; the message lists what there is.
    """
    if name not in known:
        raise CourseError(f"there is no {what} {name!r}; there are: {', '.join(known) or 'none'}")
    return known[name]


def due_dates(folder: Path) -> dict[str, date]:
    """Return the dates in a folder's `due.toml`, by lesson; some have a time.

    Raises:
        CourseError: the file cannot be read.
    """
    path = folder / DUE
    dates = read_toml(path) if path.is_file() else {}
    for lesson, when in dates.items():
        if not isinstance(when, date):
            raise CourseError(f"{path}: {lesson} needs a date, such as 2026-03-01 12:00:00")
    return dates


def state_folder(root: Path) -> Path:
    """Return the course's folder for the state of builds and grading, which may be missing."""
    return root / ".autograde"
