"""The record of a rubric: for each line its cases, for each case a call and its outcome."""

from dataclasses import dataclass
from typing import Any

from autograde.rubric.packing import BadData, Plain, pack, unpack

MIME = "application/vnd.attention-notebooks.recording+json"
"""The MIME type under which recordings leave the kernel, base64 of `pack_recordings`."""

FIGURE_MIME = "application/vnd.attention-notebooks.figure"
"""The MIME type under which a picture's key leaves the kernel, beside a drawing or in its place."""

REFUSALS = ("ValueError", "AssertionError")
"""The exceptions that count as a refusal of bad arguments."""


@dataclass(frozen=True)
class Outcome:
    """A value, or the exception raised instead of one; `at` is the student's line that raised."""

    value: Plain = None
    error: str | None = None
    message: str = ""
    at: str = ""

    @property
    def refused(self) -> bool:
        return self.error in REFUSALS

    @property
    def not_attempted(self) -> bool:
        return self.error == "NotImplementedError"


@dataclass(frozen=True)
class Case:
    """One call as a person would type it, its arguments before and after, and its outcome."""

    call: str
    before: Plain
    after: Plain
    outcome: Outcome


@dataclass(frozen=True)
class Line:
    """One line of a rubric. `kind` names an entry of `kinds.KINDS`, which judges its cases."""

    name: str
    kind: str
    cases: tuple[Case, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Stop:
    """The exception that ended a rubric early; `missing` is the name that was not defined."""

    error: str
    message: str
    missing: str = ""


@dataclass(frozen=True)
class Recording:
    """All lines of one rubric cell on one seed."""

    exercise: str
    lines: tuple[Line, ...]
    stopped: Stop | None = None

    def to_plain(self) -> Plain:
        return {
            "exercise": self.exercise,
            "stopped": self.stopped and dict(vars(self.stopped)),
            "lines": [
                {
                    **vars(line),
                    "cases": [{**vars(c), "outcome": dict(vars(c.outcome))} for c in line.cases],
                }
                for line in self.lines
            ],
        }

    @classmethod
    def from_plain(cls, plain: Plain) -> "Recording":
        """Return the recording that `to_plain` described.

        Raises:
            BadData: `plain` does not have the shape of a recording.
        """
        stopped = _take(plain, "stopped", dict | None)
        return cls(
            exercise=_take(plain, "exercise", str),
            stopped=stopped and Stop(**{name: _take(stopped, name, str) for name in STOP}),
            lines=tuple(_line(line) for line in _take(plain, "lines", list)),
        )


STOP = ("error", "message", "missing")


def pack_recordings(recordings: list[Recording]) -> bytes:
    """Return the bytes that leave the kernel: the same exercise recorded on one seed or more."""
    return pack([recording.to_plain() for recording in recordings])


def unpack_recordings(data: bytes) -> list[Recording]:
    """Return the recordings in bytes that may come from anybody.

    Raises:
        BadData: the bytes are not what `pack_recordings` writes.
    """
    plain = unpack(data)
    if not isinstance(plain, list):
        raise BadData(f"a list of recordings was expected, not a {type(plain).__name__}")
    return [Recording.from_plain(recording) for recording in plain]


def _line(plain: Plain) -> Line:
    return Line(
        name=_take(plain, "name", str),
        kind=_take(plain, "kind", str),
        cases=tuple(_case(case) for case in _take(plain, "cases", list | tuple)),
        weight=_take(plain, "weight", float),
    )


def _case(plain: Plain) -> Case:
    outcome = _take(plain, "outcome", dict)
    return Case(
        call=_take(plain, "call", str),
        before=_take(plain, "before", object),
        after=_take(plain, "after", object),
        outcome=read_outcome(outcome),
    )


def read_outcome(plain: Plain) -> Outcome:
    """Return the outcome that a dict describes; raises BadData when it describes none."""
    return Outcome(
        value=_take(plain, "value", object),
        error=_take(plain, "error", str | None),
        message=_take(plain, "message", str),
        at=_take(plain, "at", str),
    )


def _take(plain: Plain, name: str, kind: Any) -> Any:
    if not isinstance(plain, dict) or name not in plain:
        raise BadData(f"{name!r} is missing")
    if not isinstance(plain[name], kind):
        raise BadData(f"{name!r} is a {type(plain[name]).__name__}")
    return plain[name]
