"""Grade a class: every submission through nbgrader's autograde, then its feedback."""

from dataclasses import dataclass

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograde.course import CourseError, Lesson
from autograde.course_config import convert, course_config
from autograde.grader.preprocessors import NOTE
from autograde.grader.stage import Staged, stage, stage_folder
from autograde.grader.written import waiting


@dataclass(frozen=True)
class Graded:
    """One graded submission. `problem` is what a teacher should know; `failed`: no score."""

    student: str
    lesson: str
    score: float
    max_score: float
    problem: str = ""
    failed: bool = False


def grade(submission: tuple[str, Lesson]) -> Graded:
    """Grade one submission into the gradebook and write its feedback page."""
    student, lesson = submission
    staged = stage(student, lesson)
    config = _config(staged)
    try:
        convert(Autograde, config)
        convert(GenerateFeedback, config)
    except CourseError as error:
        return Graded(student, lesson.name, 0.0, lesson.points, str(error), failed=True)
    with _gradebook(config) as gradebook:
        saved = gradebook.find_submission(lesson.name, student)
        score, max_score, by_hand = saved.score, saved.max_score, waiting(saved)
    path = lesson.root / "autograded" / student / lesson.name / f"{lesson.notebook}.ipynb"
    problem = nbformat.read(path, as_version=4).metadata[NOTE]["problem"]
    remarks = [problem or staged.remark, by_hand]
    return Graded(student, lesson.name, score, max_score, "; ".join(filter(None, remarks)))


def check_released(lesson: Lesson) -> None:
    """Raises CourseError when a lesson cannot be graded because it was never built here."""
    if not lesson.released_notebook.is_file():
        raise CourseError(f"{lesson.name} is not built here. Run: autograde build {lesson.name}")
    config = course_config(lesson.root)
    with _gradebook(config) as gradebook:
        known = {assignment.name for assignment in gradebook.assignments}
    if lesson.name not in known:
        raise CourseError(
            f"the gradebook does not know {lesson.name}. Run: autograde build {lesson.name}"
        )


def _gradebook(config: Config) -> Gradebook:
    course = CourseDirectory(config=config)
    return Gradebook(course.db_url, course.course_id)


def _config(staged: Staged) -> Config:
    config = course_config(staged.lesson.root)
    config.CourseDirectory.submitted_directory = str(stage_folder(staged.lesson.root))
    config.CourseDirectory.student_id = staged.student
    config.CourseDirectory.assignment_id = staged.lesson.name
    config.Autograde.force = True
    config.GenerateFeedback.force = True
    return config
