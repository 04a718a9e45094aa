"""Judge an executed notebook: its recordings are read as data, never run."""

import base64
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from IPython.core.error import StdinNotImplementedError
from nbformat import NotebookNode

from autograde.course.cells import named_cells
from autograde.course.lessons import Exercise
from autograde.course.package import bring_in
from autograde.course.versions import Version
from autograde.grader import grader_of
from autograde.grading.record import Record
from autograde.grading.submission import Problem
from autograde.rubric.judge import Verdict, failed, judge
from autograde.rubric.key import Key
from autograde.rubric.names import names_of
from autograde.rubric.panel import repair_first
from autograde.rubric.recording import MIME, PRACTICE_MIME, Recording, unpack_recording
from autograde.values.text import visible

UNJUDGED = "The grader failed on what this cell recorded; your teacher will look at it."
OF_A_CELL = re.compile(r"\(\d+\.py, (line \d+)\)")
"""The place of a syntax error; IPython keeps a cell under the name of a temporary file."""


class FirstLook:
    """Judges the rubric cells while their kernel waits, to know which ones to record again.

    It never raises: an error here, even in the keys, recurs and is reported when verdicts are due.
    """

    def __init__(self, keys: Callable[[], dict[str, Key]]) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self._keys = keys

    def __call__(self, name: str, outputs: list[NotebookNode]) -> bool:
        """Return whether the exercise's rubric should run again, on the practice seed."""
        if not _recorded(outputs, MIME):
            return False
        try:
            verdict = self.verdicts[name] = _judge_outputs(name, outputs, self._keys()[name])
        except Exception:
            return False
        return _wants_practice(verdict)


def judge_notebook(
    record: Record,
    version: Version,
    keys: dict[str, Key],
    practice: dict[str, Key],
    seen: Mapping[str, Verdict],
) -> Record:
    """Put the verdict on every exercise into the record.

    If judging fails on one exercise, the others keep their points, and the record says so.

    Args:
        record: its notebook has run; outputs are as they left the kernel.
        keys: by exercise, for the submission's own seed; they decide the points.
        practice: by exercise, for the practice seed; a misconception is recognised with them.
            Without them it is recognised with `keys`, if these know of mistakes.
        seen: verdicts that a `FirstLook` has already reached.
    """
    lesson = version.lesson
    bring_in(lesson.package)
    cells = named_cells(record.nb)
    problem = record.problem.words if record.problem else ""
    verdicts: dict[str, Verdict] = {}
    unjudged: dict[str, str] = {}  # tracebacks
    for exercise in lesson.exercises:
        name = exercise.name
        try:
            outputs = cells[exercise.rubric_cell].get("outputs", [])
            verdict = seen.get(name) or _judge_outputs(name, outputs, keys[name], problem)
        except Exception as error:
            verdict = failed(keys[name], f"{UNJUDGED} {type(error).__name__}: {error}")
            unjudged[name] = traceback.format_exc()
        if name in practice and _wants_practice(verdict):
            try:
                verdict = _with_beliefs(verdict, outputs, practice[name])
            except Exception:  # the points stand
                unjudged[name] = traceback.format_exc()
        if not verdict.passed:
            called = _called(exercise, cells)
            needs = [each for each in keys[name].needs if each in called]
            earlier = [each for each in needs if not verdicts[each].passed]
            verdict = _explained(verdict, exercise, record, earlier)
        verdicts[name] = verdict
    if unjudged:
        words = f"The judge failed on {', '.join(unjudged)}: look at the feedback."
        failure = record.problem or Problem("the judge failed", words)
        record = replace(record, problem=failure, fault="".join(unjudged.values()))
    now = f"{date.today():%Y-%m-%d}"
    return replace(record, verdicts=verdicts, grader=grader_of(lesson.package), date=now)


def _judge_outputs(name: str, outputs: list[NotebookNode], key: Key, problem: str = "") -> Verdict:
    """Judge what the rubric cell recorded, or say why nothing of it counts."""
    found = _recorded(outputs, MIME)
    if not found:
        return failed(key, problem or _silence(outputs))
    if len(found) > 1:
        return failed(key, "The rubric cell handed over more than one recording; none counts.")
    try:
        recording = _read(found[0])
    except ValueError as error:
        return failed(key, f"What the rubric cell recorded cannot be read: {error}")
    if recording.exercise != name:
        return failed(key, "The rubric cell handed over the recording of another exercise.")
    return judge(recording, key)


def _recorded(outputs: list[NotebookNode], mime: str) -> list[str]:
    return [str(output["data"][mime]) for output in outputs if mime in output.get("data", {})]


def _read(data: str) -> Recording:
    return unpack_recording(base64.b64decode(data, validate=True))


def _silence(outputs: list[NotebookNode]) -> str:
    errors = [output for output in outputs if output.output_type == "error"]
    if errors:
        return f"The rubric cell ended with {errors[-1].ename}: {errors[-1].evalue}"
    return "The rubric cell recorded nothing."


def _wants_practice(verdict: Verdict) -> bool:
    """Return whether a recording on the practice seed could reveal a misconception."""
    return verdict.judged and not verdict.passed


def _with_beliefs(verdict: Verdict, outputs: list[NotebookNode], practice: Key) -> Verdict:
    """Add the misconceptions that the recording on the practice seed shows.

    The recording may be forged, so each has to explain a line that is wrong on the other seed.
    """
    wrong = {line.name for line in verdict.lines if not line.passed}
    try:
        (recording,) = map(_read, _recorded(outputs, PRACTICE_MIME))
    except ValueError:  # there is none, or the student's code spoilt it: points do not need it
        return replace(verdict, beliefs=())
    if recording.exercise != practice.exercise:
        return replace(verdict, beliefs=())
    found = judge(recording, practice, trusted=True).beliefs
    found = tuple(each for each in found if wrong.intersection(each.lines))
    return replace(verdict, beliefs=found)


def _called(exercise: Exercise, cells: Mapping[str, NotebookNode]) -> frozenset[str]:
    """Return the names that an answer and its rubric need."""
    answer, rubric = (names_of(cells[n].source) for n in (exercise.name, exercise.rubric_cell))
    return answer.needed | rubric.needed


def _explained(
    verdict: Verdict,
    exercise: Exercise,
    record: Record,
    earlier: list[str],
) -> Verdict:
    """Return the verdict on a wrong answer with what happened around it in its note.

    Args:
        earlier: exercises that it calls and that are wrong themselves. Misconceptions would be
            theirs.
    """
    said = [verdict.note]
    said += [f"Answer cell: {text}." for text in record.notes.get(exercise.name, [])]
    said += [f"Rubric cell: {text}." for text in record.notes.get(exercise.rubric_cell, [])]
    cells = named_cells(record.nb)
    outputs = cells[exercise.name].get("outputs", [])
    said += [visible(_raised(each)) for each in outputs if each.output_type == "error"]
    if not verdict.called and [*cells].index(exercise.rubric_cell) < [*cells].index(exercise.name):
        said.append("The answer cell stands below its rubric: move it above.")
    if earlier and verdict.judged:
        said.append(repair_first(earlier))
        verdict = replace(verdict, beliefs=())
    return replace(verdict, note="\n".join(text for text in said if text))


def _raised(output: NotebookNode) -> str:
    """Return what ended an answer cell, in a sentence."""
    if output.ename == StdinNotImplementedError.__name__:
        return "The answer cell calls input(). Nobody answers in grading: take it out."
    said = OF_A_CELL.sub(r"(\1)", output.evalue)
    return f"The answer cell raised {output.ename}: {said}"
