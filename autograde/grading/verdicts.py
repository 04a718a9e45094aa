"""The verdicts on a submission, kept as plain data in the metadata of its graded notebook."""

import hashlib
from typing import Any

from autograde import __version__
from autograde.rubric.judge import LineVerdict, Verdict
from autograde.rubric.key import Wrong

Plain = dict[str, Any]

NOTE = "autograde"
"""Where a notebook's metadata carries the problem and the notes from step to step."""

WRONG = ("name", "misconception", "hint")
"""What is kept of a known wrong answer: its words, not its outcomes."""


def graded_note(verdicts: dict[str, Verdict], seed: int) -> Plain:
    """What a graded notebook carries for feedback and report: JSON, without any expected value.

    The seed is named by a short digest, from which it cannot be had.
    """
    return {
        "verdicts": [_to_plain(verdict) for verdict in verdicts.values()],
        "version": __version__,
        "seed": hashlib.sha256(str(seed).encode()).hexdigest()[:6],
    }


def read_verdicts(note: Plain) -> dict[str, Verdict]:
    """The verdicts in a graded notebook's note, by exercise; none if it was graded without them."""
    return {plain["exercise"]: _from_plain(plain) for plain in note.get("verdicts", [])}


def judged(verdict: Verdict) -> bool:
    """Whether the lines were judged one by one, not all refused for one reason."""
    return verdict.attempted and any(
        line.passed or line.held or line.reason for line in verdict.lines
    )


def _to_plain(verdict: Verdict) -> Plain:
    wrong = verdict.misconception
    return {
        **vars(verdict),
        "lines": [vars(line) for line in verdict.lines],
        "misconception": wrong and {name: vars(wrong)[name] for name in WRONG},
    }


def _from_plain(plain: Plain) -> Verdict:
    wrong = plain["misconception"]
    return Verdict(
        **{
            **plain,
            "lines": tuple(LineVerdict(**line) for line in plain["lines"]),
            "misconception": Wrong(**wrong, outcomes=()) if wrong else None,
        }
    )
