"""Adapters: grading's steps as steps of nbgrader's own commands.

A course may also have plain nbgrader assignments: in them each step makes way for nbgrader's own.
nbgrader imports this to read its configuration, so what takes long is imported late.
"""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import ClearMetadataPreprocessor, Preprocessor
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import (
    ClearOutput,
    DeduplicateIds,
    Execute,
    GetGrades,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    SaveAutoGrades,
)
from traitlets import Bool

from autograde.course.data_files import withhold
from autograde.course.lessons import CourseError, Lesson, find_root, lessons, read_course
from autograde.course.versions import notebook_of, other_rubrics, version_of, versions
from autograde.files import visible_files
from autograde.grading.batch import require_wall
from autograde.grading.gradebook import marks_of_class, save_scores
from autograde.grading.limits import LIMITS
from autograde.grading.reading.handed_in import read_files, read_submission
from autograde.grading.reading.parse import parse_file, parse_submission
from autograde.grading.reading.restore import restore
from autograde.grading.record import METADATA_KEY, Record, read_record, write_record
from autograde.grading.running.job import Ran
from autograde.grading.state import course_secret, keep_ran, one_run, read_ran
from autograde.grading.submission import ADDRESS, TIMESTAMP, Marks, Place, Submission, Task
from autograde.sandbox.both_sides import KernelLimits
from autograde.sandbox.provisioner import walled_manager
from autograde.student_text import named


def lesson_of(resources: dict[str, Any]) -> Lesson | None:
    """Return the lesson that nbgrader is working on; None if it is a plain assignment.

    nbgrader runs in the course's folder.
    """
    return lessons(find_root(Path.cwd())).get(resources["nbgrader"]["assignment"])


class LessonStep(NbGraderPreprocessor):
    """One step for a lesson. In a plain assignment, nbgrader's own steps take its place."""

    plain: ClassVar[tuple[type[Preprocessor], ...]] = ()

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        if (lesson := lesson_of(resources)) is not None:
            return self.take(lesson, nb, resources), resources
        for step in self.plain:
            nb, resources = step(parent=self.parent)(nb, resources)
        return nb, resources

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        """Return the notebook of a lesson after this step."""
        raise NotImplementedError


class SubmissionExporter(NotebookExporter):
    """Reads what `autograde grade` would: of several notebooks the one that counts.

    A file that is not a notebook becomes an empty notebook and a problem.
    """

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        lesson = lesson_of(resources or {})
        if lesson is None or resources is None:
            return super().from_filename(filename, resources, **options)
        course = cast(Any, self.parent).coursedir
        own = Path(course.root, course.autograded_directory).resolve()
        if Path(filename).resolve().is_relative_to(own):  # written by the step before
            record = parse_file(Path(filename), whole=True)
        else:
            place = Place(resources["nbgrader"]["student"], lesson)
            handed_out = [notebook_of(version) for version in versions(lesson)]
            record = parse_submission(read_submission(place, course.ignore, handed_out))
        for number, cell in enumerate(record.nb.cells):
            cell.setdefault("id", f"cell-{number}")  # a submission's own ids are not read
        resources = {**resources, "problem": record.problem, "remarks": record.remarks}
        resources["metadata"] = {"name": Path(filename).stem, "path": str(Path(filename).parent)}
        output: tuple[Any, dict[str, Any]]
        output = self.from_notebook_node(record.nb, resources, **options)  # type: ignore
        return output


class Withhold(LessonStep):
    """Deletes what nbgrader copied from beside a lesson and must not leave its folder."""

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        course, about = cast(Any, self.parent).parent.coursedir, resources["nbgrader"]
        for step in ("release", "solution", "autograded", "feedback"):
            folder = getattr(course, f"{step}_directory")
            copied = course.format_path(folder, about["student"], about["assignment"])
            withhold(lesson, Path(copied))
        return nb


