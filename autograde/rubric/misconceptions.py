"""Recognising a mistake: an answer does on the lines it fails what a known wrong answer does.

A known mistake fits when the answer fails every line that the mistake fails, and most of them in
the same way, one with the same wrong numbers: those come from one cause, and a second mistake may
change the rest. Errors, refusals and readings of a check are less particular: they count only where
all are alike and the answer fails no other line of that kind. The mistake that is alike on most
lines wins; then the lines that are left may have a second one. No guess is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS, outcomes_of, wrong_cases
from autograde.rubric.recording import Case, Outcome, Recording

ALIKE = 4.0
"""Outcomes of one mistake are about equally far off, one at most so many times as far."""
MOST = 2
"""At most so many beliefs are named for one answer."""


@dataclass(frozen=True)
class Belief:
    """A recognised mistake in words, and the names of the lines it explains."""

    name: str
    belief: str
    hint: str
    lines: tuple[str, ...]


def failed_lines(recording: Recording, key: Key) -> dict[int, tuple[Outcome, ...]]:
    """Return the outcomes of the lines that a recorded answer fails, by place in the rubric."""
    outcomes = outcomes_of(recording, key.expected)
    rows = zip(key.expected.lines, outcomes, key.tolerances, strict=True)
    return {i: tuple(row[1]) for i, row in enumerate(rows) if any(wrong_cases(*row))}


def beliefs(
    outcomes: list[list[Outcome]], failures: Sequence[object | None], key: Key
) -> tuple[Belief, ...]:
    """Return the beliefs behind a wrong answer, the one that explains most lines first.

    Args:
        outcomes: the outcomes of every case of every line, on the practice seed.
        failures: for each line None when it is right.
    """
    left = {i for i, failure in enumerate(failures) if failure is not None}
    possible = [m for m in key.mistakes if m.failed and set(m.failed) <= left]
    alike = {mistake.name: _alike(mistake, outcomes, key) for mistake in possible}
    found: list[Belief] = []
    while len(found) < MOST:
        fitting = [m for m in possible if _fits(m, alike[m.name], left, key)]
        if not fitting:
            break
        best = max(fitting, key=lambda mistake: len(alike[mistake.name]))
        names = tuple(key.expected.lines[i].name for i in sorted(best.failed))
        found.append(Belief(best.name, best.belief, best.hint, names))
        left -= set(best.failed)
    return tuple(found)


def _fits(mistake: Mistake, alike: set[int], wrong: set[int], key: Key) -> bool:
    failed = set(mistake.failed)
    if not failed <= wrong:
        return False
    if any(_telling(mistake, i, key) for i in alike):
        return len(alike) > len(failed) / 2
    return alike == failed and not _unexplained(failed, wrong, key)


def _alike(mistake: Mistake, outcomes: list[list[Outcome]], key: Key) -> set[int]:
    """Return the lines on which the answer does what the mistake does."""
    return {
        i
        for i, known in mistake.failed.items()
        if all(
            _same(key.expected.lines[i].kind, key.tolerances[i], *row)
            for row in zip(key.expected.lines[i].cases, outcomes[i], known, strict=True)
        )
    }


def _same(kind: str, tolerance: float, case: Case, got: Outcome, known: Outcome) -> bool:
    """Return whether two outcomes of a case are alike and about equally far off."""
    distances = [KINDS[kind].compare(outcome, case).distance for outcome in (got, known)]
    if max(distances) > max(tolerance, ALIKE * min(distances)):
        return False
    return KINDS[kind].alike(got, known, tolerance)


def _telling(mistake: Mistake, i: int, key: Key) -> bool:
    """Return whether a mistake gives wrong numbers of its own on a line."""
    line = key.expected.lines[i]
    wrong = wrong_cases(line, mistake.failed[i], key.tolerances[i])
    return any(KINDS[line.kind].telling(known) for _, known, _ in wrong)


def _unexplained(failed: set[int], wrong: set[int], key: Key) -> set[int]:
    """Return the other wrong lines of the kinds that a mistake fails."""
    kinds = {key.expected.lines[i].kind for i in failed}
    return {i for i in wrong - failed if key.expected.lines[i].kind in kinds}
