"""Recognising a mistake: an answer does on the lines it fails what a known wrong answer does.

A known mistake fits when the answer fails every line that the mistake fails, in the same way.
Other lines may be wrong too, so a missing refusal does not hide a wrong transpose. Numbers speak
for themselves. Errors, refusals and readings of a check are less particular: they count only where
the answer fails no other line of that kind. The mistake that explains most lines wins; then the
lines that are left may have a second one. No guess is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS
from autograde.rubric.recording import Outcome

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


def beliefs(
    outcomes: list[list[Outcome]], failures: Sequence[object | None], key: Key
) -> tuple[Belief, ...]:
    """Return the beliefs behind a wrong answer, the one that explains most lines first.

    Args:
        outcomes: the outcomes of every case of every line, on the practice seed.
        failures: for each line None when it is right.
    """
    left = {i for i, failure in enumerate(failures) if failure is not None}
    fitting = [mistake for mistake in key.mistakes if _fits(mistake, outcomes, left, key)]
    found: list[Belief] = []
    while fitting and len(found) < MOST:
        best = max(fitting, key=lambda mistake: len(mistake.failed))
        names = tuple(key.expected.lines[i].name for i in sorted(best.failed))
        found.append(Belief(best.name, best.belief, best.hint, names))
        left -= set(best.failed)
        fitting = [mistake for mistake in fitting if set(mistake.failed) <= left]
    return tuple(found)


def _fits(mistake: Mistake, outcomes: list[list[Outcome]], wrong: set[int], key: Key) -> bool:
    failed = set(mistake.failed)
    if not failed or not failed <= wrong:
        return False
    telling = False
    for i in failed:
        line, tolerance = key.expected.lines[i], key.tolerances[i]
        kind = KINDS[line.kind]
        pairs = list(zip(outcomes[i], mistake.failed[i], strict=True))
        if not all(kind.alike(got, known, tolerance) for got, known in pairs):
            return False
        distances = [
            [kind.compare(outcome, case).distance for outcome in pair]
            for pair, case in zip(pairs, line.cases, strict=True)
        ]
        if any(max(two) > max(tolerance, ALIKE * min(two)) for two in distances):
            return False
        telling |= any(
            kind.telling(known) and kind.compare(known, case).distance > tolerance
            for (_, known), case in zip(pairs, line.cases, strict=True)
        )
    return telling or not _unexplained(failed, wrong, key)


def _unexplained(failed: set[int], wrong: set[int], key: Key) -> set[int]:
    """Return the other wrong lines of the kinds that a mistake fails."""
    kinds = {key.expected.lines[i].kind for i in failed}
    return {i for i in wrong - failed if key.expected.lines[i].kind in kinds}
