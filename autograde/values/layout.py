"""A result and what was expected as two small tables, wrong entries marked."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autograde.values.compare import first_difference, numeral, wrong_entries

LARGEST = 8
"""The most rows and columns of a table; of a larger tensor, only a part is shown."""


@dataclass(frozen=True)
class Table:
    """Numbers as text, row by row; `wrong` holds the places (row, column) of entries to mark."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[int, int], ...] = ()


def side_by_side(got: Tensor, expected: Tensor, at: str) -> tuple[Table | None, Table | None]:
    """Return tables of two tensors that differ; None where there is nothing to lay out.

    `at` is their place in the result, as in `Difference`.
    """
    where = at.strip(", ")
    if expected.numel() == 0 or (got.numel() <= 1 and expected.numel() <= 1):
        return None, None
    if got.shape != expected.shape:
        return _table(got, (0,) * got.ndim, where), _table(expected, (0,) * expected.ndim, where)
    place, wrong = first_difference(got, expected), wrong_entries(got, expected)
    if not wrong.any():
        return None, None
    return _table(got, place, where, wrong), _table(expected, place, where)


def _table(
    tensor: Tensor, place: tuple[int, ...], where: str, wrong: Tensor | None = None
) -> Table:
    """Return the part of a tensor around a place as a table, wrong entries marked."""
    if tensor.numel() == 0:
        return Table(f"shape {tuple(tensor.shape)}", ())
    marks = torch.zeros_like(tensor, dtype=torch.bool) if wrong is None else wrong
    matrix, marked = (torch.atleast_2d(each[place[:-2]]) for each in (tensor, marks))
    row, column = (0, 0, *place)[-2:]
    rows, columns = _around(row, matrix.shape[0]), _around(column, matrix.shape[1])
    caption = [f"shape {tuple(tensor.shape)}", where]
    if tensor.ndim > 2:
        caption.append(f"at {list(place[:-2])}")
    if max(matrix.shape) > LARGEST:
        caption.append(
            f"rows {rows.start}-{rows.stop - 1}, columns {columns.start}-{columns.stop - 1}"
        )
    return Table(
        ", ".join(filter(None, caption)),
        tuple(tuple(map(numeral, line)) for line in matrix[rows, columns].tolist()),
        tuple((i, j) for i, j in marked[rows, columns].nonzero().tolist()),
    )


def _around(index: int, size: int) -> slice:
    """Return the part to show: everything, or as much as a table holds around an index."""
    start = max(0, min(index - LARGEST // 2, size - LARGEST))
    return slice(start, min(start + LARGEST, size))
