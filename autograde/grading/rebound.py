"""Names of the lesson or of Python that an answer needs and a student's cell gave another value.

Read off the text alone, so a name bound anew to an equal value is named as well. In practice
`notebook.runs.rebound` says it of live values.
"""

import builtins
from collections import Counter
from collections.abc import Iterator

from nbformat import NotebookNode

from autograde.course import Exercise, code_cells, exercise_of, grade_id
from autograde.rubric.names import names_of
from autograde.values.text import short, visible

BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))
MOST_SHOWN = 60
"""Characters of a cell's first line."""


def rebound(nb: NotebookNode, released: NotebookNode, exercise: Exercise) -> Iterator[str]:
    """Yield a sentence for each such name that the answer or its helpers in other cells need.

    Args:
        nb: a restored submission, whose cells ran from the top.
        released: the notebook that students were given.
    """
    cells = _until(code_cells(nb), exercise)
    given = next((c.source for c in code_cells(released) if _gives(c)), "")
    names, own = names_of(given), {cell.id for cell in _students(cells, released)}
    answer = next((cell for cell in cells if grade_id(cell) == exercise.name), None)
    wanted, seen = sorted(names_of(answer.source).needed) if answer else [], set[str]()
    while wanted:
        name = wanted.pop(0)
        cell = next((c for c in reversed(cells) if name in names_of(c.source).bound), None)
        if name in seen or cell is None or cell.id not in own:
            continue
        seen.add(name)
        found = names_of(cell.source)
        wanted += sorted(found.needed)
        again = name in found.imported & names.imported or cell.source.strip() in given
        if name in names.bound | BUILTINS and not again:
            yield (
                f"Your code uses `{name}`, and your cell that begins {_first_line(cell)} gave that "
                "name to something else. Choose another name there."
            )


def _until(cells: list[NotebookNode], exercise: Exercise) -> list[NotebookNode]:
    """Return the cells that had run when the rubric called the answer."""
    places = (i for i, cell in enumerate(cells) if exercise_of(cell) == exercise.name)
    return cells[: next(places, len(cells))]


def _gives(cell: NotebookNode) -> bool:
    return "rubric" in names_of(cell.source).bound


def _students(cells: list[NotebookNode], released: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the cells that the student wrote: answers, and those that are not the lesson's."""
    left = Counter(cell.source.strip() for cell in code_cells(released))
    for cell in cells:
        text = cell.source.strip()
        if left[text]:
            left[text] -= 1
        else:
            yield cell


def _first_line(cell: NotebookNode) -> str:
    line = next((line for line in cell.source.splitlines() if line.strip()), "")
    shown = visible(short(line.strip(), MOST_SHOWN)).replace("`", "'")
    return f"`{shown}`"
