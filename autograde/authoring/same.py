"""Practice data made on two machines: the same when they judge and recognise alike.

Processors differ in the last bits of what they compute, so bits are not compared. Each expected
outcome is compared by its own line's tolerance, each known mistake by being recognised.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autograde.rubric.compare import apart
from autograde.rubric.judge import SAME_INPUTS
from autograde.rubric.key import Key, Mistake, unpack_keys
from autograde.rubric.kinds import KINDS


def other_practice(made: Path, committed: Path) -> list[str]:
    """Return in words how the practice data in one file differ from those in another."""
    new, old = (unpack_keys(path.read_bytes()) for path in (made, committed))
    if list(new) != list(old):
        return ["practice data of other exercises"]
    return [change for name in new for change in _changes(new[name], old[name])]


def _changes(new: Key, old: Key) -> Iterator[str]:
    if _frame(new) != _frame(old):
        yield f"other lines, points, hints or mistakes of {new.exercise}"
        return
    rows = zip(new.expected.lines, old.expected.lines, new.tolerances, strict=True)
    for line, other, tolerance in rows:
        kind = KINDS[line.kind]
        for case, committed in zip(line.cases, other.cases, strict=True):
            if apart(case.before, committed.before).distance > SAME_INPUTS:
                yield f"other inputs of “{line.name}” of {new.exercise}"
            elif (
                kind.tolerance is None
                and kind.compare(case.outcome, committed).distance > tolerance
            ):
                yield f"another outcome of “{line.name}” of {new.exercise}"
    for mistake, known in zip(new.mistakes, old.mistakes, strict=True):
        if not _alike(mistake, known, new):
            yield f"the mistake {mistake.name} of {new.exercise} would not be recognised"


def _frame(key: Key) -> Key:
    """Return the part of a key that is words and structure: the same on every machine."""
    lines = tuple(replace(line, cases=()) for line in key.expected.lines)
    mistakes = tuple(replace(m, failed=dict.fromkeys(m.failed, ())) for m in key.mistakes)
    return replace(key, expected=replace(key.expected, lines=lines), mistakes=mistakes)


def _alike(mistake: Mistake, known: Mistake, key: Key) -> bool:
    return all(
        KINDS[key.expected.lines[i].kind].alike(got, wanted, key.tolerances[i])
        for i in mistake.failed
        for got, wanted in zip(mistake.failed[i], known.failed[i], strict=True)
    )
