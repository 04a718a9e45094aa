"""Which cells of a submission are run: graded ones, the student's, and what these need.

The rest are the lesson's own experiments and figures, which show a student something. No score
depends on them, and to run them again would take more than half of the time that grading takes.
"""

from dataclasses import dataclass

from nbformat import NotebookNode

from autograde.course import grade_id
from autograde.rubric.names import MAX_CHARS, UNREADABLE, bound_names, used_names

LOOK_UP = {"eval", "exec", "globals", "locals", "vars", "get_ipython", "__import__", "__main__"}
"""Code with one of these may use a name that it does not spell."""


def not_needed(nb: NotebookNode, released: NotebookNode) -> set[str]:
    """Return the ids of the lesson's own code cells that nothing graded or the student's needs.

    Args:
        nb: a restored submission.
        released: the notebook that students were given.
    """
    given = {cell.source.strip() for cell in released.cells if not grade_id(cell)}
    wanted: set[str] = set()
    own: dict[str, Names] = {}
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        names = _names(cell.source.strip())
        if not grade_id(cell) and cell.source.strip() in given:
            if names:
                own[cell.id] = names
        elif names is None or (names.used | names.bound) & LOOK_UP:
            return set()
        else:
            wanted |= names.used
    return own.keys() - _needed(own, wanted)


@dataclass(frozen=True)
class Names:
    """The names that a cell looks up, and those that it binds for the cells after it."""

    used: set[str]
    bound: set[str]


def _names(source: str) -> Names | None:
    """Return a cell's names; None if they cannot be read.

    IPython runs more than Python can read, such as `%run`.
    """
    try:
        if len(source) <= MAX_CHARS:
            return Names(used_names(source), bound_names(source))
    except UNREADABLE:
        pass
    return None


def _needed(own: dict[str, Names], wanted: set[str]) -> set[str]:
    """Return the ids of own cells that bind what is wanted, and of those that they need."""
    found: set[str] = set()
    while more := {each for each in own.keys() - found if own[each].bound & wanted}:
        found |= more
        wanted = wanted.union(*(own[each].used - own[each].bound for each in more))
    return found
