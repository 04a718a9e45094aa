"""In grading, a rubric cell hands its recording over and then fails on purpose."""

import base64

from IPython.display import display

from autograde.student.session import Session, begin
from autograde.verdict.recording import MIME, Recording


class RecordedNotJudged(Exception):
    """Ends every rubric cell in grading, so that a grader without the judge gives no points."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def begin_grading(seed: int) -> None:
    """From now on rubric cells draw from this seed and hand over what they record."""
    begin(Session(seed, hand_over))


def hand_over(recording: Recording) -> None:
    """Display the recording for the grader.

    Raises:
        RecordedNotJudged: always.
    """
    data = base64.b64encode(recording.to_bytes()).decode()
    display({MIME: data, "text/plain": f"{recording.exercise}: recorded"}, raw=True)
    raise RecordedNotJudged(f"{recording.exercise}: recorded, not judged")
