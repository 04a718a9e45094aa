"""A result and what was expected as two small tables, wrong entries marked."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autograde.rubric.compare import first_difference, numeral, wrong_entries
from autograde.rubric.packing import Plain

LARGEST = 8
"""The most rows and columns of a table; of a larger tensor, only a part is shown."""


@dataclass(frozen=True)
class Table:
    """Numbers as text, row by row; `wrong` holds the places (row, column) of entries to mark."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    wrong: tuple[tuple[int, int], ...] = ()


def side_by_side(got: Plain, expected: Plain) -> tuple[Table | None, Table | None]:
    """Return tables of the first tensors that differ; None where there is nothing to lay out."""
    pair = _first_pair(got, expected, "")
    if pair is None:
        return None, None
    mine, right, where = pair
    if mine.shape != right.shape:
        return _table(mine, (0,) * mine.ndim, where), _table(right, (0,) * right.ndim, where)
    place, wrong = first_difference(mine, right), wrong_entries(mine, right)
    return _table(mine, place, where, wrong), _table(right, place, where)


def _first_pair(got: Plain, expected: Plain, where: str) -> tuple[Tensor, Tensor, str] | None:
    if isinstance(got, Tensor) and isinstance(expected, Tensor):
        one_number = got.numel() <= 1 and expected.numel() <= 1
        same = got.shape == expected.shape and not wrong_entries(got, expected).any()
        return None if one_number or same or expected.numel() == 0 else (got, expected, where)
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        pairs = [
            (f"{where}[{i}]", g, e) for i, (g, e) in enumerate(zip(got, expected, strict=False))
        ]
    elif isinstance(expected, dict) and isinstance(got, dict):
        pairs = [(f"{where} {name}", got.get(name), value) for name, value in expected.items()]
    else:
        return None
    for place, g, e in pairs:
        if found := _first_pair(g, e, place):
            return found
    return None


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
    caption = [f"shape {tuple(tensor.shape)}", where.strip()]
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
