"""A claim is what could be said without computing; whether that is so is measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from any_course import make

from autograde.authoring import check, measure
from autograde.authoring.expected import read_tolerances
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
    lines = read_tolerances(lesson)[exercise.name]
    assert lines["yes or no"]["claim"]
    lesson.tolerance_file.write_text(
        '{"is_sorted": {"yes or no": {"tolerance": 0, "claim": true}}}'
    )
    faults = check.judge_variants(lesson, exercise).faults
    assert list(faults).count(check.ALL_GUESSED) == 1
    assert not any("the right variant" in fault for fault in faults)