class ForgetRecord(NbGraderPreprocessor):
    """Drops the record that grading leaves in lessons: a student may have written this one."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        nb.metadata.pop(METADATA_KEY, None)
        return nb, resources


class Restore(LessonStep):
    """Put back the cells that are the lesson's own, from the version that was released.

    nbgrader puts the newest cells into what it grades, so an earlier version is refused.
    """

    plain = (ForgetRecord, ClearOutput, DeduplicateIds)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        known = versions(lesson)
        version = version_of(nb, known)
        if version.kept:
            changed = named(other_rubrics(nb, notebook_of(known[0])))
            raise CourseError(
                f"made from an earlier version of {lesson.name}: since it was handed out, "
                f"the rubric of {changed} was changed. Grade it with `autograde grade`"
            )
        record = Record(nb, resources["problem"], remarks=resources["remarks"])
        return write_record(restore(record, notebook_of(version)))


class RunPlain(Execute):
    """Runs a plain assignment as nbgrader does, in a kernel behind the wall if `Run.wall` says so.

    Raises:
        CourseError: there is no wall, or the notebook is in another language.
    """

    def create_kernel_manager(self) -> Any:
        if not Run(parent=self.parent).wall:
            return super().create_kernel_manager()
        root = find_root(Path.cwd())
        require_wall(root)
        language = self.nb.metadata.get("kernelspec", {}).get("language", "python")
        if language != "python":
            raise CourseError(
                f"a notebook in {language} cannot run behind the wall, where only Python is. "
                "If you trust what was handed in, grade with --Run.wall=False"
            )
        return walled_manager(KernelLimits(), read_course(root).package)


def last_resort() -> AbstractContextManager[None]:
    """End nbgrader's command if a submission hangs, as a worker ends; Formgrader's server stays."""
    from autograde.grading.workers import at_most

    try:
        asyncio.get_running_loop()  # of the server
    except RuntimeError:
        return at_most(LIMITS.hung_seconds + LIMITS.more_seconds)
    return nullcontext()


class Run(LessonStep):
    """Run and judge the notebook, then save its scores, if no other run holds the course.

    Code that `autograde grade` has run is not run again.
    """

    plain = (RunPlain, IgnorePattern, ClearMetadataPreprocessor, LimitOutput, SaveAutoGrades)
    wall = Bool(True, help="Run students' code behind a wall, or not at all.").tag(config=True)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        from autograde.grading import pipeline

        about, wall = resources["nbgrader"], bool(self.wall)
        place = Place(about["student"], lesson)
        if wall:
            require_wall(lesson.root)
        folder = Path(resources["metadata"]["path"])
        files, left_out = read_files(visible_files(folder))
        if left_out:
            self.log.warning("Too large, so left out: %s", named(left_out))
        record, version = replace(read_record(nb), walled=wall), versions(lesson)[0]

        def graded(task: Task) -> tuple[Record, Marks, Ran | None]:
            with last_resort():
                return pipeline.grade_restored(record, version, task)

        task = Task(Submission(place, files), wall, course_secret(lesson.root), ran=read_ran(place))
        judged, marks, ran = pipeline.at_most_twice(graded, task)
        if ran:
            keep_ran(place, ran.to_bytes())
        if judged.fault:
            self.log.error(judged.fault)
        with one_run(lesson.root), Gradebook(about["db_url"]) as gradebook:
            if TIMESTAMP not in files:  # nbgrader would keep the time of the submission before
                gradebook.find_submission(lesson.name, place.student).timestamp = None
            save_scores(gradebook, place, marks)
        return write_record(judged)


class HandGrades(LessonStep):
    """Adds scores, comments and the student's name, as `autograde grade` does.

    As there, only what says whose it is stays beside the page.
    """

    plain = (GetGrades,)

    def take(self, lesson: Lesson, nb: NotebookNode, resources: dict[str, Any]) -> NotebookNode:
        from autograde.grading.feedback import put_marks

        about = resources["nbgrader"]
        student = about["student"]
        course = cast(Any, self.parent).parent.coursedir
        folder = course.format_path(course.feedback_directory, student, lesson.name)
        for path in filter(Path.is_file, Path(folder).rglob("*")):  # nbgrader has copied them
            if str(path.relative_to(folder)) not in ADDRESS:
                path.unlink()
        with Gradebook(about["db_url"]) as gradebook:
            about |= put_marks(nb, marks_of_class(gradebook, lesson, student)[student])
        return nb
