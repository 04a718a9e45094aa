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
    right: Sequence[Sequence[bool | None]], worth: Sequence[float]
) -> list[float | None]:
    """Return the discrimination of every line; None where it is not defined, or students too few.

    It is not defined where all or none were right, or all have as many points on the other lines.

    Args:
        right: for each student, whether each line was right; None where the student had no such
            line.
        worth: the points of each line.
    """
    found: list[float | None] = [None] * len(worth)
    for item in range(len(worth)):
        others = [j for j in range(len(worth)) if j != item]
        rows = [row for row in right if row[item] is not None]
        rest = [round(sum(worth[j] for j in others if row[j]), 9) for row in rows]
        column = [bool(row[item]) for row in rows]
        if len(rows) >= FEWEST and min(len(set(column)), len(set(rest))) > 1:
            found[item] = correlation(column, rest)
    return found
