"""Validate's table: each exercise of a lesson, its points, and the first wrong line.

nbgrader shows a cell's source and its error, so a cell after the lesson's own calls `say`, which
raises an error whose text is the table.
"""

from autograde.notebook.practice import lesson_keys, verdicts
from autograde.notebook.tables import in_columns
from autograde.rubric.judge import Verdict
from autograde.rubric.panel import plain
from autograde.rubric.text import number, visible

HEADER = ("exercise", "points", "first wrong line")
LONGEST = 100
NOT_JUDGED = "not judged; its answer or rubric failed, or is gone"


class NotRight(Exception):
    """Some exercises are not right; the message is the table."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def say() -> None:
    """Raises NotRight with the table, unless all exercises of the lesson are right."""
    worth = {name: key.points for name, key in lesson_keys().items()}
    judged = {name: verdicts.get(name) for name in worth}
    if not all(verdict and verdict.passed for verdict in judged.values()):
        table = [HEADER]
        for name, verdict in judged.items():
            points = number(verdict.points if verdict else 0)
            table.append((name, f"{points} of {number(worth[name])}", _first_wrong(verdict)))
        raise NotRight("\n".join(in_columns(table)))


def _first_wrong(verdict: Verdict | None) -> str:
    """Return in one line why an answer is not right, or "" if it is."""
    if verdict is None:
        return NOT_JUDGED
    if verdict.passed:
        return ""
    if not verdict.attempted:
        return "not written yet"
    said = verdict.note or next(line.name for line in verdict.lines if not line.passed)
    return visible(" ".join(plain(said).split()))[:LONGEST]
