"""In grading, a rubric cell hands its recording over and then fails on purpose."""

import base64
from functools import cache
from typing import Any

from IPython.core.error import StdinNotImplementedError
from IPython.core.getipython import get_ipython
from IPython.display import display

from autograde.rubric.recording import MIME, Recording
from autograde.rubric.session import Session, begin


class RecordedNotJudged(Exception):
    """Ends every rubric cell in grading, so that a grader without the judge gives no points."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def begin_grading() -> None:
    """From now on rubric cells hand over what they record.

    The seed is not known yet: the first rubric to be opened asks the grader for it.
    """
    begin(_graded)


@cache
def _graded() -> Session:
    shell: Any = get_ipython()
    try:
        seed = int(shell.kernel.raw_input("the seed: "))
    except StdinNotImplementedError:
        raise RuntimeError("in grading a rubric runs in the lesson's own cell only") from None
    shell.kernel._allow_stdin = False  # else an answer's own input() would wait for the grader
    return Session(seed, hand_over)


def hand_over(recording: Recording) -> None:
    """Display the recording for the grader.

    Raises:
        RecordedNotJudged: always.
    """
    data = base64.b64encode(recording.to_bytes()).decode()
    display({MIME: data, "text/plain": f"{recording.exercise}: recorded"}, raw=True)
    raise RecordedNotJudged(f"{recording.exercise}: recorded, not judged")
