"""Gather a written answer: the text in its cell, in copies of the cell, and in cells beside it.

A cell that was split or copied is there twice, and some students answer in a new cell.
"""

import ast
from textwrap import indent

from nbformat import NotebookNode

from autograde.grading.limits import LIMITS

MORE = "[There is more in the cells below: open the whole notebook.]"


def is_written(original: NotebookNode) -> bool:
    """Return whether a cell of the lesson is an answer in words, which a person grades."""
    about = original.metadata["nbgrader"]
    return bool(about.get("grade") and about.get("solution"))


def join_copies(
    nb: NotebookNode, there: dict[str, list[NotebookNode]], owned: dict[str, NotebookNode]
) -> None:
    """Join cells that have the name of the same written answer; the last one holds the text.

    Args:
        there: the cells of the notebook by name.
        owned: the lesson's, by name.
    """
    for name in filter(lambda each: is_written(owned[each]), owned):
        copies = there.get(name, [])
        if len(copies) > 1:
            _join([copies[-1], *copies[:-1]], copies, owned[name])
            earlier = {id(cell) for cell in copies[:-1]}
            nb.cells = [cell for cell in nb.cells if id(cell) not in earlier]


def join_beside(
    nb: NotebookNode,
    at: dict[str, NotebookNode],
    owned: dict[str, NotebookNode],
    handed_out: set[str],
) -> None:
    """Move the student's own text cells around a written answer into its cell.

    These are the cells from the lesson's cell before it to the lesson's next cell. Code stays where
    it is, because later answers may need it; where it is no program, its text is copied.

    Args:
        at: the lesson's cells in the notebook, by name.
        owned: the same as they were handed out.
        handed_out: the text of every cell that was handed out.
    """

    def is_students(cell: NotebookNode) -> bool:
        return "nbgrader" not in cell.metadata and cell.source.strip() not in handed_out

    for name in filter(lambda each: is_written(owned[each]), owned):
        place = next(n for n, cell in enumerate(nb.cells) if cell is at[name])
        start, end = place, place + 1
        while start > 0 and is_students(nb.cells[start - 1]):
            start -= 1
        while end < len(nb.cells) and is_students(nb.cells[end]):
            end += 1
        answer, around = nb.cells[place], nb.cells[start:end]
        beside = [cell for cell in around if cell is not answer]
        read = {id(cell) for cell in _join([answer, *beside], around, owned[name])}
        nb.cells[start:end] = [
            cell
            for cell in around
            if cell is answer or cell.cell_type == "code" or id(cell) not in read
        ]


def _join(
    parts: list[NotebookNode], in_order: list[NotebookNode], original: NotebookNode
) -> list[NotebookNode]:
    """Put the text of all parts into the first one, as far as there is room; return those read.

    A part that says nothing, or what was handed out, does not count. The first part stays as it is
    if no other one says anything.
    """
    texts: dict[int, str] = {}
    room = LIMITS.text_cell_chars
    for cell in parts:
        text = _text(cell)
        if text.strip() and text.strip() != original.source.strip() and len(text) <= room:
            texts[id(cell)] = text
            room -= len(text)
    left = [cell for cell in parts[1:] if len(_text(cell)) > room and id(cell) not in texts]
    if texts.keys() - {id(parts[0])}:
        found = dict.fromkeys(texts[id(cell)] for cell in in_order if id(cell) in texts)
        parts[0].source = "\n\n".join([*found, *([MORE] if left else [])])
    return [cell for cell in parts if id(cell) in texts]


def _text(cell: NotebookNode) -> str:
    """Return what a cell says to a reader: nothing if it is a program."""
    if cell.cell_type != "code":
        return str(cell.source).strip("\n")
    return "" if _is_program(cell.source) else indent(str(cell.source).strip("\n"), "    ")


def _is_program(source: str) -> bool:
    """Return whether code does something; comments and strings alone are words."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)) for line in body
    )
