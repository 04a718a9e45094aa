"""What each kind of rubric line makes of results that it was not made for."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch

from autograde.rubric.checks import Checked, Reading, Unreadable, check, share_of, worst
from autograde.rubric.kinds import KINDS
from autograde.rubric.recording import Case, Outcome

ODD: list[Any] = [
    [], None, True, "text", 7, {}, [[]], [None], {"mask": 1}, torch.zeros(0), np.zeros(2),
]  # fmt: skip
"""The first is right where a list of faults is expected."""


CHECKS = [name for name, kind in KINDS.items() if isinstance(kind, Checked)]


@pytest.mark.parametrize("name", [*CHECKS, "refuses", "unchanged", "forbids"])
def test_a_line_fails_on_whatever_it_cannot_read(name: str) -> None:
    kind, case = KINDS[name], Case("f()", (), Outcome())
    for value in ODD if name in CHECKS else ODD[1:]:
        got = kind.read(Outcome(value=value), case)
        assert kind.compare(got, case).distance > 1, value


def test_only_a_result_that_is_missing_is_asked_for() -> None:
    case = Case("f()", (), Outcome(value=["text"]))
    notes = [KINDS["call"].compare(Outcome(value=value), case).note for value in (None, [None])]
    assert notes == ["Does it `return` its result?", ""]


def test_a_limit_may_be_0_and_a_check_may_find_nothing_to_measure() -> None:
    assert [Reading("their number", n, 2, limit=0).distance for n in (2, 3, nan)] == [0, inf, inf]
    assert share_of("zeros", np.zeros(4) == 0, 1.0).distance == 0
    assert worst([]).symptom == "gives its check nothing to measure"
    assert worst([Reading("sixes", 2000, 333.3, 9)]).note == "Sixes is 2000, expected 333."


RETURNED_INSTEAD = {"'no'": '"it isn\'t"', "-1": "a result", "None": "None", "False": "False"}
"""What calls return in place of an error, each with another that is the same mistake."""


def test_a_text_in_place_of_an_error_is_another_mistake_than_a_result() -> None:
    for one, same in RETURNED_INSTEAD.items():
        for other in RETURNED_INSTEAD.values():
            got, known = (Outcome(value=f"returns {it}") for it in (one, other))
            assert KINDS["refuses"].alike(got, known, 0) == (other == same)


def test_each_python_words_a_division_by_zero_in_its_own_way() -> None:
    def alike(error: str, *messages: str) -> bool:
        got, known = (Outcome(error=error, message=message) for message in messages)
        return KINDS["call"].alike(got, known, 1e-6)

    assert alike("ZeroDivisionError", "division by zero", "float division by zero")
    assert not alike("KeyError", "'key'", "'query'")


def test_no_check_has_the_name_of_another_one_or_of_a_kind_of_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def a_check(name: str, module: str) -> Any:
        def found(result: Any, arguments: Any) -> list[Reading]:
            return []

        found.__name__, found.__module__ = name, module
        return found

    monkeypatch.setitem(KINDS, "theirs", Checked(a_check("theirs", "one")))
    check(a_check("theirs", "one"))  # the module is imported once more
    for name, home in (("theirs", "one"), ("call", "autograde.rubric.kinds")):
        with pytest.raises(ValueError, match=f"^{home} has a check {name} too: rename one"):
            check(a_check(name, "another"))


UNREAD = {
    "nothing": None,
    "text": "text",
    "a long list": [0.5] * 3000,
}


@pytest.mark.parametrize("found", [Reading("it", 0, 0, 1), [0.5], [Reading("it", "x", 0, 1)]])
def test_a_check_that_returns_no_readings_is_named(found: Any) -> None:
    def of_nothing(result: Any, arguments: Any) -> Any:
        return found

    read = Checked(of_nothing).read(Outcome(value=1), Case("it(x)", [], Outcome()))
    assert read.message.startswith("the check of_nothing cannot read the result: ")


@pytest.mark.parametrize("name", UNREAD)
def test_a_result_that_a_check_cannot_read_is_wrong_and_said_short(name: str) -> None:
    """A course's own check may fail in any way on what it did not expect."""

    def is_small(result: Any, arguments: Any) -> list[Reading]:
        if isinstance(result, list):
            raise Unreadable(f"the result is {result}, expected an array")
        return [Reading("the mean", result.mean(), 0.0, 6.0)]

    read = Checked(is_small).read(Outcome(value=UNREAD[name]), Case("it(x)", [], Outcome()))
    assert read.error == "ContractBroken"
    assert len(read.message) < 200
