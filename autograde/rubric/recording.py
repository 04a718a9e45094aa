"""What a rubric records: for each line its cases, for each case a call and its outcome."""

from dataclasses import dataclass

from autograde.values.base import Plain
from autograde.values.packing import from_plain, unpack

MIME = "application/vnd.autograde.recording+json"
"""The MIME type under which a recording leaves the kernel: packed, in base64."""
PRACTICE_MIME = "application/vnd.autograde.practice+json"
"""The MIME type under which the grader adds a rubric's practice recording to a notebook."""

REFUSED = (ValueError, AssertionError)
"""The exceptions that count as a refusal of bad arguments."""
REFUSAL = "a ValueError"
"""The value that a probe records in place of a result when a call refused its arguments. Messages
show it as it is, and it is no right result of any exercise."""
REFUSAL_BY = "refused by "
"""How the value begins instead where a rubric asks for another error; its name follows."""
RETURNED = "returns an error instead of raising it"
"""The value that a probe records where a call returns the error that it should raise."""


@dataclass(frozen=True)
class Outcome:
    """A value, or the exception raised instead of one; `at` is the student's line that raised."""

    value: Plain = None
    error: str | None = None
    message: str = ""
    at: str = ""

    @property
    def refused(self) -> bool:
        return self.error in [each.__name__ for each in REFUSED]

    @property
    def breaks_contract(self) -> bool:
        """True when the answer has something else than its contract names, or more."""
        return self.error == "ContractBroken" or self.has_more

    @property
    def has_more(self) -> bool:
        """True for a layer with a parameter that its contract does not name."""
        return self.error == "HasMore"

    @property
    def not_attempted(self) -> bool:
        """True for the stub's own error, which has no message; those of torch have one."""
        return self.error == "NotImplementedError" and not self.message


@dataclass(frozen=True)
class Case:
    """One call as a person would type it, its arguments before it, and its outcome."""

    call: str
    before: Plain
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
    """The exception that ended a rubric early; `missing` is the name that was not defined.

    `near` is a name like it that the notebook has, `at` the line of the rubric or of a helper.
    """

    error: str
    message: str
    missing: str = ""
    near: str = ""
    at: str = ""


@dataclass(frozen=True)
class Recording:
    """All lines of one rubric cell on one seed."""

    exercise: str
    lines: tuple[Line, ...]
    stopped: Stop | None = None


def unpack_recording(data: bytes) -> Recording:
    """Return the recording in untrusted bytes.

    Raises:
        BadData: the bytes are not a recording that was packed.
    """
    return from_plain(Recording, unpack(data))
