"""Steps of `nbgrader autograde` on this course: restore, run, judge and save."""

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool

from autograde.course import CourseError, Lesson, find_root, grade_id, lessons
from autograde.grader.execute import execute
from autograde.grader.judging import UNJUDGED, judge_notebook, show_verdicts
from autograde.grader.keys import keys_for
from autograde.grader.markup import sanitise_text
from autograde.grader.outputs import reduce_outputs
from autograde.grader.seeds import seed_of
from autograde.grader.submission import Submission, read_submission, restore
from autograde.grader.verdicts import graded_note
from autograde.grader.written import place_of, save_written
from autograde.kernels.wall import exposed, missing
from autograde.verdict.judge import Verdict

NOTE = "autograde"
"""Where a notebook's metadata carries the problem and the notes from step to step."""


def lesson_of(resources: dict[str, Any]) -> Lesson:
    """The lesson that nbgrader is grading; it runs in the course's folder."""
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


class Restore(NbGraderPreprocessor):
    """Put back the cells that are the lesson's own, from the version that was released."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        released = nbformat.read(lesson_of(resources).released_notebook, as_version=4)
        submission = restore(Submission(nb, resources["problem"]), released)
        submission.nb.metadata[NOTE] = {"problem": submission.problem, "notes": submission.notes}
        return submission.nb, resources


class Run(NbGraderPreprocessor):
    """Execute the notebook, unless it is known that there is nothing to execute."""

    wall = Bool(True, help="Run students' code behind a wall, or not at all.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        lesson = lesson_of(resources)
        if self.wall:
            require_wall(lesson.root)
        nb.metadata[NOTE]["wall"] = bool(self.wall)
        if nb.metadata[NOTE]["problem"]:
            return nb, resources
        seed = seed_of(lesson.root, lesson.name, nb)
        executed = execute(nb, Path(resources["metadata"]["path"]), seed, wall=self.wall)
        nb = executed.nb
        nb.metadata[NOTE]["problem"] = executed.problem
        notes = nb.metadata[NOTE]["notes"]
        for index, text in executed.notes.items():
            if name := grade_id(nb.cells[index]):
                notes.setdefault(name, []).append(text)
        return nb, resources


class JudgeAndSave(SaveAutoGrades):
    """Judge the recordings and write the scores into the gradebook."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[Any, Any]:
        lesson = lesson_of(resources)
        seed = seed_of(lesson.root, lesson.name, nb)
        keys = keys_for(lesson, seed)
        note = self.note = nb.metadata[NOTE]
        self.verdicts = judge_notebook(lesson, nb, keys, note["problem"], note["notes"])
        unjudged = [v.exercise for v in self.verdicts.values() if UNJUDGED in v.note]
        if unjudged and not note["problem"]:
            note["problem"] = f"The judge failed on {', '.join(unjudged)}: look at the feedback."
        note.update(graded_note(self.verdicts, seed))
        reduce_outputs(nb)
        sanitise_text(nb, nbformat.read(lesson.released_notebook, as_version=4))
        show_verdicts(lesson, nb, self.verdicts)
        saved: tuple[Any, Any] = super().preprocess(nb, resources)
        return saved

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        name = grade_id(cell) or ""
        verdict: Verdict | None = self.verdicts.get(name.removeprefix("test_"))
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        if verdict is None:
            read = place_of(lesson_of(resources), self.student_id, name)
            save_written(grade, cell, read, restored=name in self.note["notes"])
            self.gradebook.db.commit()
            return
        changed = grade.auto_score != verdict.points
        grade.auto_score = verdict.points
        # a score given by hand stays; it wants a second look only where the automatic one moved
        grade.needs_manual_grade = grade.manual_score is not None and changed
        self.gradebook.db.commit()
