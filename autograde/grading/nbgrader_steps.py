"""Steps of `nbgrader autograde` on this course: restore, run, judge and save."""

from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograde.course import CourseError, Lesson, find_root, lessons
from autograde.grading.figures import figures_of
from autograde.grading.guard import one_run
from autograde.grading.handed_in import read_files, visible_files
from autograde.grading.job import Result, make_job, put_result, run_job
from autograde.grading.judging import judge_by
from autograde.grading.keys import keys_for
from autograde.grading.limits import LIMITS
from autograde.grading.saving import Rows, save_scores
from autograde.grading.seeds import seed_of
from autograde.grading.store import stored_result
from autograde.grading.submission import Submission, read_submission, restore
from autograde.grading.verdicts import NOTE
from autograde.grading.versions import require_newest
from autograde.grading.written import keep_read
from autograde.rubric.judge import Verdict
from autograde.sandbox.wall import exposed, missing


def lesson_of(resources: dict[str, Any]) -> Lesson:
    """The lesson that nbgrader is at; it runs in the course's folder."""
    return lessons(find_root(Path.cwd()))[resources["nbgrader"]["assignment"]]


def require_wall(root: Path) -> None:
    """Raises CourseError when students' code cannot be kept away from this course."""
    problem = missing() or exposed(root)
    if problem:
        raise CourseError(
            f"{problem}\nWithout a wall students' code can do whatever you can. "
            "If you trust it, grade with --no-wall (nbgrader: --Run.wall=False)."
        )


class SubmissionExporter(NotebookExporter):
    """Reads any file: one that is no notebook becomes an empty one with the problem in words."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        submission = read_submission(Path(filename))
        resources = {**(resources or {}), "problem": submission.problem}
        resources["metadata"] = {"name": Path(filename).stem, "path": str(Path(filename).parent)}
        output: tuple[Any, dict[str, Any]]
        output = self.from_notebook_node(submission.nb, resources, **options)  # type: ignore
        return output


def restored(submission: Submission, released: NotebookNode) -> NotebookNode:
    """The submission with the lesson's own cells put back, and a note on what was wrong with it."""
    submission = restore(submission, released)
    submission.nb.metadata[NOTE] = {
        "problem": submission.problem,
        "notes": submission.notes,
        "remark": " ".join(submission.remarks),
    }
    return submission.nb


class Restore(NbGraderPreprocessor):
    """Put back the cells that are the lesson's own, from the version that was released."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        lesson = lesson_of(resources)
        released = nbformat.read(lesson.released_notebook, as_version=4)
        require_newest(lesson, nb, released)
        return restored(Submission(nb, resources["problem"]), released), resources


class Run(NbGraderPreprocessor):
    """Execute the notebook, unless it is known that there is nothing to execute.

    What `autograde grade` has executed and kept is not executed again.
    """

    wall = Bool(True, help="Run students' code behind a wall, or not at all.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        lesson = lesson_of(resources)
        if self.wall:
            require_wall(lesson.root)
        note = nb.metadata[NOTE]
        note["wall"] = bool(self.wall)
        if note["problem"]:
            return nb, resources
        folder = Path(resources["metadata"]["path"])
        files, left_out = read_files(islice(visible_files(folder), LIMITS.files))
        if left_out:
            self.log.warning("Too large, so left out: %s", ", ".join(left_out))
        seed = seed_of(lesson.root, lesson.name, nb)
        job = make_job(nb, files, seed, wall=self.wall, figures=figures_of(lesson))
        result = stored_result(lesson.root, job.key) or Result.from_bytes(run_job(job))
        put_result(nb, result, note)
        return nb, resources


def judge_and_show(lesson: Lesson, nb: NotebookNode, released: NotebookNode) -> dict[str, Verdict]:
    """Judge an executed notebook by the keys of its seed, and make it what pages may show."""
    seed = seed_of(lesson.root, lesson.name, nb)
    return judge_by(lesson, nb, released, keys_for(lesson, seed), seed)


class JudgeAndSave(NbGraderPreprocessor):
    """Judge the recordings and write the scores into the gradebook, if no other run does."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        lesson = lesson_of(resources)
        released = nbformat.read(lesson.released_notebook, as_version=4)
        verdicts = judge_and_show(lesson, nb, released)
        place = resources["nbgrader"]
        with one_run(lesson.root), Gradebook(place["db_url"]) as gradebook:
            save_scores(Rows(gradebook, (place["student"], lesson)), nb, verdicts)
            gradebook.db.commit()
        keep_read((place["student"], lesson), nb)
        return nb, resources
