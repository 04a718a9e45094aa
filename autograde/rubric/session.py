"""The session in which rubric cells run: practice, grading, or recording the reference.

In practice a rubric is recorded on one seed that everybody shares. In grading it is recorded on the
submission's own seed, for the points. If a line fails there, the grader asks for a second
recording, on the practice seed, to recognise a misconception.
"""

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from IPython.core.error import StdinNotImplementedError
from IPython.core.getipython import get_ipython
from IPython.display import display

from autograde.rubric.recording import MIME, Recording
from autograde.values.packing import pack

PRACTICE_SEED = 20170612
"""Any number would do; practice data are made with this one."""


class CellEnded(Exception):
    """Ends a cell; a notebook shows the message alone, without a traceback.

    `shown` says that the cell has already shown it, as a panel.
    """

    shown = False

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class RecordedNotJudged(CellEnded):
    """Ends every rubric cell in grading, so that a grader without the judge gives no points."""


@dataclass(frozen=True)
class Session:
    """The seed to record a rubric on, and the function that gets the recording.

    `double` records in float64, to see how far float32 rounds. `package` is the course's; None in
    practice, where the imported one is. `begin` gets the exercise before its lines run, and may end
    the cell.
    """

    seed: int
    finish: Callable[[Recording], None]
    double: bool = False
    package: str | None = None
    begin: Callable[[str], None] = lambda _: None


_begun: list[Callable[[], Session]] = [lambda: Session(PRACTICE_SEED, hand_over)]
"""Each gives a session. The last is in force; the first is for a rubric that nobody grades."""


def practise(begin: Callable[[str], None], finish: Callable[[Recording], None]) -> None:
    """Say what a rubric cell does first, and with its recording, when nobody is grading.

    Under `nbgrader autograde` a rubric only records and never passes by itself, so a grader without
    the judge gives no points.
    """
    practice, only_recorded = Session(PRACTICE_SEED, finish, begin=begin), _begun[0]

    def ungraded() -> Session:
        return only_recorded() if run_by_nbgrader() == "autograde" else practice

    _begun[0] = ungraded


def run_by_nbgrader() -> str:
    """Return for what nbgrader runs the notebook, "autograde" or "validate"; "" if it does not."""
    return os.environ.get("NBGRADER_EXECUTION", "")


def current() -> Session:
    """Return the session in force."""
    return _begun[-1]()


@contextmanager
def recording(
    seed: int, *, double: bool = False, package: str | None = None
) -> Iterator[dict[str, Recording]]:
    """Within this block rubric cells only record; the recordings arrive in the dict."""
    recordings: dict[str, Recording] = {}
    session = Session(seed, lambda r: recordings.update({r.exercise: r}), double, package)
    _begun.append(lambda: session)
    try:
        yield recordings
    finally:
        _begun.pop()


def begin_grading(package: str) -> None:
    """From now on rubric cells of a course with this package hand over what they record.

    The seed is not known yet: the first rubric to be opened asks the grader for it.
    """
    if package:
        import_module(package)
    _begun.append(cache(partial(_graded, package)))


def _graded(package: str) -> Session:
    shell: Any = get_ipython()
    try:
        seed = int(shell.kernel.raw_input("the seed: "))
    except StdinNotImplementedError:
        raise RuntimeError("in grading, a rubric runs only in the lesson's own cell") from None
    shell.kernel._allow_stdin = False  # else an answer's own input() would wait for the grader
    return Session(seed, hand_over, package=package)


def use_practice_seed() -> None:
    """From now on rubric cells do with the practice seed what they did with another one."""
    _begun[-1] = partial(replace, current(), seed=PRACTICE_SEED)


def hand_over(recording: Recording) -> None:
    """Display a recording for the grader, and end the cell by RecordedNotJudged."""
    data = base64.b64encode(pack(recording)).decode()
    display({MIME: data, "text/plain": f"{recording.exercise}: recorded"}, raw=True)
    raise RecordedNotJudged(f"{recording.exercise}: recorded, not judged")
