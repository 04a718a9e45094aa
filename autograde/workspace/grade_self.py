"""Grade a saved notebook on the student's own machine, from the practice data alone."""

from functools import partial
from hashlib import sha256
from pathlib import Path

from autograde.course.lessons import CourseError
from autograde.course.versions import Version
from autograde.files import visible_files, write_whole
from autograde.grader import grader_of
from autograde.grading import feedback, pipeline
from autograde.grading.reading.handed_in import read_files
from autograde.grading.record import write_record
from autograde.grading.running.reference import practice_of
from autograde.grading.submission import Place, Submission, Task
from autograde.progress import PRACTICE_FILE
from autograde.rubric.panel import headline
from autograde.student_text import named
from autograde.values.text import await_marking, of_points
from autograde.workspace.project import Project, read_saved

REMARK = "Graded on your own machine, with the practice inputs. Your teacher's grader draws others."


def grade_self(project: Project, path: Path) -> tuple[list[str], Path]:
    """Grade a notebook as it was saved, with the lesson's own cells restored, in a new kernel.

    Return what there is to say, a line for each exercise and question, and the feedback page.

    Raises:
        CourseError: it cannot be graded: it is not a notebook, belongs to no lesson here or to
            another version, or no kernel can be started.
    """
    if not path.is_file():
        raise CourseError(f"{path} is neither a lesson here nor a saved notebook")
    record, original, lesson, _ = read_saved(project, path)
    practice = original.parent / PRACTICE_FILE
    try:
        built, data = original.read_bytes(), practice.read_bytes()
        version = Version(lesson, sha256(built + data).hexdigest(), b"", b"", built, data)
        practice_of(version)
    except (OSError, CourseError) as error:
        raise CourseError(f"{practice} cannot be read; get the lesson again") from error
    record.remarks.insert(0, REMARK)
    files, left_out = read_files(visible_files(path.parent))
    if left_out:
        record.remarks.append(f"Too large, so left out: {named(left_out)}.")
    task = Task(Submission(Place("", lesson), files), wall=False)  # no secret: the practice seed
    grade = partial(pipeline.grade_restored, record, version)
    record, marks, _ = pipeline.at_most_twice(grade, task)
    page = project.work / "feedback" / lesson.name / f"{lesson.notebook}.html"
    write_whole(page, feedback.page(write_record(record), marks))
    said = [headline(verdict) for verdict in record.verdicts.values()]
    for each in lesson.written:
        waits = marks.score(each.name) is None
        worth = await_marking(each.points) if waits else of_points(0, each.points)
        said.append(f"{each.name}: {worth}")
    name = grader_of(lesson.package)
    said.append(f"If your teacher's page has other points, compare the graders. Yours: {name}")
    return said, page
