"""One submission, top to bottom: restore, run, judge, sanitise, page.

A worker does all of it, here or on another machine; the coordinator only saves what comes back.
nbgrader's own commands and `autograde self` call the same steps.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import TypeVar

import nbformat
import torch
from nbformat import NotebookNode

from autograde.course import Lesson, grade_id, named_cells, parse_text
from autograde.grading import feedback
from autograde.grading.formatting import SAID, colour_or_not
from autograde.grading.restore import NOTE, parse_submission, restore
from autograde.grading.running.job import Job, Ran, make_job, put_outputs
from autograde.grading.running.needed import not_needed
from autograde.grading.running.reference import Program, load, right_key
from autograde.grading.running.run import Look, run_job
from autograde.grading.sanitise import sanitise_outputs, sanitise_text
from autograde.grading.state import seed_of
from autograde.grading.submission import Disturbed, Graded, Marks, Task
from autograde.grading.verdicts import FirstLook, judge_notebook, show_verdicts
from autograde.rubric.judge import Verdict
from autograde.rubric.key import Key, unpack_keys
from autograde.values.text import digest
from autograde.versions import Version, notebook, version_of

T = TypeVar("T")


def grade(task: Task, versions: tuple[Version, ...]) -> Graded:
    """Grade a submission, made from one of these versions of its lesson.

    Raises:
        CourseError: it was made from none of them, the reference fails, or no kernel can be
            started.
        Disturbed: it should be graded again, alone.
    """
    parsed = parse_submission(task.submission)
    version = version_of(parsed.nb, versions)
    nb = restore(parsed, notebook(version))
    note = nb.metadata[NOTE]
    if version.kept:
        note["earlier"] = True
    ran, new = grade_restored(
        nb,
        version,
        task.submission.files,
        task.secret,
        wall=task.wall,
        before=task.ran,
        alone=task.alone,
    )
    marks = task.marks.graded_again(new)
    put_schemes(nb, version)
    file = to_file(nb)
    return Graded(
        notebook=file,
        marks=marks,
        page=feedback.page(file, marks),
        ran=ran.to_bytes() if ran else b"",
        problem=note["problem"] or _noticed(note["notes"]),
        fault=note.get("fault", ""),
        seconds=ran.seconds if ran else 0.0,
    )


def grade_restored(
    nb: NotebookNode,
    version: Version,
    files: dict[str, bytes],
    secret: bytes,
    *,
    wall: bool,
    before: bytes,
    alone: bool = True,
) -> tuple[Ran | None, Marks]:
    """Run a restored notebook, judge it and make it harmless; return its run and its marks.

    The reference runs while the notebook does.

    Args:
        files: what was handed in beside it.
        secret: the course's, which with the job decides the seed.
        before: the result of the last run, reused if that ran the same job.
        alone: as in `run_job`.
    """
    torch.set_num_threads(1)  # there is already one process for each core
    lesson, released = version.lesson, notebook(version)
    nb.metadata[NOTE]["wall"] = wall
    job = job_of(nb, released, files, wall=wall, package=lesson.package)
    job = replace(job, seed=seed_of(secret, lesson.name, job.seen))
    with ThreadPoolExecutor(1) as meanwhile:
        keys = meanwhile.submit(keys_of, version, job.seed)
        practice = meanwhile.submit(practice_of, version)
        meanwhile.submit(_get_page_ready, version)  # if this fails, so does the page later
        look = FirstLook(keys.result)
        ran = run(nb, job, look, before, alone=alone)
    verdicts = judge_notebook(lesson, nb, keys.result(), practice.result(), look.verdicts)
    sanitise(lesson, nb, released, verdicts)
    return ran, marks_of(nb, released, verdicts)


def job_of(
    nb: NotebookNode, released: NotebookNode, files: dict[str, bytes], *, wall: bool, package: str
) -> Job:
    """Return the job of a restored notebook, and note in it which cells are left out.

    Those are the lesson's own cells that no graded or student's cell needs.

    Args:
        released: the notebook that students were given.
        files: as in `grade_restored`.
    """
    left_out = not_needed(nb, released)
    if not nb.metadata[NOTE]["problem"]:
        nb.metadata[NOTE]["left_out"] = sorted(left_out)
    return make_job(nb, files, wall=wall, package=package, left_out=left_out)


def run(
    nb: NotebookNode,
    job: Job,
    look: Look = lambda *_: False,
    before: bytes = b"",
    *,
    alone: bool = True,
) -> Ran | None:
    """Run a restored notebook and put the outputs into it; None if there is nothing to run.

    Args:
        job: the notebook's.
        look: says which exercises to record again, on the practice seed.
        before, alone: as in `grade_restored`.
    """
    if nb.metadata[NOTE]["problem"]:
        return None
    ran = Ran.from_bytes(before)
    if ran is None or ran.key != job.key:
        ran = run_job(job, look, alone=alone)
    put_outputs(nb, ran)
    return ran


def at_most_twice(work: Callable[[bool], T]) -> T:
    """Do work that others of this machine may disturb; if they did, once more, and that counts.

    Args:
        work: is told whether it counts in any case.
    """
    try:
        return work(False)
    except Disturbed:
        return work(True)


_recording = Lock()
"""A process records one reference at a time; a Dask worker may have several threads."""


@lru_cache(maxsize=8)
def _reference(version: Version) -> Program:
    """Load the lesson's own answers, once in a process."""
    return load(version.lesson, _text(version))


