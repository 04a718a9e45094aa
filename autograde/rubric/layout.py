"""A result and what was expected as two small tables, wrong entries marked."""

from dataclasses import dataclass

import torch
from torch import Tensor

from autograde.rubric.compare import first_difference, numeral, wrong_entries
from autograde.rubric.packing import Plain

LARGEST = 8
"""A table has at most so many rows and columns; a larger tensor shows a part."""


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
        return _table(mine, None, where), _table(right, None, where)
    wrong = wrong_entries(mine, right)
    return _table(mine, wrong, where, right), _table(right, None, where, mine)


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
    tensor: Tensor, wrong: Tensor | None, where: str, other: Tensor | None = None
) -> Table | None:
    """Return the part of a tensor around the first difference from the other, as a table."""
    if tensor.numel() == 0:
        return Table(f"shape {tuple(tensor.shape)}", ())
    place = first_difference(tensor, other) if other is not None else (0,) * tensor.ndim
    matrix = torch.atleast_2d(tensor[place[:-2]] if tensor.ndim > 2 else tensor)
    row, column = ((0, *place) if tensor.ndim == 1 else place)[-2:] if tensor.ndim else (0, 0)
    top, left = _start(row, matrix.shape[0]), _start(column, matrix.shape[1])
    cut = (slice(top, top + LARGEST), slice(left, left + LARGEST))
    marks = torch.zeros_like(matrix, dtype=torch.bool)
    if wrong is not None:
        marks = torch.atleast_2d(wrong[place[:-2]] if wrong.ndim > 2 else wrong)
    rows = tuple(tuple(numeral(x) for x in line) for line in matrix[cut].tolist())
    return Table(
        _caption(tensor, place, matrix, top, left, where),
        rows,
        tuple((int(i), int(j)) for i, j in marks[cut].nonzero().tolist()),
    )


def _start(index: int, size: int) -> int:
    return 0 if size <= LARGEST else max(0, min(index - LARGEST // 2, size - LARGEST))


def _caption(
    tensor: Tensor, place: tuple[int, ...], matrix: Tensor, top: int, left: int, where: str
) -> str:
    parts = [where.strip()] if where else []
    if tensor.ndim > 2:
        parts.append(f"at {list(place[:-2])}")
    if max(matrix.shape) > LARGEST:
        ends = min(top + LARGEST, matrix.shape[0]), min(left + LARGEST, matrix.shape[1])
        parts.append(f"rows {top}-{ends[0] - 1}, columns {left}-{ends[1] - 1}")
    shape = f"shape {tuple(tensor.shape)}"
    return ", ".join([shape, *parts])
