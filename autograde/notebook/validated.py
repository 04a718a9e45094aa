"""Validate's table: each exercise of a lesson, its points, and the first wrong line.

nbgrader shows a cell's source and its error, so the last cell raises an error whose text is the
table, and the rubrics before it raise none. Two cells, added before and after the lesson's cells,
call `begin` and `say`.
"""

import warnings
from collections.abc import Mapping

from autograde.notebook.tables import in_columns
from autograde.rubric.text import number, visible

HEADER = ("exercise", "points", "first wrong line")
LONGEST = 100
NOT_RUN = "not judged; its rubric cell did not finish"

_rows: dict[str, tuple[float, str]] | None = None
"""Points and first wrong line of the exercises judged so far; None where nobody asked."""


class NotRight(Exception):
    """Some exercises are not right; the message is the table."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def begin() -> None:
    """Collect rows for the table, and silence warnings.

    nbgrader fails a cell that prints a warning, even if the answer is right.
    """
    global _rows
    _rows = {}
    warnings.simplefilter("ignore")


def keep(exercise: str, points: float, wrong: str = "") -> bool:
    """Keep a row if there will be a table; return whether there will."""
    if _rows is not None:
        _rows[exercise] = points, wrong
    return _rows is not None


def say() -> None:
    """Raises NotRight with the table, unless all exercises of the lesson are right."""
    from autograde.notebook.practice import lesson_keys

    judged = next(iter(_rows or {}), None)
    worth = {name: key.points for name, key in lesson_keys(judged).items()}
    rows = {name: (_rows or {}).get(name, (0.0, NOT_RUN)) for name in worth}
    if any(wrong for _, wrong in rows.values()):
        raise NotRight(_table(rows, worth))


def _table(rows: Mapping[str, tuple[float, str]], worth: Mapping[str, float]) -> str:
    texts = [HEADER]
    for name, (points, wrong) in rows.items():
        one_line = visible(" ".join(wrong.split()))[:LONGEST]
        texts.append((name, f"{number(points)} of {number(worth[name])}", one_line))
    return "\n".join(in_columns(texts))
