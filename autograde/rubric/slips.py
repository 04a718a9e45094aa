"""Slips that any answer can have, recognised by comparing it with what was expected.

They need no variant by the lesson's author; see `misconceptions` for those that do. A slip is named
only if every wrong line of its kind shows it, and of results only if no other result is wrong: what
is said must be true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from autograde.rubric.key import Key
from autograde.rubric.kinds import (
    KINDS,
    NOT_REACHED,
    Call,
    Gradient,
    Kind,
    Refuses,
    Unchanged,
    wrong_cases,
)
from autograde.rubric.recording import REFUSAL, RETURNED, Case, Outcome
from autograde.values.base import NEAR, Plain, float_types, inside
from autograde.values.dispatch import apart, cast_like, module_named, module_of, says_much

MOST_SORTED = 10_000
"""The most numbers that are sorted to see whether they only stand elsewhere."""

SEVERAL = 3
"""In fewer numbers than these, a common factor is chance."""

Shows = Callable[[Outcome, Case], bool]


@dataclass(frozen=True)
class Slip:
    """The belief behind a slip, a hint, and how a wrong case of a line of these kinds shows it."""

    name: str
    belief: str
    hint: str
    shows: Shows
    kinds: tuple[type[Kind], ...] = (Call,)


Turn = Callable[[Plain, Plain], Plain]


def _parts(got: Plain, expected: Plain) -> Iterator[tuple[Plain, Plain]]:
    """Yield what differs within two values, pair by pair."""
    match got, expected:
        case (list() | tuple(), list() | tuple()) if len(got) == len(expected):
            for pair in zip(got, expected, strict=True):
                yield from _parts(*pair)
        case (dict(), dict()) if got.keys() == expected.keys():
            for name in expected:
                yield from _parts(got[name], expected[name])
        case _ if apart(got, expected).distance > NEAR:
            yield got, expected


def _turned(turn: Turn, outcome: Outcome, case: Case) -> bool:
    """Return whether every part of a result that is wrong is right once it is turned."""
    if outcome.error is not None or case.outcome.error is not None:
        return False
    wrong = list(_parts(outcome.value, case.outcome.value))
    return bool(wrong) and all(_right_after(turn, *pair) for pair in wrong)


def _right_after(turn: Turn, got: Plain, expected: Plain) -> bool:
    if not hasattr(got, "dtype") or module_of(got) is not module_of(expected):
        return False
    turned = turn(got, expected)
    return turned is not None and bool(apart(turned, expected).distance <= NEAR)


def _transposed(got: Plain, expected: Plain) -> Plain:
    return got.swapaxes(-1, -2) if len(got.shape) > 1 else None


def _reshaped(got: Plain, expected: Plain) -> Plain:
    same = prod(got.shape) == prod(expected.shape)
    return got.reshape(tuple(expected.shape)) if same else None


def _opposite(got: Plain, expected: Plain) -> Plain:
    if not says_much(expected):  # a single False says nothing
        return None
    if float_types(got):
        return -got
    return ~got if str(got.dtype).endswith("bool") else None


def _in_order(got: Plain, expected: Plain) -> Plain:
    """Return the expected numbers if the result holds them in other places."""
    if not 2 < prod(expected.shape) <= MOST_SORTED or not float_types(got):
        return None
    found, known = (x.reshape(-1).tolist() for x in (got, expected))
    if not all(isinstance(x, int | float) for x in known):
        return None
    several = len({round(x, 4) for x in known}) > 2
    return expected if several and apart(sorted(found), sorted(known)).distance <= NEAR else None


def _scaled(got: Plain, expected: Plain) -> Plain:
    """Return the result without the one factor that all its numbers are off by."""
    if got.shape != expected.shape or prod(expected.shape) < SEVERAL:
        return None
    if not float_types(got) or not float_types(expected):
        return None
    factor = module_named("numbers").factor_between(got, expected)
    return got / factor if factor else None


def _nearly(outcome: Outcome, case: Case) -> bool:
    """Return whether a result is wrong in its last digits alone."""
    wanted = case.outcome.value
    some = outcome.error is None and (isinstance(wanted, float) or bool(float_types(wanted)))
    return some and apart(outcome.value, wanted).distance <= NEAR


def _piece(got: Plain, expected: Plain) -> Plain:
    """Return the expected numbers if the result is their beginning or end, in one dimension."""
    pairs = zip(got.shape, expected.shape, strict=False)
    uneven = [i for i, pair in enumerate(pairs) if pair[0] != pair[1]]
    if len(got.shape) != len(expected.shape) or len(uneven) != 1 or not prod(got.shape):
        return None
    (along,) = uneven
    short, long = sorted((got, expected), key=lambda x: int(x.shape[along]))
    turned, n = long.swapaxes(0, along), int(short.shape[along])
    ends = (turned[:n], turned[-n:])
    same = any(apart(short, end.swapaxes(0, along)).distance <= NEAR for end in ends)
    return expected if same and says_much(short) else None


def _refused_by_a_check(outcome: Outcome, case: Case) -> bool:
    """Return whether the answer's own check stopped a call that has a result.

    A ValueError that comes from elsewhere is a bug of another kind, and its message says which.
    """
    checked = re.search(r"\b(raise|assert)\b", outcome.at)
    return outcome.refused and checked is not None and case.outcome.error is None


def _without_gradient(outcome: Outcome, case: Case) -> bool:
    if outcome.breaks_contract:  # the result itself is right, but cut off
        return not outcome.has_more
    if outcome.error is not None:
        return False  # its message says what went wrong
    wrong = [got for got, _ in _parts(outcome.value, case.outcome.value)]
    return bool(wrong) and all(got is None or says_much(got) for got in wrong)


def _raised(outcome: Outcome) -> bool:
    return outcome.error is not None and not outcome.breaks_contract


def _not_refused(outcome: Outcome, case: Case) -> bool:
    """Return whether a refusal is due that did not come, or came as an error of another kind.

    Of an error that was returned, and of a plain Exception, which is raised on purpose alone, the
    line says all that there is to say.
    """
    due = case.outcome.value
    if outcome.error is not None:
        return outcome.error != NOT_REACHED and not outcome.breaks_contract and _refusal_in(due)
    parts = _parts(outcome.value, due)
    meant = (RETURNED, "raises Exception:")
    return any(
        _refusal_in(expected) and not (isinstance(got, str) and got.startswith(meant))
        for got, expected in parts
    )


def _refused_otherwise(outcome: Outcome, case: Case) -> bool:
    """Return whether a refusal that is due came as an error of another kind."""
    parts = _parts(outcome.value, case.outcome.value)
    raised = outcome.error is not None or any(str(got).startswith("raises ") for got, _ in parts)
    return raised and _not_refused(outcome, case)


def _refusal_in(value: Plain) -> bool:
    return (isinstance(value, str) and value == REFUSAL) or any(map(_refusal_in, inside(value)))


SLIPS = (
    Slip(
        "transposed",
        "it does not matter which of the last two dimensions comes first.",
        "The numbers are right once the last two dimensions change places. What is a row here?",
        partial(_turned, _transposed),
    ),
    Slip(
        "other_shape",
        "only the numbers matter, and not the shape that they come in.",
        "The numbers are right. Which dimension is one too many, or missing, in their shape?",
        partial(_turned, _reshaped),
    ),
    Slip(
        "other_dtype",
        "only the values matter, and not their dtype.",
        "The values are right. Which dtype should they have, and which step gives them another?",
        partial(_turned, cast_like),
    ),
    Slip(
        "opposite",
        "the exercise means the other sign, or False where it says True.",
        "Every entry is the opposite of what was expected. Which step turns them round?",
        partial(_turned, _opposite),
    ),
    Slip(
        "other_places",
        "only the numbers matter, and not the places that they stand in.",
        "The right numbers stand in other places. Which step orders them, and by what?",
        partial(_turned, _in_order),
    ),
    Slip(
        "other_factor",
        "a step that multiplies or divides every number can be added or left out.",
        "All numbers of a result are off by the same factor. Which step multiplies or divides?",
        partial(_turned, _scaled),
    ),
    Slip(
        "last_digits",
        "a number that agrees in its first digits is right.",
        "Only the last digits differ. Which step rounds, computes in float32, or adds a small "
        "number?",
        _nearly,
    ),
    Slip(
        "other_length",
        "what stands at the beginning or the end can be left out or added.",
        "Some numbers at one end are missing, or too many. Compare the shapes, then the two ends.",
        partial(_turned, _piece),
    ),
    Slip(
        "refused",
        "such arguments have to be refused.",
        "The contract has a result for them. Which of your checks stops the call?",
        _refused_by_a_check,
    ),
    Slip(
        "argument_changed",
        "an argument is no longer needed once the result is there.",
        "The caller still has it. Which step writes into it?",
        lambda outcome, _: outcome.error != NOT_REACHED,
        (Unchanged,),
    ),
    Slip(
        "without_gradient",
        "a gradient arrives everywhere by itself.",
        "The numbers are right, but a gradient does not arrive whole. Which step does it not pass, "
        "or which parameter is frozen?",
        _without_gradient,
        (Gradient,),
    ),
    Slip(
        "refused_otherwise",
        "an error of any kind refuses an argument.",
        "Which kind does the exercise ask for? Check the argument before anything is computed.",
        _refused_otherwise,
        (Refuses, Call),
    ),
    Slip(
        "not_refused",
        "such arguments need not be refused.",
        "Which arguments should raise a ValueError? Check them before anything is computed.",
        _not_refused,
        (Refuses, Call),
    ),
    Slip(
        "contract_broken",
        "names, sizes and types may be others than those that the exercise gives.",
        "The first wrong line says what is not as agreed. Where do you choose it?",
        lambda outcome, _: outcome.breaks_contract,
    ),
)

HAS_MORE = Slip(
    "has_more",
    "a layer may hold more than the exercise names.",
    "The line on what learns names what yours holds besides. What is it there for?",
    lambda outcome, _: outcome.has_more,
    (Gradient,),
)
"""Named where no slip fits, and for wrong results too: an additional parameter starts at random."""


def slips(outcomes: Sequence[Sequence[Outcome]], key: Key) -> list[tuple[Slip, tuple[int, ...]]]:
    """Return the slips of a wrong answer, each with the places of the lines that show it.

    Together they explain every wrong line. Only gradients may be wrong where a result is.
    """
    rows = list(zip(key.expected.lines, outcomes, key.tolerances, strict=True))
    wrong = {i: cases for i, row in enumerate(rows) if (cases := list(wrong_cases(*row)))}
    kinds = {i: KINDS[rows[i][0].kind] for i in wrong}
    results = {i for i in wrong if isinstance(kinds[i], Call)}
    gradients = {i for i in wrong if isinstance(kinds[i], Gradient)}
    raised = {i for i in wrong if all(_raised(outcome) for _, outcome, _ in wrong[i])}
    found, explained = [], set[int]()
    for slip in SLIPS:
        if results and slip.kinds == (Gradient,):
            continue  # wrong results have wrong gradients
        lines = tuple(i for i in wrong if isinstance(kinds[i], slip.kinds) and i not in explained)
        if lines and all(slip.shows(outcome, case) for i in lines for case, outcome, _ in wrong[i]):
            if slip.kinds == (Unchanged,):  # autograd raises an error where its leaves are changed
                lines += tuple((gradients & raised) - explained)
            found.append((slip, lines))
            explained |= {*lines}
    after_results = gradients if explained & results else set()
    if explained | after_results == set(wrong):
        return found
    if any(outcome.has_more for i in gradients for _, outcome, _ in wrong[i]):
        return [(HAS_MORE, tuple(sorted((results | gradients) - raised)))]
    return []
