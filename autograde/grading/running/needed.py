"""Which cells of a submission are run: graded ones, the student's, and what these need.

The rest are the lesson's own experiments and figures, which only show things to students. Running
them again would take more than half of the grading time.
"""

import re
from collections import Counter

from nbformat import NotebookNode

from autograde.course import code_cells, grade_id
from autograde.rubric.names import UNREADABLE, Names, read_names

LOOK_UP = {"eval", "exec", "globals", "locals", "vars", "get_ipython", "builtins", "_", "In", "Out"}
UNSPELLED = re.compile(r"__(import|main|builtins|globals)__|f_globals|sys\.modules|import \*")
"""Code with one of these may use or bind a name that it does not spell."""
BEYOND_PYTHON = re.compile(r"[%!?]|>>>|In \[|\bawait\b|\basync\b|\A\s|^[ \t]*[,;/]", re.MULTILINE)
"""IPython may run text with one of these that Python cannot read."""


class _Unknown(Exception):
    """The names of a cell cannot be determined from its text."""


def not_needed(nb: NotebookNode, released: NotebookNode) -> set[str]:
    """Return the ids of the lesson's own code cells that no graded or student's cell needs.

    If an answer or a rubric uses a name that an own cell binds, every cell is needed, so that no
    score depends on this choice. A cell that the student added needs the cells that bind the names
    it uses, but not those that only change their values.

    Args:
        nb: a restored submission.
        released: the notebook that students were given.
    """
    try:
        own, wanted = {}, frozenset[str]()
        left = Counter(cell.source.strip() for cell in code_cells(released) if not grade_id(cell))
        graded = frozenset[str]()
        for cell, named in [(cell, grade_id(cell)) for cell in code_cells(nb)]:
            names, text = _names(cell.source), cell.source.strip()
            if named:
                graded |= names.used
            elif left[text]:
                left[text] -= 1
                own[cell.id] = names
            else:
                wanted |= names.used
    except _Unknown:
        return set()
    if any(names.bound & graded for names in own.values()):
        return set()
    return own.keys() - _needed(own, wanted)


def _names(source: str) -> Names:
    """Return a cell's names; none of a cell that only raises a SyntaxError.

    Raises:
        _Unknown: they cannot be determined.
    """
    if UNSPELLED.search(source):
        raise _Unknown
    try:
        names = read_names(source)
    except UNREADABLE as error:
        if not isinstance(error, SyntaxError) or BEYOND_PYTHON.search(source):
            raise _Unknown from error
        return Names()
    if names.used & LOOK_UP:
        raise _Unknown
    return names


def _needed(own: dict[str, Names], wanted: frozenset[str]) -> set[str]:
    """Return the ids of own cells that bind what is wanted, and of those that they need."""
    found: set[str] = set()
    while more := {each for each in own.keys() - found if own[each].bound & wanted}:
        found |= more
        wanted = wanted.union(*(own[each].used for each in more))
    return found
