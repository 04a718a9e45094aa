"""Judge an executed notebook: its recordings are read as data, never run.

The verdicts are kept as plain data in the metadata of the graded notebook.
"""

import base64
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import date
from typing import Any

from nbformat import NotebookNode

from autograde.course import Exercise, Lesson, named_cells
from autograde.course_package import bring_in
from autograde.grader import grader_of
from autograde.grading.restore import NOTE
from autograde.rubric.judge import Verdict, failed, judge
from autograde.rubric.key import Key
from autograde.rubric.misconceptions import Belief
from autograde.rubric.names import names_of
from autograde.rubric.panel import advice, repair_first, to_display
from autograde.rubric.recording import MIME, PRACTICE_MIME, Recording, unpack_recording
from autograde.values.packing import from_plain
from autograde.values.text import visible

Plain = dict[str, Any]

UNJUDGED = "The grader failed on what this cell recorded; your teacher will look at it."


def judge_notebook(
    lesson: Lesson,
    nb: NotebookNode,
    keys: dict[str, Key],
    practice: dict[str, Key],
    seen: Mapping[str, Verdict] | None = None,
) -> dict[str, Verdict]:
    """Return the verdict on every exercise; the notebook's note keeps them.

    If judging fails on one exercise, the others keep their points, and the note says so.

    Args:
        nb: the executed notebook, outputs as they left the kernel.
        keys: by exercise, for the submission's own seed; they decide the points.
        practice: by exercise, for the practice seed; a misconception is recognised with them.
            Without them it is recognised with `keys`, if these know of mistakes.
        seen: verdicts that a `FirstLook` has already reached.
    """
    bring_in(lesson.package)
    cells, note = named_cells(nb), nb.metadata[NOTE]
    problem, notes = note["problem"], note["notes"]
    verdicts: dict[str, Verdict] = {}
    unjudged: dict[str, str] = {}  # tracebacks
    for exercise in lesson.exercises:
        name = exercise.name
        try:
            outputs = cells[exercise.rubric_cell].get("outputs", [])
            verdict = (seen or {}).get(name) or _judge_outputs(name, outputs, keys[name], problem)
        except Exception as error:
            verdict = failed(keys[name], f"{UNJUDGED} {type(error).__name__}: {error}")
            unjudged[name] = traceback.format_exc()
        try:
            if name in practice and _wants_practice(verdict):
                wrong = {line.name for line in verdict.lines if not line.passed}
                found = _beliefs(outputs, practice[name])  # it may be forged: it has to explain
                found = tuple(each for each in found if wrong.intersection(each.lines))
                verdict = replace(verdict, beliefs=found)
        except Exception:  # the points stand
            unjudged[name] = traceback.format_exc()
        if not verdict.passed:
            answer, rubric = (names_of(cells[n].source) for n in (name, exercise.rubric_cell))
            called = answer.needed | rubric.needed
            earlier = [n for n in keys[name].needs if n in called and not verdicts[n].passed]
            said = [verdict.note, *_around(exercise, cells, notes)]
            if earlier and verdict.judged:
                said.append(repair_first(earlier))
                verdict = replace(verdict, beliefs=())  # they would be the earlier one's
            verdict = replace(verdict, note="\n".join(text for text in said if text))
        verdicts[name] = verdict
    if unjudged and not problem:
        words = f"The judge failed on {', '.join(unjudged)}: look at the feedback."
        note |= {"problem": words, "kind": "the judge failed"}
        note["fault"] = "".join(unjudged.values())
    note |= graded_note(verdicts, lesson.package)
    return verdicts


def _judge_outputs(name: str, outputs: list[NotebookNode], key: Key, problem: str = "") -> Verdict:
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


def _wants_practice(verdict: Verdict) -> bool:
    """Return whether a recording on the practice seed could reveal a misconception."""
    return verdict.judged and not verdict.passed


def _beliefs(outputs: list[NotebookNode], practice: Key) -> tuple[Belief, ...]:
    """Return the misconceptions that the recording on the practice seed shows."""
    try:
        (recording,) = map(_read, _recorded(outputs, PRACTICE_MIME))
    except ValueError:  # there is none, or the student's code spoilt it: points do not need it
        return ()
    if recording.exercise != practice.exercise:
        return ()
    return judge(recording, practice, trusted=True).beliefs


def _recorded(outputs: list[NotebookNode], mime: str) -> list[str]:
    return [str(output["data"][mime]) for output in outputs if mime in output.get("data", {})]


def _read(data: str) -> Recording:
    return unpack_recording(base64.b64decode(data, validate=True))


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


def _silence(outputs: list[NotebookNode]) -> str:
    errors = [output for output in outputs if output.output_type == "error"]
    if errors:
        return f"The rubric cell ended with {errors[-1].ename}: {errors[-1].evalue}"
    return "The rubric cell recorded nothing."


def _around(
    exercise: Exercise, cells: dict[str, NotebookNode], notes: dict[str, list[str]]
) -> list[str]:
    said = [f"Answer cell: {text}." for text in notes.get(exercise.name, [])]
    said += [f"Rubric cell: {text}." for text in notes.get(exercise.rubric_cell, [])]
    for output in cells[exercise.name].get("outputs", []):
        if output.output_type == "error":
            said.append(visible(f"The answer cell raised {output.ename}: {output.evalue}"))
    return said


def show_verdicts(lesson: Lesson, nb: NotebookNode, verdicts: dict[str, Verdict]) -> None:
    """Replace the outputs of each rubric cell with the panel of its verdict."""
    cells = named_cells(nb)
    for exercise in lesson.exercises:
        verdict = verdicts[exercise.name]
        data = to_display(verdict, advice(verdict, named=True))
        cells[exercise.rubric_cell].outputs = [
            NotebookNode(output_type="display_data", data=data, metadata={})
        ]


def graded_note(verdicts: dict[str, Verdict], package: str) -> Plain:
    """Return the data that a graded notebook carries for feedback and report, as plain JSON."""
    return {
        "verdicts": [asdict(verdict) for verdict in verdicts.values()],
        "version": grader_of(package).name,
        "date": f"{date.today():%Y-%m-%d}",
    }


def read_verdicts(note: Plain) -> dict[str, Verdict]:
    """Return the verdicts in a graded notebook's note, by exercise; none if it has none."""
    return {each["exercise"]: from_plain(Verdict, each) for each in note.get("verdicts", [])}
