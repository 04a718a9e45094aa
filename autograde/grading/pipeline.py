"""One submission, top to bottom: restore, run, judge, make harmless, page.

A worker does all of it, here or on another machine; the coordinator only saves what comes back.
nbgrader's own commands and `autograde self` take the same steps with `grade_restored`.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from nbformat import NotebookNode

from autograde.course.lessons import Lesson, named_cells
from autograde.course.versions import Version, notebook_of, source_of, version_of
from autograde.grading import feedback
from autograde.grading.reading.parse import parse_submission
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record, is_broken, to_file, write_note
from autograde.grading.running.job import Ran, job_of, put_outputs
from autograde.grading.running.reference import keys_of, practice_of
from autograde.grading.running.run import run_job
from autograde.grading.sanitise import sanitise
from autograde.grading.submission import Disturbed, Entry, Graded, Marks, Task
from autograde.grading.verdicts import FirstLook, judge_notebook, show_verdicts
from autograde.values.loaded import compute_on_one_thread
from autograde.values.text import digest

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
    record, ran = grade_restored(record, version, task)
    marks = marks_of(record, notebook_of(version), task.marks)
    put_schemes(record.nb, version)
    seconds, ran_file = (ran.seconds, ran.to_bytes()) if ran else (0.0, b"")
    entry = Entry(
        problem=record.noticed,
        seconds=seconds,
        earlier=version.kept,
        broken=is_broken(record.problem, record.verdicts),
    )
    nb = write_note(record)
    notebook_file = to_file(nb)  # the page puts scores into it, and takes marking schemes out
    return Graded(notebook_file, entry, marks, feedback.page(nb, marks), ran_file, record.fault)


def grade_restored(record: Record, version: Version, task: Task) -> tuple[Record, Ran | None]:
    """Run a restored notebook, judge it and make it harmless; return its run as well.

    The reference runs while the notebook does. The last run is used again if it ran the same job.
    """
    compute_on_one_thread()  # there is already one process for each core
    record, job = job_of(record, version, task)
    last = Ran.from_bytes(task.ran)
    ran = last if last and last.key == job.key and not record.problem else None
    with ThreadPoolExecutor(1) as meanwhile:
        practice = meanwhile.submit(practice_of, version)
        keys = practice  # a student's copy has no reference
        if task.secret:
            keys = meanwhile.submit(keys_of, version, job.seed)
        meanwhile.submit(feedback.warm_up, version)  # if this fails, so does the page later
        # a run on the practice seed needs no second recording on it
        look = FirstLook(keys.result if task.secret else dict)
        if ran is None and not record.problem:
            ran = run_job(job, look, alone=task.alone)
    if ran:
        record = put_outputs(record, ran)
    mistakes = practice.result() if task.secret else {}
    record = judge_notebook(record, version, keys.result(), mistakes, look.verdicts)
    return as_shown(record, version), ran


def at_most_twice(grade: Callable[[Task], T], task: Task) -> T:
    """Grade what others of this machine may disturb; if they did, once more, and that counts."""
    try:
        return grade(task)
    except Disturbed:
        return grade(replace(task, alone=True))


def as_shown(record: Record, version: Version) -> Record:
    """Return a judged notebook as pages may show it, with all that they say of the lesson."""
    lesson = version.lesson
    remarks = [*record.remarks, *sanitise(record.nb, notebook_of(version))]
    show_verdicts(record, lesson)
    ways = {
        name: each
        for name, each in json.loads(version.ways or b"{}").items()
        if name in record.verdicts and record.verdicts[name].passed
    }
    remarks += _withdrawn(record, lesson)
    return replace(record, title=lesson.title, remarks=remarks, ways=ways)


def _withdrawn(record: Record, lesson: Lesson) -> Iterator[str]:
    for exercise in lesson.exercises:
        for line in record.verdicts[exercise.name].lines:
            if line.name in exercise.withdrawn and line.passed:
                yield (
                    f"Your teacher has withdrawn a line of {exercise.name}, so it counts as right: "
                    f"“{line.name}”."
                )


def marks_of(record: Record, released: NotebookNode, known: Marks) -> Marks:
    """Return known marks with the scores and comments that the grader gives anew.

    A written answer waits for a person, unless it was left as it was handed out or emptied.
    """
    given = {name: cell.source for name, cell in named_cells(released).items()}
    automatic: dict[str, float | None] = {}
    points, written, comments = {}, {}, {}
    for name, cell in named_cells(record.nb).items():
        about, untouched = cell.metadata["nbgrader"], cell.source == given.get(name)
        if about.get("grade"):
            verdict = record.verdicts.get(name.removeprefix("test_"))
            points[name] = float(about["points"])
            if verdict is None:
                put_there_again = name in record.notes
                empty = untouched or (not cell.source.strip() and not put_there_again)
                automatic[name] = 0.0 if empty else None
                written[name] = digest(cell.source)
            else:
                automatic[name] = verdict.points
        if about.get("solution"):
            comments[name] = feedback.NO_ANSWER if untouched else None
    return replace(known, automatic=automatic, points=points, written=written, comments=comments)


def put_schemes(nb: NotebookNode, version: Version) -> None:
    """Give the questions their marking schemes, which graders see and students do not."""
    cells, with_schemes = named_cells(nb), named_cells(source_of(version))
    for written in version.lesson.written:
        name = written.question_cell
        cells[name].source = with_schemes[name].source
