"""How a rubric cell is being run: for practice, for grading, or to record the reference."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from autograde.rubric.recording import Recording

PRACTICE_SEED = 20170612  # the day "Attention Is All You Need" appeared


@dataclass(frozen=True)
class Session:
    """The seed of the inputs, and what happens with a finished recording."""

    seed: int
    finish: Callable[[Recording], None]
    double: bool = False


_current: Callable[[], Session] | None = None
_practise: Callable[[Recording], None] | None = None


def practise(answer: Callable[[Recording], None]) -> None:
    """Say what a rubric cell does with its recording when nobody is grading."""
    global _practise
    _practise = answer


def current() -> Session:
    """Return the session in force.

    It is practice, unless the grader began another or nbgrader is autograding. Under nbgrader a
    rubric records and never passes by itself, so a grader without the judge gives no points.
    """
    if _current is not None:
        return _current()
    if _practise is None or os.environ.get("NBGRADER_EXECUTION") == "autograde":
        from autograde.rubric import hand_over

        return Session(PRACTICE_SEED, hand_over.hand_over)
    return Session(PRACTICE_SEED, _practise)


def begin(session: Callable[[], Session]) -> None:
    """For the rest of this process the one in force is what `session` gives when it is needed."""
    global _current
    _current = session


@contextmanager
def recording(seed: int, *, double: bool = False) -> Iterator[dict[str, Recording]]:
    """Within this block rubric cells only record; the recordings arrive in the dict."""
    global _current
    recordings: dict[str, Recording] = {}
    session = Session(seed, lambda r: recordings.update({r.exercise: r}), double)
    before = _current
    begin(lambda: session)
    try:
        yield recordings
    finally:
        _current = before