@lru_cache(maxsize=8)
def _text(version: Version) -> NotebookNode:
    return parse_text(version.text.decode())


@lru_cache(maxsize=2)
def keys_of(version: Version, seed: int) -> dict[str, Key]:
    """Return the answer keys of one seed, by exercise, from one run of the reference.

    Raises:
        CourseError: the reference fails, or tolerances were not measured.
    """
    tolerances = json.loads(version.tolerances or b"{}")
    with _recording:
        torch.set_num_threads(1)  # holds for one thread
        reference = _reference(version)
        return {
            exercise.name: right_key(reference, exercise, seed, tolerances.get(exercise.name, {}))
            for exercise in version.lesson.exercises
        }


@lru_cache(maxsize=8)
def practice_of(version: Version) -> dict[str, Key]:
    """Return the keys of the practice seed, with known mistakes; none where they were not kept."""
    return unpack_keys(version.practice) if version.practice else {}


@lru_cache(maxsize=8)
def _get_page_ready(version: Version) -> None:
    """Make a page of the lesson once in a process, so that its first submission waits less."""
    feedback.get_ready(notebook(version))


def sanitise(
    lesson: Lesson,
    nb: NotebookNode,
    released: NotebookNode,
    verdicts: dict[str, Verdict],
) -> None:
    """Reduce a judged notebook to what pages may show: verdicts, text, pictures."""
    note = nb.metadata[NOTE]
    note["title"] = lesson.title
    sanitise_outputs(nb)
    sanitise_text(nb, released)
    if not colour_or_not(nb, released):
        note["remark"] = f"{note['remark']} {SAID}".strip()
    show_verdicts(lesson, nb, verdicts)


def marks_of(nb: NotebookNode, released: NotebookNode, verdicts: dict[str, Verdict]) -> Marks:
    """Return the scores and comments of a judged notebook.

    A written answer waits for a person, unless it was left as it was handed out or emptied.
    """
    given = {grade_id(cell): cell.source for cell in released.cells}
    automatic: dict[str, float | None] = {}
    points, written, comments = {}, {}, {}
    for cell in nb.cells:
        kind, name = cell.metadata.get("nbgrader", {}), grade_id(cell) or ""
        untouched = cell.source == given.get(name)
        if kind.get("grade"):
            verdict = verdicts.get(name.removeprefix("test_"))
            points[name] = float(kind["points"])
            if verdict is None:
                put_there_again = name in nb.metadata[NOTE]["notes"]
                empty = untouched or (not cell.source.strip() and not put_there_again)
                automatic[name] = 0.0 if empty else None
                written[name] = digest(cell.source)
            else:
                automatic[name] = verdict.points
        if kind.get("solution"):
            comments[name] = feedback.NO_ANSWER if untouched else None
    return Marks(automatic=automatic, points=points, written=written, comments=comments)


def put_schemes(nb: NotebookNode, version: Version) -> None:
    """Give the questions their marking schemes, which graders see and students do not."""
    cells, with_schemes = named_cells(nb), named_cells(_text(version))
    for written in version.lesson.written:
        name = written.question_cell
        cells[name].source = with_schemes[name].source


def to_file(nb: NotebookNode) -> bytes:
    """Return the bytes of a notebook's file, as nbgrader writes it."""
    text: str = nbformat.writes(nb)
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _noticed(notes: dict[str, list[str]]) -> str:
    """Return the notes on single cells as one line."""
    return "; ".join(f"{cell}: {text}" for cell, said in notes.items() for text in said)
