"""From a recording and a key to a verdict. Pure: the same for practice and for grading."""

import re
from dataclasses import dataclass, replace

from autograde.rubric.compare import Difference
from autograde.rubric.key import Key, Wrong
from autograde.rubric.lines import alike, apart, difference_of, is_claim, outcomes_of
from autograde.rubric.recording import INTERRUPTED, Line, Outcome, Recording

SAME_INPUTS = 1e-6
"""How far recorded arguments may be from the reference's, relative to their size."""

BANNED = "The exercise is to do without what it forbids; with it, no line gives points."
HELD = "not counted until a line of numbers is right"


@dataclass(frozen=True)
class LineVerdict:
    """One rubric line: passed or not, its share of the points, and why it failed.

    `held` is a line that is right but rests on the word of the student's process alone, while no
    line of numbers is right.
    """

    name: str
    passed: bool
    points: float
    reason: str = ""
    held: bool = False


@dataclass(frozen=True)
class Verdict:
    """One exercise judged. `note` says what kept it from being judged line by line."""

    exercise: str
    points: float
    max_points: float
    lines: tuple[LineVerdict, ...]
    misconception: Wrong | None = None
    note: str = ""
    attempted: bool = True

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)


def judge(recording: Recording, key: Key, source: str | None = None) -> Verdict:
    """The verdict on one exercise.

    Args:
        recording: what the rubric cell recorded; untrusted in grading.
        key: the expected outcomes for the same seed.
        source: the submitted answer's text, which replaces what the kernel said of it.
    """
    recorded = {line.name: line for line in recording.lines}
    if len(recorded) < len(recording.lines):
        return failed(key, "The rubric recorded a line twice; nothing of it counts.")
    if other := _other_inputs(recorded, key):
        return failed(key, other)
    outcomes = outcomes_of(recording, key, source)
    if all(o.not_attempted for o in _answers(key, outcomes)):
        return replace(failed(key, "Not attempted yet."), attempted=False)
    differences = [
        difference_of(line, outcome)
        for line, outcome in zip(key.expected.lines, outcomes, strict=True)
    ]
    banned = any(
        line.kind == "forbids" and outcome.error is None and outcome.value
        for line, outcome in zip(key.expected.lines, outcomes, strict=True)
    )
    lines = _line_verdicts(key, differences, share=0.0 if banned else key.points / len(differences))
    if all(line.passed for line in lines):
        return Verdict(key.exercise, key.points, key.points, lines)
    return Verdict(
        key.exercise,
        points=round(sum(line.points for line in lines), 4),
        max_points=key.points,
        lines=lines,
        misconception=recognise(outcomes, key),
        note=BANNED if banned else _stopped(recording),
    )


def _line_verdicts(
    key: Key, differences: list[Difference], share: float
) -> tuple[LineVerdict, ...]:
    rows = list(zip(key.expected.lines, differences, key.tolerances, strict=True))
    vouched = any(d.distance <= tolerance and not is_claim(line) for line, d, tolerance in rows)
    verdicts = []
    for line, found, tolerance in rows:
        if found.distance > tolerance:
            verdicts.append(LineVerdict(line.name, False, 0.0, found.symptom))
        elif is_claim(line) and not vouched:
            verdicts.append(LineVerdict(line.name, False, 0.0, HELD, held=True))
        else:
            verdicts.append(LineVerdict(line.name, True, share))
    return tuple(verdicts)


def failed(key: Key, note: str) -> Verdict:
    """No points, for one reason that concerns every line."""
    lines = tuple(LineVerdict(line.name, False, 0.0, "") for line in key.expected.lines)
    return Verdict(key.exercise, 0.0, key.points, lines, note=note)


def _answers(key: Key, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes of the lines that call the answer."""
    pairs = zip(key.expected.lines, outcomes, strict=True)
    return [outcome for line, outcome in pairs if line.kind not in ("arguments", "forbids")]


def _stopped(recording: Recording) -> str:
    if recording.stopped is None:
        return ""
    if missing := re.fullmatch(r"NameError: name '(\w+)' is not defined", recording.stopped):
        return (
            f"There is no `{missing[1]}` yet. Run the cell that defines it first, then this one. "
            "If that cell ends in an error, Python names the line: mend it and run the cell again."
        )
    if recording.stopped == INTERRUPTED:
        return "The rubric was stopped: a call ran too long."
    return f"The rubric was stopped by {recording.stopped}"


def _other_inputs(recorded: dict[str, Line], key: Key) -> str:
    for expected in key.expected.lines:
        line = recorded.get(expected.name)
        if line is not None and apart(line.before, expected.before).distance > SAME_INPUTS:
            return (
                f"The inputs of the line “{line.name}” are not those the reference was run on. "
                "That is no fault of the answer itself: something in this notebook or environment, "
                "a setting of torch perhaps, changes them. Restart the kernel and look for it."
            )
    return ""


def recognise(outcomes: list[Outcome], key: Key) -> Wrong | None:
    """The known wrong answer whose outcomes these are, if there is one."""
    for wrong in key.wrong:
        if all(
            alike(line, got, known, tolerance)
            for line, got, known, tolerance in zip(
                key.expected.lines, outcomes, wrong.outcomes, key.tolerances, strict=True
            )
        ):
            return wrong
    return None
