"""The discrimination of an item in classical test theory. Pure: numbers in, numbers out.

An item is a rubric line. Its discrimination is the point-biserial correlation of the line, right or
not, with the points on all other lines: the total is corrected for the line itself (S. Henrysson,
Correction of item-total correlations in item analysis, Psychometrika 28, 1963, 211-218).
"""

from collections.abc import Sequence
from statistics import correlation

FEWEST = 10
"""With fewer students a correlation says next to nothing, and none is given."""


def discriminations(
    right: Sequence[Sequence[bool]], worth: Sequence[float]
) -> list[tuple[float | None, str]]:
    """Return the discrimination of every line, or None and why not.

    Args:
        right: for each student, whether each line was right.
        worth: the points of each line.
    """
    found = []
    for item in range(len(worth)):
        column = [row[item] for row in right]
        rest = [
            sum(points for j, points in enumerate(worth) if row[j] and j != item) for row in right
        ]
        found.append(point_biserial(column, rest))
    return found


def point_biserial(right: Sequence[bool], rest: Sequence[float]) -> tuple[float | None, str]:
    """Return the correlation of a line with the points on the others, or None and why not."""
    if len(right) < FEWEST:
        return None, f"fewer than {FEWEST} students"
    if all(right):
        return None, "all right"
    if not any(right):
        return None, "none right"
    if max(rest) - min(rest) < 1e-9:
        return None, "all alike on the other lines"
    return correlation(right, rest), ""
