"""One submission, top to bottom: restore, run, judge, make harmless, page.

A worker does all of it, here or on another machine; the coordinator only saves what comes back.
nbgrader's own commands and `autograde self` take the same steps with `grade_restored`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf
from threading import Lock
from typing import TypeVar

from nbformat import NotebookNode

from autograde.course.lesson_files import parse_text
from autograde.course.lessons import Lesson, named_cells
from autograde.course.versions import Version, notebook, version_of
from autograde.grading import feedback
from autograde.grading.reading.parse import parse_submission
from autograde.grading.reading.restore import restore
from autograde.grading.record import Record, is_broken, to_file, write_note
from autograde.grading.running.job import Ran, job_of, put_outputs
from autograde.grading.running.reference import Program, load, right_key
from autograde.grading.running.run import run_job
from autograde.grading.sanitise import SAID, colour_or_not, sanitise_outputs, sanitise_text
from autograde.grading.submission import Disturbed, Graded, Marks, Task
from autograde.grading.verdicts import FirstLook, judge_notebook, show_verdicts
from autograde.rubric.key import Key, unpack_keys
from autograde.values.loaded import compute_on_one_thread
from autograde.values.text import digest

T = TypeVar("T")


@dataclass(frozen=True)
class Rules:
    """All by which the submissions of a lesson are graded.

    `released` is the notebook that students were given; `keys` makes the answer keys of a seed,
    `practice` those that know of mistakes. `secret` is as in `job_of`. `ways` are right answers to
    show to those who have found one. `get_ready` makes pages quick.
    """

    lesson: Lesson
    released: NotebookNode
    keys: Callable[[int], dict[str, Key]]
    practice: Callable[[], dict[str, Key]] = dict
    secret: bytes = b""
    ways: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    get_ready: Callable[[], None] = lambda: None


def rules_of(version: Version, secret: bytes) -> Rules:
    return Rules(
        version.lesson,
        notebook(version),
        partial(keys_of, version),
        partial(practice_of, version),
        secret,
        json.loads(version.ways or b"{}"),
        partial(_get_page_ready, version),
    )


def grade_submission(task: Task, versions: tuple[Version, ...]) -> Graded:
    """Grade a submission, made from one of these versions of its lesson.

    Raises:
        CourseError: it was made from none of them, the reference fails, or no kernel can be
            started.
        Disturbed: it should be graded again, alone.
    """
    record = parse_submission(task.submission)
    version = version_of(record.nb, versions)
    rules = rules_of(version, task.secret)
    record = replace(restore(record, rules.released), earlier=version.kept, walled=task.wall)
    files = task.submission.files
    record, ran, new = grade_restored(
        record, rules, files, wall=task.wall, before=task.ran, alone=task.alone
    )
    put_schemes(record.nb, version)
    marks, nb = task.marks.graded_again(new), write_note(record)
    notebook_file = to_file(nb)  # the page puts scores into it, and takes marking schemes out
    return Graded(
        notebook=notebook_file,
        marks=marks,
        page=feedback.page(nb, marks),
        ran=ran.to_bytes() if ran else b"",
        problem=record.noticed,
        fault=record.fault,
        seconds=ran.seconds if ran else 0.0,
        earlier=version.kept,
        broken=is_broken(record.problem, record.verdicts),
    )


def grade_restored(
    record: Record,
    rules: Rules,
    files: dict[str, bytes],
    *,
    wall: bool,
    before: bytes = b"",
    alone: bool = True,
) -> tuple[Record, Ran | None, Marks]:
    """Run a restored notebook, judge it and make it harmless; return its run and marks as well.

    The reference runs while the notebook does.

    Args:
        files: what was handed in beside it.
        before: the result of the last run, reused if that ran the same job.
        alone: as in `run_job`.
    """
    compute_on_one_thread()  # there is already one process for each core
    record, job = job_of(
        record, rules.lesson, rules.released, files, wall=wall, secret=rules.secret
    )
    ran = None if record.problem else Ran.from_bytes(before)
    with ThreadPoolExecutor(1) as meanwhile:
        keys = meanwhile.submit(rules.keys, job.seed)
        practice = meanwhile.submit(rules.practice)
        meanwhile.submit(rules.get_ready)  # if this fails, so does the page later
        # a run on the practice seed needs no second recording on it
        look = FirstLook(keys.result if rules.secret else dict)
        if not record.problem and (ran is None or ran.key != job.key):
            ran = run_job(job, look, alone=alone)
    if ran:
        record = put_outputs(record, ran)
    record = judge_notebook(
        record, rules.lesson, keys.result(), practice.result(), look.verdicts, rules.released
    )
    record = make_harmless(record, rules)
    return record, ran, marks_of(record, rules.released)


def at_most_twice(work: Callable[[bool], T]) -> T:
    """Do work that others of this machine may disturb; if they did, once more, and that counts.

    The work is told whether it counts in any case.
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
    return load(version.lesson, _text(version), version.files)


