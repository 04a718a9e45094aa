"""Names the beliefs behind a wrong answer.

A mistake is a wrong answer to this exercise that its author has written: what it does was recorded
when the lesson was built, and an answer that does alike is recognised here. A slip, such as a
transposed result, can be in the answer to any exercise: it shows beside what was expected, and
`slips` recognises it. A slip is named only where no mistake fits.

A mistake fits when the answer fails every line that the mistake fails, most of them in the
same way and at least one with the same wrong numbers. Equal wrong numbers have one cause; a second
mistake may change the rest. The same holds within a line, for the cases that the mistake gets
wrong. Errors, refusals and readings of a check are less specific: they count only if all cases are
alike and the answer fails no other line of that kind. The mistake that is alike on the most lines
wins. The remaining lines may then have a second one. Together they must be wrong in every case that
the answer gets wrong in its first wrong line: rubrics go from the ordinary to the special, and a
mistake that shows in special lines or cases alone says nothing of an answer that fails the ordinary
ones. Nor do wrong numbers there say anything of an answer that only raises errors.

Where no mistake fits, two may be at work in the same cases. Then a mistake is named if the answer
is wrong wherever the mistake is, and gives its wrong numbers in some cases, in more than those of
any other. To name none is better than to name a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autograde.rubric.key import Key, Mistake
from autograde.rubric.kinds import KINDS, NOT_REACHED, Call, outcomes_of, wrong_cases
from autograde.rubric.recording import Line, Outcome, Recording
from autograde.rubric.slips import slips

ALIKE = 4.0
"""Outcomes of one mistake are about equally far off: one at most this many times the other."""
MOST_NAMED = 2
"""The most beliefs that are named for one answer."""
FEWEST = 2
"""The fewest cases for which one of two mistakes at work together is named: one may be chance."""

Place = tuple[int, int]
"""A case of a rubric, by the place of its line and its place in the line."""


@dataclass(frozen=True)
class Belief:
    """A recognised mistake in words, and the names of the lines it explains."""

    name: str
    belief: str
    hint: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Likeness:
    """The likeness of an answer to a mistake, all of whose failed lines the answer fails too.

    `lines` fail in the same way, those in `telling` with the same wrong numbers. `results` are the
    cases of calls with the same wrong numbers. `everywhere` says that the answer is wrong
    in every case in which the mistake is.
    """

    lines: frozenset[int]
    telling: frozenset[int]
    results: frozenset[Place]
    everywhere: bool


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
    wrong = {i for i, failure in enumerate(failures) if failure is not None}
    possible = [m for m in key.mistakes if m.failed and set(m.failed) <= wrong]
    distances = [_distances(*row) for row in zip(key.expected.lines, outcomes, strict=True)]
    alike = {m.name: _likeness(m, outcomes, distances, key) for m in possible}
    found = _beside_each_other(possible, alike, wrong, key)
    found = found or _together([m for m in possible if alike[m.name].everywhere], alike)
    if wrong and not _explain_line(found, min(wrong), outcomes, distances, key):
        found = []
    explained = [(m, sorted(m.failed)) for m in found] or slips(outcomes, key)
    names = [line.name for line in key.expected.lines]
    return tuple(
        Belief(cause.name, cause.belief, cause.hint, tuple(names[i] for i in lines))
        for cause, lines in explained[:MOST_NAMED]
    )


def _beside_each_other(
    possible: list[Mistake], alike: dict[str, Likeness], wrong: set[int], key: Key
) -> list[Mistake]:
    """Return mistakes that fit, each on lines of its own."""
    fitting = [m for m in possible if _fits(m, alike[m.name], wrong, key)]
    if not fitting:
        return []
    best = max(fitting, key=lambda m: (len(alike[m.name].lines), len(alike[m.name].results)))
    return [best, *_beside_each_other(possible, alike, wrong - set(best.failed), key)]


def _together(
    everywhere: list[Mistake], alike: dict[str, Likeness], seen: frozenset[Place] = frozenset()
) -> list[Mistake]:
    """Return mistakes at work in the same cases, each seen where the others change nothing."""
    new = {m.name: len(alike[m.name].results - seen) for m in everywhere}
    most = max(new.values(), default=0)
    best = [m for m in everywhere if new[m.name] == most]
    if most < FEWEST or len(best) > 1:
        return []
    return [*best, *_together(everywhere, alike, seen | alike[best[0].name].results)]


def _explain_line(
    found: list[Mistake],
    i: int,
    outcomes: list[list[Outcome]],
    distances: list[list[float]],
    key: Key,
) -> bool:
    """Return whether in each case that an answer gets wrong in line i one of the mistakes does.

    In one of these cases at least both raise, or neither: wrong numbers are no cause of errors.
    """
    line, tolerance = key.expected.lines[i], key.tolerances[i]
    known = [(m.failed[i], _distances(line, m.failed[i])) for m in found if i in m.failed]
    same = [
        [bool(each[j].error) == bool(got.error) for each, off in known if off[j] > tolerance]
        for j, (got, distance) in enumerate(zip(outcomes[i], distances[i], strict=True))
        if distance > tolerance
    ]
    return all(same) and any(map(any, same))


def _fits(mistake: Mistake, alike: Likeness, wrong: set[int], key: Key) -> bool:
    failed = set(mistake.failed)
    if not failed <= wrong:
        return False
    if alike.telling:
        return len(alike.lines) > len(failed) / 2
    kinds = {key.expected.lines[i].kind for i in failed}
    return alike.lines == failed and all(
        key.expected.lines[i].kind not in kinds for i in wrong - failed
    )


def _distances(line: Line, outcomes: Sequence[Outcome]) -> list[float]:
    """Return how far the outcomes of a line's cases are off."""
    pairs = zip(outcomes, line.cases, strict=True)
    return [KINDS[line.kind].compare(outcome, case).distance for outcome, case in pairs]


def _likeness(
    mistake: Mistake, outcomes: list[list[Outcome]], distances: list[list[float]], key: Key
) -> Likeness:
    lines, telling = set[int](), set[int]()
    results = set[Place]()
    everywhere = True
    for i, known in mistake.failed.items():
        line, tolerance = key.expected.lines[i], key.tolerances[i]
        off = _distances(line, known)
        alike = [
            _alike(line.kind, tolerance, *row)
            for row in zip(outcomes[i], distances[i], known, off, strict=True)
        ]
        shown = [j for j, distance in enumerate(off) if distance > tolerance]
        same = [j for j in shown if alike[j]]
        numbers = [j for j in same if KINDS[line.kind].telling(known[j])]
        if all(alike) or (numbers and len(same) > len(shown) / 2):
            lines.add(i)
            telling |= {i} if numbers else set()
        if isinstance(KINDS[line.kind], Call):
            results |= {(i, j) for j in numbers}
        everywhere = everywhere and all(distances[i][j] > tolerance for j in shown)
    return Likeness(frozenset(lines), frozenset(telling), frozenset(results), everywhere)


def _alike(
    kind: str, tolerance: float, got: Outcome, far: float, known: Outcome, off: float
) -> bool:
    """Return whether two outcomes of a case are alike and about equally far off."""
    if NOT_REACHED in (got.error, known.error):
        return got.error == known.error
    near = max(far, off) <= max(tolerance, ALIKE * min(far, off))
    return near and KINDS[kind].alike(got, known, tolerance)
