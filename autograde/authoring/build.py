"""Build a lesson: nbgrader generates the student version and the executed solution.

nbgrader's own commands take the same steps, so Formgrader builds what `autograde build` does.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import BaseConverter, GenerateAssignment, GenerateSolution
from nbgrader.preprocessors import (
    ClearMarkScheme,
    ClearSolutions,
    Execute,
    IncludeHeaderFooter,
    InstantiateTests,
)

from autograde.authoring import lint
from autograde.authoring.check import check_once, review
from autograde.authoring.expected import practice_keys
from autograde.authoring.marks import give
from autograde.authoring.release import copy_files
from autograde.authoring.sources import (
    changes,
    identify,
    source_notebook,
    sync,
    text_with_points,
    write_points,
)
from autograde.authoring.variants import other_ways
from autograde.course.built import changed_since, note
from autograde.course.config import convert, course_config, ignored
from autograde.course.data_files import data_files
from autograde.course.lesson_files import read_built, text_of
from autograde.course.lessons import MINUTES, CourseError, Lesson
from autograde.course.package import NAMED
from autograde.course.versions import is_kept, keep
from autograde.files import replace_folder, without_returns
from autograde.grading.gradebook import maxima, open_gradebook, save_maxima
from autograde.grading.nbgrader_steps import LessonStep
from autograde.notebook.saved_notebook import MAY_RAISE
from autograde.progress import PRACTICE_FILE
from autograde.rubric.key import pack_keys
from autograde.sandbox.provisioner import open_manager

KEEP, LINT = f"{__name__}.KeepVersion", f"{__name__}.LintSource"
SLOW = {KEEP, LINT, *(f"{__name__}.{step}" for step in ("LintStudent", "AddPracticeData"))}
UNSTEADY = "unsteady-output"
"""The tag of a cell whose output differs from run to run; it is not kept."""
WIDGET = "application/vnd.jupyter.widget-view+json"
CELL_SECONDS = 400


def build(lesson: Lesson) -> list[str]:
    """Write notebooks/LESSON and solutions/LESSON, and make the lesson known to the gradebook.

    Both are built elsewhere, the student version last because the gradebook follows it, and moved
    into place together: a failed build changes nothing. Return what is worth other points now.
    """
    with open_gradebook(course_config(lesson.root)) as gradebook:
        changed = changes(lesson, maxima(gradebook, lesson))
    with TemporaryDirectory(dir=lesson.root, prefix=".build-") as folder:
        released, solution = _convert(lesson, Path(folder), without={LINT})
        replace_folder(released, lesson.released_notebook.parent)
        replace_folder(solution, lesson.solution_notebook.parent)
    return changed


def out_of_date(lesson: Lesson) -> str:
    """Return in words why a build would change notebooks/ or solutions/; "" if it would not."""
    beside = data_files(lesson, ignored(lesson.root)).items()
    try:
        for path in (lesson.released_notebook, lesson.solution_notebook):
            nb = read_built(path)
            if changed := changed_since(lesson, path, nb):
                return changed
            if nb.metadata.get(MINUTES) != lesson.minutes:
                return f"{lesson.name} was built with other minutes"
            for name, file in beside:
                copy = path.with_name(name)
                if not copy.is_file() or without_returns(copy) != without_returns(file):
                    return f"{copy} is not what {lesson.name} has"
    except CourseError as error:  # not there, or damaged
        return str(error)
    return ""


def recognise(lesson: Lesson) -> None:
    """Make a lesson that is as it was built known to this course, if it is not."""
    with open_gradebook(course_config(lesson.root)) as gradebook:
        known = maxima(gradebook, lesson) == lesson.graded_cells
    if not (known and is_kept(lesson, read_built(lesson.released_notebook))):
        adopt(lesson)


def adopt(lesson: Lesson) -> None:
    """Make a lesson that is built already known to this course, as `build` does."""
    with TemporaryDirectory() as folder:  # what it generates is there already
        generate(lesson, Path(folder))
    keep(
        lesson,
        read_built(lesson.released_notebook),
        lesson.practice_file.read_bytes(),
        other_ways(lesson),
    )


class LintedSolution(GenerateSolution):
    """Refuses a lesson with faults before its reference runs; the gradebook need not know it."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        super(GenerateSolution, self).init_assignment(assignment_id, student_id)


def generate(lesson: Lesson, folder: Path) -> Path:
    """Write the student version alone, unchecked; the gradebook knows the lesson afterwards."""
    released, _ = _convert(lesson, folder, [GenerateAssignment], without=SLOW)
    return released


