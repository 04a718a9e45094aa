"""Print tables of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


def table(
    values: Tensor | NDArray[Any] | Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Print a matrix (n, m), with n row and m column labels: to four decimals, or whole numbers."""
    lines = values if isinstance(values, Sequence) else values.tolist()
    numbers = [[f"{float(x):z.4f}" for x in row] for row in lines]
    if all(text.endswith(".0000") for row in numbers for text in row):
        numbers = [[text.removesuffix(".0000") for text in row] for row in numbers]
    width = max(len(text) for row in [list(columns), *numbers] for text in row)
    side = max(len(label) for label in rows)
    print(" " * side + "  " + "  ".join(f"{label:>{width}}" for label in columns))
    for label, row in zip(rows, numbers, strict=True):
        print(f"{label:>{side}}  " + "  ".join(f"{x:>{width}}" for x in row))
