"""Validate's table: each exercise of a lesson, its points, and the first wrong line.

nbgrader shows a cell's source and its error, so a cell after the lesson's own calls `say`, which
raises an error whose text is the table.
"""

from autograde.notebook.practice import first_wrong, lesson_keys, verdicts
from autograde.notebook.tables import in_columns
from autograde.rubric.session import CellEnded
from autograde.rubric.text import number

HEADER = ("exercise", "points", "first wrong line")
NOT_JUDGED = "not judged; its answer or rubric failed, or is gone"


def say() -> None:
    """Raises CellEnded with the table, unless all exercises of the lesson are right."""
    worth = {name: key.points for name, key in lesson_keys().items()}
    judged = {name: verdicts.get(name) for name in worth}
    if not all(verdict and verdict.passed for verdict in judged.values()):
        table = [HEADER]
        for name, verdict in judged.items():
            points = number(verdict.points if verdict else 0)
            said = first_wrong(verdict) if verdict else NOT_JUDGED
            table.append((name, f"{points} of {number(worth[name])}", said))
        raise CellEnded("\n".join(in_columns(table)))
