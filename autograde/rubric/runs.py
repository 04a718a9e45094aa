"""The runs of cells in this kernel: what each of them bound, and from which answers.

By them a rubric says which run of which answer it judged.
"""

import re
from dataclasses import dataclass
from typing import Any

from IPython.core.getipython import get_ipython

from autograde.rubric.lesson_names import given_in
from autograde.rubric.names import UNREADABLE, names_of, read_names


@dataclass(frozen=True)
class Run:
    """One run of a cell: its number in brackets, its text, and the error that ended it, or "".

    `behind` are the exercises, not known to be right when it ran, that it used or that made what
    it used. `waits_for` is the one of them without which it could not go on, or "".
    """

    number: int
    source: str
    error: str
    behind: frozenset[str] = frozenset()
    waits_for: str = ""


_runs: list[Run] = []


def keep_run(run: Run) -> None:
    _runs.append(run)


def last_run_of(name: str) -> Run | None:
    """Return the last run of a cell that binds a name, even if the run failed."""
    return next((run for run in reversed(_runs) if _binds(run.source, name)), None)


def _binds(source: str, name: str) -> bool:
    """Return whether a cell binds a name; one that is not Python is searched for definitions."""
    try:
        return name in read_names(source).bound
    except UNREADABLE:
        return re.search(rf"^(def|class)\s+{name}\b", source, re.MULTILINE) is not None


def called_by(exercise: str) -> set[str]:
    """Return the names that the cells of an exercise, answer and rubric, take from other cells."""
    rubric = f'@rubric("{exercise}"'
    cells = [run.source for run in _runs if rubric in run.source][-1:]
    answer = last_run_of(exercise)
    sources = [*cells, answer.source if answer else ""]
    return set().union(*(names_of(source).needed for source in sources))


def rebound(exercise: str) -> dict[str, int]:
    """Return the names of the lesson or of Python that an answer needs and another cell bound anew.

    Each comes with the number of the run that bound it.
    """
    answer, given, found = last_run_of(exercise), given_in(namespace()), dict[str, int]()
    for name in sorted(names_of(answer.source).needed) if answer else ():
        run, original = last_run_of(name), given.original(name)
        if run is None or original is None or run.source.strip() in given.source:
            continue
        if namespace().get(name) is not original:
            found[name] = run.number
    return found


def namespace() -> dict[str, Any]:
    """Return the values of the notebook's names."""
    return getattr(get_ipython(), "user_ns", {})