@lru_cache(maxsize=8)
def _text(version: Version) -> NotebookNode:
    return parse_text(version.text.decode("utf-8-sig"))


@lru_cache(maxsize=2)
def keys_of(version: Version, seed: int) -> dict[str, Key]:
    """Return the answer keys of one seed, by exercise, from one run of the reference.

    Raises:
        CourseError: the reference fails, or tolerances were not measured.
    """
    tolerances = json.loads(version.tolerances or b"{}")
    with _recording:
        reference = _reference(version)
        compute_on_one_thread()  # holds for one thread
        return {
            exercise.name: _withdraw(
                right_key(reference, exercise, seed, tolerances.get(exercise.name, {})),
                exercise.withdrawn,
            )
            for exercise in version.lesson.exercises
        }


def _withdraw(key: Key, lines: tuple[str, ...]) -> Key:
    """Return a key that calls these lines right, whatever an answer does."""
    pairs = zip(key.expected.lines, key.tolerances, strict=True)
    return replace(key, tolerances=tuple(inf if line.name in lines else t for line, t in pairs))


@lru_cache(maxsize=8)
def practice_of(version: Version) -> dict[str, Key]:
    """Return the keys of the practice seed, with known mistakes; none where they were not kept."""
    return unpack_keys(version.practice) if version.practice else {}


@lru_cache(maxsize=8)
def _get_page_ready(version: Version) -> None:
    """Make a page of the lesson once in a process, so that its first submission waits less."""
    feedback.get_ready(notebook(version))


def make_harmless(record: Record, rules: Rules) -> Record:
    """Reduce a judged notebook to what pages may show: verdicts, text, pictures."""
    sanitise_outputs(record.nb)
    sanitise_text(record.nb, rules.released)
    plain = not colour_or_not(record.nb, rules.released)
    show_verdicts(record, rules.lesson)
    remarks = [*record.remarks, *([SAID] if plain else []), *_withdrawn(record, rules.lesson)]
    right = [name for name, verdict in record.verdicts.items() if verdict.passed]
    ways = {name: rules.ways[name] for name in right if name in rules.ways}
    return replace(record, title=rules.lesson.title, remarks=remarks, ways=ways)


def _withdrawn(record: Record, lesson: Lesson) -> Iterator[str]:
    for exercise in lesson.exercises:
        for line in record.verdicts[exercise.name].lines:
            if line.name in exercise.withdrawn and line.passed:
                yield (
                    f"Your teacher has withdrawn a line of {exercise.name}, so it counts as right: "
                    f"“{line.name}”."
                )


def marks_of(record: Record, released: NotebookNode) -> Marks:
    """Return the scores and comments of a judged notebook.

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
    return Marks(automatic=automatic, points=points, written=written, comments=comments)


def put_schemes(nb: NotebookNode, version: Version) -> None:
    """Give the questions their marking schemes, which graders see and students do not."""
    cells, with_schemes = named_cells(nb), named_cells(_text(version))
    for written in version.lesson.written:
        name = written.question_cell
        cells[name].source = with_schemes[name].source
