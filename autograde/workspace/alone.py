"""Grade a saved notebook on the student's own machine, from the practice data alone."""

from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from autograde.course import CourseError, Lesson, grade_id
from autograde.grading.feedback import feedback_page
from autograde.grading.job import Result, make_job, put_result, run_job
from autograde.grading.judging import judge_by
from autograde.grading.nbgrader_steps import restored
from autograde.grading.store import write_whole
from autograde.grading.submission import read_submission
from autograde.grading.verdicts import NOTE
from autograde.rubric.judge import Verdict
from autograde.rubric.panel import headline
from autograde.rubric.session import PRACTICE_SEED
from autograde.sandbox.template import plain_files
from autograde.workspace.project import Project, handed_out_for, read_lesson, same_version

REMARK = (
    "Graded on your own machine, with the numbers of practice. Your teacher's grader draws others."
)


@dataclass(frozen=True)
class Graded:
    """What grading gave, and the page that shows it."""

    lesson: Lesson
    verdicts: dict[str, Verdict]
    page: Path

    @property
    def in_words(self) -> list[str]:
        lines = [headline(verdict) for verdict in self.verdicts.values()]
        return lines + [f"{w.name}: answered in words, graded by hand" for w in self.lesson.written]


def grade_alone(project: Project, path: Path) -> Graded:
    """Grade a notebook as it was saved: the lesson's own cells put back, in a kernel of its own.

    Raises:
        CourseError: it cannot be graded: no notebook, of no lesson here, of another version, or
            no kernel can be started.
    """
    submission = read_submission(path)
    if submission.problem:
        raise CourseError(f"{path} cannot be graded: {submission.problem}")
    lesson, released, keys = read_lesson(project, handed_out_for(project, path, submission.nb))
    same_version(lesson, submission.nb, released)
    nb = restored(submission, released)
    note = nb.metadata[NOTE]
    note["remark"] = f"{REMARK} {note['remark']}".strip()
    files = {name: file.read_bytes() for file, name in plain_files(path.parent)}
    job = make_job(nb, files, PRACTICE_SEED, wall=False)
    put_result(nb, Result.from_bytes(run_job(job)), note)
    verdicts = judge_by(lesson, nb, released, keys, PRACTICE_SEED)
    _put_scores(nb, verdicts)
    score = sum(verdict.points for verdict in verdicts.values())
    page = project.work / "feedback" / lesson.name / f"{lesson.notebook}.html"
    html = feedback_page(nb, lesson.notebook, score, lesson.points)
    write_whole(page, html.encode("utf-8", "xmlcharrefreplace"))
    return Graded(lesson, verdicts, page)


def _put_scores(nb: NotebookNode, verdicts: dict[str, Verdict]) -> None:
    """Scores where nbgrader puts them for the page; a written answer has none yet."""
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            verdict = verdicts.get((grade_id(cell) or "").removeprefix("test_"))
            cell.metadata.nbgrader["score"] = verdict.points if verdict else None
