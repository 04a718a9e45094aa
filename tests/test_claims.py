"""A claim is what could be said without computing: which lines are claims, and when they count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from any_course import make
from conftest import as_cell, make_key, record
from test_judge import right, softmax_rubric
from torch import Tensor

from autograde.authoring import check, measure
from autograde.course.lesson_files import read_measured
from autograde.rubric.checks import Reading, Unreadable, claim
from autograde.rubric.judge import judge
from autograde.rubric.recording import Line, Outcome
from autograde.values.dispatch import to_plain
from autograde.values.packing import pack

Draw = np.random.Generator
LINES: dict[str, tuple[Callable[[Draw], list[Any]], bool]] = {
    "yes or no": (lambda d: [bool(d.integers(2))], True),
    "three times yes or no": (lambda d: [bool(v) for v in d.integers(2, size=3)], True),
    "four times yes or no": (lambda d: [bool(v) for v in d.integers(2, size=4)], False),
    "four times mostly yes": (lambda d: [bool(d.random() < 0.9) for _ in range(4)], True),
    "four times yes or no, three of them always yes": (
        lambda d: [True, True, True, bool(d.integers(2))], True,
    ),
    "always the same": (lambda d: [{"mask": np.ones(5)}, "text"], True),
    "the same but for the order of keys": (
        lambda d: [dict.fromkeys(d.permutation(["a", "b"]).tolist(), 1)], True,
    ),
    "nothing": (lambda d: [None], True),
    "one of four numbers": (lambda d: [int(d.integers(4))], True),
    "three times one of four numbers": (lambda d: d.integers(4, size=3).tolist(), False),
    "one of four words": (lambda d: ["abcd"[d.integers(4)] * 9], True),
    "one of thirty": (lambda d: [int(d.integers(30))], False),
    "a text that depends on the inputs": (lambda d: [f"HELLO {d.integers(900)}!"], False),
    "numbers": (lambda d: [d.normal(), True, 0], False),
    "a tensor": (lambda d: [torch.from_numpy(d.normal(size=3))], False),
    "a set": (lambda d: [{*d.integers(99, size=4).tolist()}], False),
    "an error half of the time": (lambda d: [ValueError("no") if d.integers(2) else 1], True),
}  # fmt: skip
"""What the cases of a line give on a seed, and whether the line is a claim."""


def outcome(value: Any) -> Outcome:
    if isinstance(value, Exception):
        return Outcome(error=type(value).__name__, message=str(value))
    return Outcome(value=to_plain(value))


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_a_claim_if_it_can_be_guessed(name: str) -> None:
    give, claim = LINES[name]
    outcomes = [
        [pack([o.error, o.value]) for o in map(outcome, give(np.random.default_rng(seed)))]
        for seed in measure.MEASURED_SEEDS
    ]
    assert measure._can_be_guessed(Line("it", "call", ()), outcomes) == claim


def test_an_exercise_of_claims_alone_is_a_fault_said_once(tmp_path: Path) -> None:
    lesson = make(tmp_path)
    text = lesson.text.read_text()
    many = "*(([0.0, u],) for u in r.normal(5).tolist())"
    assert many in text
    lesson.text.write_text(text.replace(many, "*(([0.0, u],) for u in r.normal(1).tolist())"))
    exercise = lesson.exercise("is_sorted")
    measure.measure(lesson, (exercise,))
    lines = read_measured(lesson)[exercise.name]
    assert lines["yes or no"]["claim"]
    lesson.tolerance_file.write_text(
        '{"is_sorted": {"yes or no": {"tolerance": 0, "claim": true}}}'
    )
    faults = check.judge_variants(lesson, exercise).faults
    assert list(faults).count(check.ALL_GUESSED) == 1
    assert not any("the right variant" in fault for fault in faults)


@claim
def above_0(value: Any, _before: Any) -> list[Reading]:
    if not isinstance(value, float):
        raise Unreadable("is no float")
    return [Reading("the number", value > 0, True, 0.1)]


def test_a_check_that_a_constant_passes_cannot_vouch() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.check("above 0", "above_0", answer, (r.normal(3),))
        r.call("the sum", answer, r.normal(3))

    key = make_key(lines, lambda x: float(x.exp().sum()))
    assert key.claims == (True, False)
    assert judge(record(lines, lambda x: 1.0), key).points == 0
    assert judge(record(lines, lambda x: float(x.exp().sum())), key).passed


HANDED_BACK: dict[str, Callable[[Tensor], Any]] = {
    "the argument": lambda x: x,
    "a copy of it": lambda x: x * 1.0,
    "zeros": torch.zeros_like,
    "one number": lambda x: torch.full((4, 5), -torch.inf),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("name", HANDED_BACK)
def test_what_nobody_has_to_compute_cannot_vouch(name: str) -> None:
    """The answer hands back what it was given, and claims that it refuses what it should."""

    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.each("when not training", lambda x: answer(x, False), (r.normal(4, 5),), (r.normal(6),))
        r.call("in training", lambda x: answer(x, True), r.normal(3, 4))
        r.refuses("raises ValueError for p = 2", answer, (r.normal(3), 2))

    def give(x: Tensor, training: float) -> Any:
        if training == 2:
            raise ValueError
        return HANDED_BACK[name](x)

    def compute(x: Tensor, training: float) -> Any:
        return give(x, training) if training != 1 else x.exp()

    key = make_key(lines, compute)
    assert judge(record(lines, give), key).points == 0
    assert judge(record(lines, compute), key).passed
    half = judge(record(lines, lambda x, p: give(x, p) if p == 2 else x.exp()), key)
    assert [line.passed for line in half.lines] == [False, True, True]


def test_where_every_line_hands_its_argument_back_that_is_the_exercise() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("as it came", answer, r.normal(3))
        r.refuses("raises ValueError for a number", answer, (1,))

    def same(x: Any) -> Any:
        if isinstance(x, int):
            raise ValueError
        return x

    key = make_key(lines, same)
    assert judge(record(lines, same), key).passed


def test_one_number_that_has_to_be_computed_vouches() -> None:
    """A loss is one number. An answer that is only cut off keeps the points of its other lines."""

    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("the sum", answer, r.normal(3, 4))
        r.gradient("lets gradients through", answer, r.normal(3, 4))
        r.unchanged("leaves its arguments as they were")

    key = make_key(lines, torch.sum)
    verdict = judge(record(lines, lambda x: x.sum().detach()), key)
    assert [line.passed for line in verdict.lines] == [True, False, True]


def test_claims_count_only_beside_a_right_line_that_computes() -> None:
    key, recorded = (
        make_key(softmax_rubric, right),
        record(softmax_rubric, lambda x: torch.zeros(3)),
    )
    verdict = judge(recorded, key)
    assert verdict.points == 0
    assert not verdict.lines[-1].passed
    alone = judge(recorded, key, trusted=True)
    assert alone.lines[-1].passed