def _convert(
    lesson: Lesson,
    folder: Path,
    converters: Iterable[type[BaseConverter]] = (LintedSolution, GenerateAssignment),
    *,
    without: Collection[str] = (),
) -> tuple[Path, Path]:
    """Write a lesson's student version and solution below a folder; return both places."""
    config = course_config(lesson.root)
    sync(lesson)  # nbgrader looks for a notebook
    steps = config.GenerateAssignment
    steps.preprocessors = [name for name in steps.preprocessors if name not in without]
    config.LintedSolution.preprocessors = [LINT, *config.GenerateSolution.preprocessors]
    config.CourseDirectory.release_directory = str(folder / "notebooks")
    config.CourseDirectory.solution_directory = str(folder / "solutions")
    config.CourseDirectory.assignment_id = lesson.name
    for converter in converters:
        convert(converter, config)
    return folder / "notebooks" / lesson.name, folder / "solutions" / lesson.name


def refuse(lesson: Lesson, faults: Iterable[str]) -> None:
    """Raises CourseError with every fault, if there is one."""
    if listed := [f"- {fault}" for fault in faults]:
        raise CourseError("\n".join([f"{lesson.name} is refused:", *listed]))


class Identify(LessonStep):
    """Takes the lesson's text as it is now, with repeatable cell ids."""

    plain = (IncludeHeaderFooter,)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        sync(lesson)
        return source_notebook(lesson)


class LintSource(LessonStep):
    """Refuse a lesson with faults in its files, its text or its variants."""

    plain = (InstantiateTests,)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        _, faults = review(lesson, nb, check_once)
        refuse(lesson, faults)
        return nb


class SavePoints(LessonStep):
    """Before SaveCells: maximum scores follow the curriculum, all at once, and it is said."""

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            for change in changes(lesson, maxima(gradebook, lesson)):
                self.log.warning("%s", change)
            save_maxima(gradebook, lesson)
        return nb


class ClearLesson(LessonStep):
    """Put the stub, or code to be repaired, in place of each solution.

    A course may have a stub of its own for its plain assignments; the grader looks for nbgrader's.
    """

    plain = (ClearSolutions,)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        nb, _ = ClearSolutions()(nb, resources)
        for cell in nb.cells:
            cell.source = give(cell.source)
        return nb


class LintStudent(LessonStep):
    """Refuse a student version in which a solution survives."""

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        refuse(lesson, lint.lint_student(source_notebook(lesson), nb))
        return nb


class AddPracticeData(LessonStep):
    """Put the practice data beside the notebook; the course's package and the minutes into it."""

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        resources["outputs"] = {PRACTICE_FILE: pack_keys(practice_keys(lesson))}
        nb.metadata[MINUTES] = lesson.minutes
        if lesson.package:
            nb.metadata[NAMED] = lesson.package
        return nb


class NoteBuild(LessonStep):
    """Write into the notebook what it is made from, with the points that its text gets."""

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        practice = resources.get("outputs", {}).get(PRACTICE_FILE, b"")
        note(nb, lesson, text_with_points(lesson, text_of(lesson)), practice)
        return nb


class KeepVersion(LessonStep):
    """Keep what was built, so that work made from it can be graded when the lesson has changed.

    By now the lesson is known to be good, so its text gets the points that it was built with.
    """

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        practice = resources.get("outputs", {}).get(PRACTICE_FILE)
        write_points(lesson)
        keep(lesson, nb, practice or b"", other_ways(lesson))
        return nb


class RunReference(LessonStep):
    """Execute the reference in a folder with its practice data; refuse a lesson with faults."""

    plain = (ClearMarkScheme, Execute)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        with TemporaryDirectory() as folder:
            Path(folder, PRACTICE_FILE).write_bytes(pack_keys(practice_keys(lesson)))
            copy_files(data_files(lesson), Path(folder))
            failed: list[NotebookNode] = []  # a rubric that fails shows a panel and no error
            NotebookClient(
                nb,
                on_cell_error=lambda cell, **_: failed.append(cell),
                km=open_manager(Path(folder)),
                timeout=CELL_SECONDS,
                coalesce_streams=True,  # how often a kernel flushes is chance
                record_timing=False,
                store_widget_state=False,
                resources={"metadata": {"path": folder}},
            ).execute(cleanup_kc=True)
        for cell in nb.cells:
            for output in cell.get("outputs", []):
                output.get("data", {}).pop(WIDGET, None)
        refuse(lesson, lint.lint_outputs(nb, failed))
        for cell in nb.cells:
            if UNSTEADY in cell.metadata.get("tags", []):
                cell.outputs = []
        return as_reference(nb)


def as_reference(nb: NotebookNode) -> NotebookNode:
    """Give the cells their ids. None may raise any more, so that nbval fails where one does."""
    for cell in nb.cells:
        if MAY_RAISE in (tags := cell.metadata.get("tags", [])):
            tags.remove(MAY_RAISE)
    return identify(nb)
