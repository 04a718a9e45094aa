"""What a verdict says about right, wrong and strange outcomes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import make_key, record
from torch import Tensor

from autograde.rubric.compare import compare_values
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.panel import advice, to_html, to_text
from autograde.rubric.probes import rubric


def softmax_rubric(answer: Callable[..., Any]) -> None:
    with rubric("it") as r:
        r.call("a matrix", answer, r.normal(5, 7))
        r.call("float64", answer, r.normal(4, 6, dtype=torch.float64))
        r.gradient("gradient", answer, r.normal(3, 5))
        r.arguments("arguments")


def right(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def over_columns(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=0)


def in_place(x: Tensor) -> Tensor:
    result = torch.softmax(x.clone(), dim=-1)
    with torch.no_grad():
        x += 1
    return result


def verdict_on(answer: Callable[..., Any], **known: Callable[..., Any]) -> Verdict:
    return judge(record(softmax_rubric, answer), make_key(softmax_rubric, right, known))


SYMPTOMS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "wrong dimension": (over_columns, "sums to"),
    "shape": (lambda x: right(x)[:, :2], "the shape is (5, 2), expected (5, 7)"),
    "transposed": (lambda x: right(x).T, "the shape is (7, 5)"),
    "factor": (lambda x: 3 * right(x), "every entry is 3 times what it should be"),
    "sign": (lambda x: -right(x), "every entry has the wrong sign"),
    "nan": (lambda x: right(x).log().sub(1e9).exp().log() * 0, "35 of 35 entries are nan"),
    "zeros": (lambda x: 0 * right(x), "every entry is 0"),
    "none": (lambda x: None, "the result is None, expected a Tensor"),
    "list": (lambda x: right(x).tolist(), "the result is a list"),
    "numpy": (lambda x: right(x).detach().numpy(), "the result is a ndarray"),
    "half": (lambda x: right(x).half(), "the result is float16, expected float32"),
    "error": (lambda x: x @ x, "raised RuntimeError: mat1 and mat2"),
    "not written": (lambda x: (_ for _ in ()).throw(NotImplementedError()), "Not attempted"),
    "refusal": (lambda x: (_ for _ in ()).throw(ValueError("no")), "refused valid arguments: no"),
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_symptom_is_named(name: str) -> None:
    answer, symptom = SYMPTOMS[name]
    verdict = verdict_on(answer)
    assert verdict.points < verdict.max_points
    said = to_text(verdict, advice(verdict, named=True))
    assert symptom in said


def test_right_answer_gets_everything() -> None:
    verdict = verdict_on(lambda x: x.exp() / x.exp().sum(-1, keepdim=True))
    assert verdict.passed
    assert verdict.points == verdict.max_points == 4.0


def test_cut_gradient_costs_its_line_alone() -> None:
    verdict = verdict_on(lambda x: right(x).detach())
    assert [line.passed for line in verdict.lines] == [True, True, False, True]
    assert verdict.points == 3.0


def test_changed_argument_costs_its_line_alone() -> None:
    verdict = verdict_on(in_place)
    assert [line.name for line in verdict.lines if not line.passed] == ["arguments"]
    assert "changes its arguments" in verdict.lines[-1].reason


def test_claims_count_only_beside_values() -> None:
    verdict = verdict_on(lambda x: torch.zeros(3))
    assert verdict.points == 0
    assert verdict.lines[-1].held


def zeros_rubric(answer: Callable[..., Any]) -> None:
    with rubric("it") as r:
        r.call("a matrix", answer, r.normal(5, 7))
        r.call("dtype and shape", lambda x: torch.zeros_like(answer(x)), r.normal(4, 6))


def test_zeros_need_no_computing_and_count_only_beside_numbers() -> None:
    key = make_key(zeros_rubric, right, {})
    assert judge(record(zeros_rubric, right), key).passed
    wrong = judge(record(zeros_rubric, lambda x: 3 * right(x)), key)
    assert wrong.points == 0
    assert wrong.lines[-1].held


def test_untouched_exercise_is_not_attempted() -> None:
    def stub(x: Tensor) -> Tensor:
        raise NotImplementedError

    verdict = verdict_on(stub)
    assert not verdict.attempted
    assert verdict.note == "Not attempted yet."
    assert verdict.points == 0


def test_known_mistake_is_named_and_another_is_not() -> None:
    known = verdict_on(over_columns, over_columns=over_columns)
    assert known.misconception is not None
    assert known.misconception.name == "over_columns"
    other = verdict_on(lambda x: 2 * right(x), over_columns=over_columns)
    assert other.misconception is None


def test_two_errors_with_different_messages_are_different_mistakes() -> None:
    def first(x: Tensor) -> Tensor:
        raise TypeError("one thing")

    def second(x: Tensor) -> Tensor:
        raise TypeError("another thing")

    assert verdict_on(first, first=first).misconception is not None
    assert verdict_on(second, first=first).misconception is None


def test_other_inputs_are_no_fault_of_the_answer() -> None:
    verdict = judge(record(softmax_rubric, right, seed=4), make_key(softmax_rubric, right))
    assert verdict.points == 0
    assert "no fault of the answer" in verdict.note


def test_doubled_line_counts_nothing() -> None:
    recording = record(softmax_rubric, right)
    doubled = type(recording)("it", recording.lines + recording.lines[:1])
    verdict = judge(doubled, make_key(softmax_rubric, right))
    assert verdict.points == 0
    assert "twice" in verdict.note


def test_missing_line_counts_nothing_for_itself() -> None:
    recording = record(softmax_rubric, right)
    verdict = judge(type(recording)("it", recording.lines[1:]), make_key(softmax_rubric, right))
    assert not verdict.lines[0].passed
    assert verdict.points == 3.0


def lowest_rubric(answer: Callable[..., Any]) -> None:
    with rubric("it") as r:
        r.check("float16", "most_negative", answer, "float16")


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (-65504.0, ""),
        (-65503.0, "-65503 is not the most negative number of float16"),
        (-1e9, "-1e+09 is lower than anything float16 can hold"),
        (float("-inf"), "-inf is not finite"),
        (-65504, "the result is a int, not a float"),
    ],
)
def test_most_negative_number(number: float, reason: str) -> None:
    key = make_key(lowest_rubric, lambda name: torch.finfo(getattr(torch, name)).min)
    assert judge(record(lowest_rubric, lambda name: number), key).lines[0].reason == reason


def test_numbers_where_infinities_belong_are_counted() -> None:
    def masked(x: Tensor) -> Tensor:
        return x.masked_fill(x > 0, float("-inf"))

    verdict = judge(
        record(softmax_rubric, lambda x: x.masked_fill(x > 0, -1e9)),
        make_key(softmax_rubric, masked),
    )
    assert "of 35 entries are finite and should not be" in verdict.lines[0].reason


def refusing_rubric(answer: Callable[..., Any]) -> None:
    with rubric("it") as r:
        r.call("a good size", answer, r.integer(3, 9))
        r.refuses("sizes below 1", answer, (r.integer(1, 9),), (-r.integer(0, 5),), (1,), (0,))


def ones(n: int) -> Tensor:
    if n < 1:
        raise ValueError(n)
    return torch.ones(n)


def asserting(n: int) -> Tensor:
    assert n >= 1
    return torch.ones(n)


def accepting(n: int) -> Tensor:
    return torch.ones(max(n, 0))


def refusing_everything(n: int) -> Tensor:
    raise ValueError(n)


def refusing_one(n: int) -> Tensor:
    if n <= 1:
        raise ValueError(n)
    return torch.ones(n)


def raising_another(n: int) -> Tensor:
    if n < 1:
        raise KeyError(n)
    return torch.ones(n)


@pytest.mark.parametrize(
    ("answer", "points", "reason"),
    [
        (asserting, 4.0, ""),
        (accepting, 2.0, "is accepted, should be refused with a ValueError"),
        (refusing_one, 2.0, "(1) is refused"),
        (raising_another, 2.0, ") raised KeyError, should be refused with a ValueError"),
        (refusing_everything, 0.0, "is refused"),
    ],
)
def test_refusals(answer: Callable[..., Any], points: float, reason: str) -> None:
    for seed in range(5):
        key = make_key(refusing_rubric, ones, seed=seed)
        verdict = judge(record(refusing_rubric, answer, seed=seed), key)
        assert verdict.points == points
        assert reason in verdict.lines[1].reason


@pytest.mark.parametrize(
    ("got", "expected", "symptom"),
    [
        ([[9.0]], [[-0.5]], "the entry at [0, 0] is 9.0000, off by 9.5"),  # no factor of one number
        ([[True, True], [False, True]], [[False, True], [False, False]],
         "the entry at [0, 0] is True and should not be"),
        ([1, 3], [1, 2], "the entry at 1 is 3.0000, off by 1"),
        ([[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], "every entry is 1"),
        ([-1e-9, 1.0], [2.0, 1.0], "the entry at 0 is 0.0000, off by 2"),
        ([1.0, 2340.0], [1.0, 4.0], "the entry at 1 is 2340.0000, off by 2,300"),
        ([1.0, 3e7], [1.0, 2.0], "the entry at 1 is 30000000.0000, off by 3e+07"),
    ],
)  # fmt: skip
def test_symptoms_of_single_entries_truths_and_whole_numbers(
    got: list[Any], expected: list[Any], symptom: str
) -> None:
    found = compare_values(torch.tensor(got), torch.tensor(expected))
    assert found.symptom == symptom


def test_panel_escapes_what_the_student_wrote() -> None:
    def hostile(x: Tensor) -> Tensor:
        raise RuntimeError("<script>alert(1)</script>")

    verdict = verdict_on(hostile)
    html = to_html(verdict, ["<img src=x>"])
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
