"""What a verdict says about right, wrong and strange outcomes."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import as_cell, make_key, record
from torch import Tensor, nn

import attention_course  # noqa: F401  # registers its probes and checks
from autograde.rubric.judge import NOT_WRITTEN, Verdict, judge
from autograde.rubric.panel import advice, to_display
from autograde.rubric.recording import Stop
from autograde.values.base import Unrecordable
from autograde.values.dispatch import apart


@as_cell
def softmax_rubric(r: Any, answer: Callable[..., Any]) -> None:
    r.idea.each("softmax over the last dimension", answer, (r.normal(2, 3),), (r.normal(5, 7),))
    r.conventions(answer, r.normal(4, 6))


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


def said_of(verdict: Verdict) -> str:
    return to_display(verdict, advice(verdict, named=True))["text/plain"]


def refusing(x: Tensor) -> Tensor:
    raise ValueError("no")


def unwritten(x: Tensor) -> Tensor:
    raise NotImplementedError


@as_cell
def careful_rubric(r: Any, answer: Callable[..., Any]) -> None:
    r.call("of a matrix", answer, r.normal(2, 3))
    r.call("of a batch", answer, r.normal(4, 2, 3))
    r.refuses("raises ValueError for text", answer, ("text",))
    r.unchanged("leaves its arguments as they were")


def careful(x: Tensor) -> Tensor:
    if isinstance(x, str):
        raise ValueError("no")
    return right(x)


def test_claims_do_not_count_through_a_withdrawn_line() -> None:
    key = make_key(careful_rubric, careful)
    answers = [record(careful_rubric, answer) for answer in (careful, refusing)]
    for withdrawn, points in (
        ((), 0),
        (("of a matrix",), 4 / 3),
        (("of a matrix", "of a batch"), 4),
    ):
        less = replace(key, withdrawn=withdrawn)
        assert [judge(recording, less).points for recording in answers] == pytest.approx(
            [4, points], abs=1e-4
        )


SYMPTOMS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "wrong dimension": (over_columns, "sums to"),
    "shape": (lambda x: right(x)[:, :2], "has the shape (2, 2), expected (2, 3)."),
    "transposed": (lambda x: right(x).T, "has the shape (3, 2), expected (2, 3)."),
    "factor": (lambda x: 3 * right(x), "Every entry is 3 times what was expected."),
    "sign": (lambda x: -right(x), "Every entry has the wrong sign."),
    "nan": (lambda x: right(x) * float("nan"), "6 of 6 entries are nan."),
    "zeros": (lambda x: 0 * right(x), "Every entry is 0."),
    "none": (lambda x: None, "is None, expected a tensor of shape (2, 3)."),
    "list": (lambda x: right(x).tolist(), "is a list, expected a tensor of shape (2, 3)."),
    "numpy": (
        lambda x: right(x).detach().numpy(),
        "is a NumPy array of shape (2, 3), expected a tensor",
    ),
    "half": (lambda x: right(x).half(), "has the dtype float16, expected float32."),
    "error": (lambda x: x @ x, "mat1 and mat2 shapes cannot be multiplied"),
    "whole numbers": (lambda x: x.long().softmax(-1), "raises NotImplementedError: "),
    "not written": (unwritten, "Not written yet"),
    "refusal": (refusing, "raises ValueError: no"),
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_symptom_is_named(name: str) -> None:
    answer, symptom = SYMPTOMS[name]
    verdict = verdict_on(answer)
    assert verdict.points < verdict.max_points
    assert symptom in said_of(verdict)


def test_right_answer_gets_everything() -> None:
    verdict = verdict_on(lambda x: x.exp() / x.exp().sum(-1, keepdim=True))
    assert verdict.passed
    assert verdict.points == verdict.max_points == 4.0


def test_the_idea_carries_most_of_the_points() -> None:
    idea, *others = (line.worth for line in verdict_on(right).lines)
    assert idea > sum(others)
    assert verdict_on(over_columns).points < 2.0


def test_a_cut_gradient_costs_its_line_alone() -> None:
    verdict = verdict_on(lambda x: right(x).detach())
    assert [line.passed for line in verdict.lines] == [True, True, False, True]
    assert "cut off from its inputs" in said_of(verdict)


@as_cell
def product_rubric(r: Any, answer: Callable[..., Any]) -> None:
    r.call("the product", answer, r.normal(3), r.normal(3))
    r.gradient("gradients pass", answer, r.normal(3), r.normal(3))


def test_every_argument_gets_its_gradient() -> None:
    key = make_key(product_rubric, lambda x, y: x * y)
    for answer in (lambda x, y: x * y.detach(), lambda x, y: x.detach() * y):
        verdict = judge(record(product_rubric, answer), key)
        assert [line.passed for line in verdict.lines] == [True, False]
        assert "No gradient reaches" in said_of(verdict)


@pytest.mark.parametrize(("off", "passed"), [(0.9, True), (1.1, False)])
def test_a_tolerance_is_a_limit(off: float, passed: bool) -> None:
    @as_cell
    def one_number(r: Any, answer: Callable[..., Any]) -> None:
        r.call("the number", answer)

    recording = record(one_number, lambda: 8.0 * (1 + off * 1e-3))
    assert judge(recording, make_key(one_number, lambda: 8.0, tolerance=1e-3)).passed == passed


def test_a_changed_argument_costs_its_line_alone() -> None:
    verdict = verdict_on(in_place)
    assert [line.name for line in verdict.lines if not line.passed] == [
        "leaves its arguments as they were"
    ]
    assert "in_place(x) changes its arguments." in said_of(verdict)


def test_lines_that_share_an_argument_are_judged_apart() -> None:
    @as_cell
    def rubric_of_two(r: Any, answer: Callable[..., Any]) -> None:
        x, layer = r.normal(2, 3), r.module("two layers", 3, 4)
        r.call("one line", answer, x, layer)
        r.call("another line", answer, x, layer)
        r.unchanged("leaves its arguments as they were")

    def answer(x: Tensor, layer: nn.Module) -> Tensor:
        result: Tensor = layer(x)
        return result

    def careless(x: Tensor, layer: nn.Module) -> Tensor:
        result = answer(x, layer.eval())
        layer[0].bias.data += 1
        x += 1
        return result

    verdict = judge(record(rubric_of_two, careless), make_key(rubric_of_two, answer), trusted=True)
    assert verdict.note == ""
    assert [line.passed for line in verdict.lines] == [True, True, False]
    assert "leaves a module in another mode" in said_of(verdict)


def test_float32_inside_is_seen_in_float64() -> None:
    verdict = verdict_on(lambda x: right(x.float()).to(x.dtype))
    assert [line.passed for line in verdict.lines] == [True, False, True, True]


def test_the_smallest_failing_case_is_shown() -> None:
    small = verdict_on(over_columns).lines[0].failure
    assert small is not None
    assert small.got is not None
    assert small.got.caption == "shape (2, 3)"
    large = verdict_on(lambda x: right(x) if len(x) < 5 else over_columns(x)).lines[0].failure
    assert large is not None
    assert large.got is not None
    assert large.got.caption == "shape (5, 7)"


def test_tables_show_what_the_sentence_speaks_of() -> None:
    @as_cell
    def two(r: Any, answer: Callable[..., Any]) -> None:
        r.call("two matrices", answer, r.normal(2, 3), r.normal(4, 3))

    key = make_key(two, lambda x, y: (x, y))
    failure = judge(record(two, lambda x, y: (1.1 * x, 3 * y)), key).lines[0].failure
    assert failure is not None
    assert failure.got is not None
    assert "[1][0, 0] is" in failure.sentence
    assert failure.got.caption == "shape (4, 3), [1]"


def test_the_student_s_own_line_is_shown() -> None:
    names: dict[str, Any] = {}
    code = "def it(x):\n    y = x + 1\n    return y @ y\n"
    import linecache

    linecache.cache["<cell>"] = (len(code), None, code.splitlines(keepends=True), "<cell>")
    exec(compile(code, "<cell>", "exec"), names)  # noqa: S102 (as a notebook does)
    assert "(in line 3: return y @ y)" in said_of(verdict_on(names["it"]))


def test_an_error_is_told_with_the_shape_of_each_argument_that_is_not_shown() -> None:
    @as_cell
    def product(r: Any, answer: Callable[..., Any]) -> None:
        r.call("a product", answer, r.normal(30, 20), r.normal(2, 3), r.normal(20, 40))

    def it(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return x @ z

    def wrong(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return z @ x

    failure = judge(record(product, wrong), make_key(product, it)).lines[0].failure
    assert failure is not None
    said = "`x` has the shape (30, 20) and `z` has the shape (20, 40)."
    assert failure.sentence.endswith(said)
    assert [each.name for each in failure.inputs] == ["y"]


def raising(name: str, message: str) -> Callable[[Tensor], Tensor]:
    def answer(x: Tensor) -> Tensor:
        raise type(name, (Exception,), {})(message)

    return answer


def test_what_an_answer_raises_is_told_short_and_seen() -> None:
    answers = raising("<b>" * 10_000, ""), raising("E", "\x1b[2J\u202e" + "x" * 300_000)
    for answer in (*answers, lambda x: x.new_zeros([1] * 40)):
        page = to_display(verdict_on(answer), [])["text/html"]
        assert len(page) < 40_000
        assert "\x1b" not in page
        assert "\u202e" not in page
    stopped = replace(record(softmax_rubric, right), lines=(), stopped=Stop("E", "\x1b" * 10**6))
    note = judge(stopped, make_key(softmax_rubric, right)).note
    assert len(note) < 10_000
    assert note.isprintable()


@as_cell
def mask_rubric(r: Any, answer: Callable[..., Any]) -> None:
    r.call("one token", answer, 1)
    r.each("any number of tokens", answer, (3,), (r.integer(5, 40),))
    r.refuses("raises ValueError when n is below 1", answer, (0,), (-r.integer(1, 9),))


def future_mask(n: int) -> Tensor:
    if n < 1:
        raise ValueError(n)
    return torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)


def with_diagonal(n: int) -> Tensor:
    if n < 1:
        raise ValueError(n)
    return torch.ones(n, n, dtype=torch.bool).triu()


def test_a_mask_is_judged_as_it_is() -> None:
    key = make_key(mask_rubric, future_mask)
    assert judge(record(mask_rubric, future_mask), key).passed
    wrong = judge(record(mask_rubric, with_diagonal), key)
    assert "with_diagonal" not in said_of(wrong)  # the call is named as the reference's
    assert "future_mask(1)[0, 0] is True, expected False." in said_of(wrong)
    assert wrong.points == 0  # a refusal alone is a claim


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("assert n >= 1", ""),
        ("pass", "future_mask(0) returns None, expected a ValueError."),
        (
            "if n < 1: raise KeyError(n)",
            "future_mask(0) raises KeyError: 0, expected a ValueError.",
        ),
        (
            "if n < 1: return ValueError(n)",
            "future_mask(0) returns an error instead of raising it, expected a ValueError.",
        ),
        (
            "if n < 1: return ValueError",
            "future_mask(0) returns an error instead of raising it, expected a ValueError.",
        ),
        ("if n < 1: return 'too small'", "future_mask(0) returns 'too small', expected a ValueE"),
    ],
)
def test_refusals(body: str, said: str) -> None:
    names: dict[str, Any] = {"torch": torch}
    mask = "torch.ones(n, n, dtype=torch.bool).triu(1) if n >= 1 else None"
    exec(f"def it(n):\n    {body}\n    return {mask}", names)  # noqa: S102
    verdict = judge(record(mask_rubric, names["it"]), make_key(mask_rubric, future_mask))
    assert verdict.passed == (not said)
    assert said in said_of(verdict)


def gives_up(n: int) -> None:
    raise RuntimeError("no convergence")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('after 50 steps')", ""),
        ("return None", "it(2) returns None, expected a RuntimeError."),
        ("raise ValueError(n)", "it(2) raises ValueError: 2, expected a RuntimeError."),
        ("raise KeyError(n)", "it(2) raises KeyError: 2, expected a RuntimeError."),
        ("return it(n)", "it(2) raises RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_a_rubric_may_ask_for_another_error(body: str, said: str) -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.refuses("no convergence", answer, (2,), error=RuntimeError)

    names: dict[str, Any] = {}
    exec(f"def it(n):\n    {body}", names)  # noqa: S102
    key = make_key(lines, gives_up)
    verdict = judge(record(lines, names["it"]), key, trusted=True)
    assert verdict.passed == (not said)
    assert said.replace("it(2)", "gives_up(2)") in said_of(verdict)
    assert not judge(record(lines, lambda n: n), make_key(lines, lambda n: n)).passed


def test_a_reference_that_raises_another_error_than_its_rubric_asks_for_is_wrong() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.refuses("raises ValueError", answer, (2,))

    verdict = judge(record(lines, gives_up), make_key(lines, gives_up), trusted=True)
    assert "raises RuntimeError: no convergence, expected a ValueError." in said_of(verdict)


def test_another_error_than_a_refusal_is_named() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("the first of a list", answer, [])

    def first(items: list[int]) -> int:
        if not items:
            raise ValueError("an empty list")
        return items[0]

    key = make_key(lines, first)
    assert judge(record(lines, first), key, trusted=True).passed
    verdict = judge(record(lines, lambda items: items[0]), key, trusted=True)
    assert "raises IndexError: list index out of range" in said_of(verdict)
    assert "expected a ValueError." in said_of(verdict)


def test_a_subclass_of_a_refusal_is_judged_as_one_and_named() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("the object in a text", answer, "")

    read = record(lines, json.loads)
    assert judge(read, make_key(lines, refusing), trusted=True).passed
    verdict = judge(read, make_key(lines, len), trusted=True)
    assert "raises ValueError: JSONDecodeError: Expecting value: line 1" in said_of(verdict)


def test_a_text_that_an_answer_returns_is_no_refusal() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("large orders", answer, 30)

    key = make_key(lines, lambda order: "refused", {"accepts": lambda order: "accepted"})
    verdict = judge(record(lines, lambda order: "taken"), key, trusted=True)
    assert "is 'taken', expected 'refused'." in said_of(verdict)
    assert not verdict.beliefs


def test_an_entry_within_the_tolerance_is_not_called_wrong() -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("four numbers", answer, 1)

    wanted = torch.tensor([100.0, 200.0, 300.0, 400.0])
    got = torch.tensor([100.2, 200.3, 300.1, 40.0])
    key = replace(make_key(lines, lambda n: wanted), tolerances=(0.01,))
    said = said_of(judge(record(lines, lambda n: got), key, trusted=True))
    assert "[3] is 40, expected 400." in said
    assert said.split("came back")[1].split("expected")[0].count("*") == 2  # it, and the caption


NEAR_AND_FAR: dict[str, tuple[Any, Any]] = {
    "a list": ([100.2, 200.3, 40.0, 0.6], [100.0, 200.0, 300.0, 0.5]),
    "whole numbers": (torch.tensor([1003, 5]), torch.tensor([1000, 5])),
}


@pytest.mark.parametrize(("got", "wanted"), NEAR_AND_FAR.values(), ids=NEAR_AND_FAR)
def test_what_is_marked_is_what_is_wrong(got: Any, wanted: Any) -> None:
    @as_cell
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("numbers", answer, 1)

    key = replace(make_key(lines, lambda n: wanted), tolerances=(0.01,))
    found = judge(record(lines, lambda n: got), key, trusted=True).lines[0].failure
    assert found is not None
    assert found.got is not None
    assert len(found.got.wrong) == 1


def test_a_right_line_that_counts_for_nothing_does_not_hide_what_is_behind_a_wrong_one() -> None:
    known = {"over_columns": lambda x: careful(x) if isinstance(x, str) else over_columns(x)}
    key = make_key(careful_rubric, careful, known)
    wrong = record(careful_rubric, known["over_columns"])
    for trusted in (True, False):
        assert [each.name for each in judge(wrong, key, trusted=trusted).beliefs] == [*known]


def test_a_number_that_is_nearly_right_is_told_how_near_it_has_to_be() -> None:
    near, far = (verdict_on(lambda x, by=by: right(x) * (1 + by)) for by in (2e-3, 0.2))
    assert "The largest relative error is 0.002; up to 1e-05 is right." in said_of(near)
    assert "relative error" not in said_of(far)


def test_untouched_exercise_is_not_attempted() -> None:
    verdict = verdict_on(unwritten)
    assert not verdict.attempted
    assert verdict.note == NOT_WRITTEN
    assert verdict.points == 0


def test_other_inputs_are_no_fault_of_the_answer() -> None:
    verdict = judge(record(softmax_rubric, right, seed=4), make_key(softmax_rubric, right))
    assert verdict.points == 0
    assert "The answer itself is not at fault" in verdict.note


def test_inputs_that_an_earlier_grader_could_not_record_are_not_compared() -> None:
    def lines(r: Any, answer: Callable[..., Any]) -> None:
        r.call("the first letters", answer, np.array(["Ann", "Bo"], dtype=object))

    def initials(names: Any) -> list[str]:
        return [name[0] for name in names]

    rubric = as_cell(lines)
    key = make_key(rubric, initials)
    (line,) = key.expected.lines
    case = replace(line.cases[0], before=(Unrecordable("an array of dtype object"),))
    of_1_0 = replace(key, expected=replace(key.expected, lines=(replace(line, cases=(case,)),)))
    assert judge(record(rubric, initials), of_1_0, trusted=True).passed


def test_a_doubled_line_counts_nothing() -> None:
    recording = record(softmax_rubric, right)
    doubled = type(recording)("it", recording.lines + recording.lines[:1])
    verdict = judge(doubled, make_key(softmax_rubric, right))
    assert verdict.points == 0
    assert "twice" in verdict.note


def test_a_missing_line_counts_nothing_for_itself() -> None:
    recording = record(softmax_rubric, right)
    verdict = judge(type(recording)("it", recording.lines[1:]), make_key(softmax_rubric, right))
    assert [line.passed for line in verdict.lines] == [False, True, True, True]


@pytest.mark.parametrize(
    ("got", "expected", "at", "symptom"),
    [
        ([[9.0]], [[-0.5]], "[0, 0]", "is 9, expected -0.5000"),
        ([[True, True], [False, True]], [[False, True], [False, False]], "[0, 0]",
         "is True, expected False"),
        ([1, 3], [1, 2], "[1]", "is 3, expected 2"),
        ([0.0, 1.0], [2.0, 1.0], "[0]", "is 0, expected 2"),
        ([0.25, 0.50001], [0.25, 0.5], "[1]", "is 0.5000100, expected 0.5000000"),
        ([1.0, float("-inf")], [1.0, -1e9], "[1]", "is -inf, expected -1000000000"),
        ([1.0, -1e9], [1.0, float("-inf")], "[1]", "is -1000000000, expected -inf"),
    ],
)  # fmt: skip
def test_the_first_entry_that_differs(
    got: list[Any], expected: list[Any], at: str, symptom: str
) -> None:
    found = apart(torch.tensor(got), torch.tensor(expected)).in_words()
    assert (found.at, found.symptom) == (at, symptom)


def test_panel_escapes_what_the_student_wrote() -> None:
    def hostile(x: Tensor) -> Tensor:
        raise RuntimeError("<script>alert(1)</script>")

    verdict = verdict_on(hostile)
    html = to_display(verdict, ["<img src=x>"])["text/html"]
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html


def test_panel_shows_the_first_wrong_line_and_folds_the_others() -> None:
    key = make_key(softmax_rubric, right)
    verdict = judge(record(softmax_rubric, over_columns), key, trusted=True)
    html = to_display(verdict, [])["text/html"]
    assert html.count("<details>") == 2
    assert "and 2 more wrong lines" in html
    assert "1 right" in html
    assert "came back, shape (2, 3)" in html
    assert "✗&nbsp;" in html
    assert "var(--jp-" in html  # follows the theme
    text = said_of(verdict_on(over_columns))
    assert "wrong entries marked *" in text
