"""One submission, top to bottom: restore, run, judge, make harmless, write down, page.

A worker does all of it, here or on another machine; the coordinator only saves what comes back.
nbgrader's own commands and `autograde self` take the same steps with `grade_restored`.

Points are decided in `rubric.judge`, which `judge_notebook` calls for each exercise.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from autograde.course.versions import Version, notebook_of, version_of
from autograde.grading import feedback
from autograde.grading.reading.parse import parse_submission
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record, is_broken, marks_of, put_schemes, to_file, write_record
from autograde.grading.running.job import Ran, job_of, put_outputs
from autograde.grading.running.reference import keys_of, practice_of
from autograde.grading.running.run import run_job
from autograde.grading.sanitise import as_shown
from autograde.grading.submission import Disturbed, Entry, Graded, Marks, Task
from autograde.grading.verdicts import FirstLook, judge_notebook
from autograde.values.loaded_torch import compute_on_one_thread

T = TypeVar("T")


def grade_submission(task: Task, versions: tuple[Version, ...]) -> Graded:
    """Grade a submission, made from one of these versions of its lesson.

    Raises:
        CourseError: it was made from none of them, the reference fails, or no kernel can be
            started.
        Disturbed: it should be graded again, alone.
    """
    record = parse_submission(task.submission)
    version = version_of(record.nb, versions)
    record = restore(record, notebook_of(version))
    record = replace(record, earlier=version.kept, walled=task.wall)
    record, marks, ran = grade_restored(record, version, task)
    put_schemes(record.nb, version)
    nb = write_record(record)
    notebook_file = to_file(nb)  # the page puts scores into it, and takes marking schemes out
    page = feedback.page(nb, marks)
    entry = Entry(
        problem=record.noticed,
        seconds=ran.seconds if ran else 0.0,
        earlier=record.earlier,
        broken=is_broken(record.problem, record.verdicts),
    )
    ran_file = ran.to_bytes() if ran else b""
    return Graded(notebook_file, entry, marks, page, ran_file, record.fault)


def grade_restored(
    record: Record, version: Version, task: Task
) -> tuple[Record, Marks, Ran | None]:
    """Run a restored notebook, judge it and make it harmless; return its marks and run as well.

    The reference runs while the notebook does. The last run is used again if it ran the same job.
    """
    compute_on_one_thread()  # there is already one process for each core
    record, job = job_of(record, version, task)
    last = Ran.from_bytes(task.ran)
    ran = last if last and last.key == job.key and not record.problem else None
    with ThreadPoolExecutor(1) as meanwhile:
        practice = meanwhile.submit(practice_of, version)
        # without a secret, a student grades: on the practice seed, with the keys made when the
        # lesson was built, so that no answer need be recorded on that seed a second time
        keys = meanwhile.submit(keys_of, version, job.seed) if task.secret else practice
        look = FirstLook(keys.result if task.secret else dict)
        meanwhile.submit(feedback.warm_up, version)  # if this fails, so does the page later
        if ran is None and not record.problem:
            ran = run_job(job, look, alone=task.alone)
    if ran:
        record = put_outputs(record, ran)
    mistakes = practice.result() if task.secret else {}
    record = judge_notebook(record, version, keys.result(), mistakes, look.verdicts)
    record = as_shown(record, version)
    return record, marks_of(record, notebook_of(version), task.marks), ran


def at_most_twice(grade: Callable[[Task], T], task: Task) -> T:
    """Grade what others of this machine may disturb; if they did, once more, and that counts."""
    try:
        return grade(task)
    except Disturbed:
        return grade(replace(task, alone=True))
