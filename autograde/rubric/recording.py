"""What a rubric cell records: each call with its arguments and what came of it."""

from dataclasses import dataclass
from typing import Any

from autograde.rubric.packing import BadData, Plain, pack, unpack

MIME = "application/vnd.attention-notebooks.recording+json"
"""The MIME type under which a recording leaves the kernel, base64 of `Recording.to_bytes`."""

FIGURE_MIME = "application/vnd.attention-notebooks.figure"
"""The MIME type under which a picture's key leaves the kernel, beside a drawing or in its place."""

REFUSALS = ("ValueError", "AssertionError")
"""The exceptions that count as a refusal of bad arguments."""

INTERRUPTED = "an interrupt: a call ran too long"
"""Why a recording stopped, when it was interrupted."""


@dataclass(frozen=True)
class Outcome:
    """A value, or the exception raised instead of one."""

    value: Plain = None
    error: str | None = None
    message: str = ""

    @property
    def refused(self) -> bool:
        return self.error in REFUSALS

    @property
    def not_attempted(self) -> bool:
        return self.error == "NotImplementedError"


@dataclass(frozen=True)
class Line:
    """One line of a rubric: `kind` says what was done, `check` names the check that decides."""

    name: str
    kind: str
    before: Plain
    after: Plain
    outcome: Outcome
    check: str | None = None


@dataclass(frozen=True)
class Recording:
    """All lines of one rubric cell; `stopped` is the error that ended it early, if one did."""

    exercise: str
    lines: tuple[Line, ...]
    stopped: str | None = None

    def to_plain(self) -> Plain:
        return {
            "exercise": self.exercise,
            "stopped": self.stopped,
            "lines": [{**vars(line), "outcome": dict(vars(line.outcome))} for line in self.lines],
        }

    def to_bytes(self) -> bytes:
        return pack(self.to_plain())

    @classmethod
    def from_plain(cls, plain: Plain) -> "Recording":
        """The recording that `to_plain` described.

        Raises:
            BadData: `plain` is not the shape of a recording.
        """
        return cls(
            exercise=_take(plain, "exercise", str),
            stopped=_take(plain, "stopped", str | None),
            lines=tuple(_line(line) for line in _take(plain, "lines", list)),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Recording":
        return cls.from_plain(unpack(data))


def _line(plain: Plain) -> Line:
    outcome = _take(plain, "outcome", dict)
    return Line(
        name=_take(plain, "name", str),
        kind=_take(plain, "kind", str),
        before=_take(plain, "before", object),
        after=_take(plain, "after", object),
        check=_take(plain, "check", str | None),
        outcome=Outcome(
            value=_take(outcome, "value", object),
            error=_take(outcome, "error", str | None),
            message=_take(outcome, "message", str),
        ),
    )


def _take(plain: Plain, name: str, kind: Any) -> Any:
    if not isinstance(plain, dict) or name not in plain:
        raise BadData(f"{name!r} is missing")
    if not isinstance(plain[name], kind):
        raise BadData(f"{name!r} is a {type(plain[name]).__name__}")
    return plain[name]
