"""Practice: the answer at once, first the symptom, then the misconception."""

import gzip
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from conftest import as_cell, make_key
from torch import Tensor

from autograde.installed import Installed
from autograde.notebook import asking, judgements, lesson_here, practice, rubric
from autograde.progress import PRACTICE_FILE
from autograde.rubric import runs, session
from autograde.rubric.checks import Reading, check
from autograde.rubric.key import pack_keys, unpack_keys
from autograde.rubric.runs import Run
from autograde.values.packing import BadData, pack


@as_cell
def cell(r: Any, answer: Callable[..., Any]) -> None:
    r.call("a matrix", answer, r.normal(5, 7))


def right(x: Tensor) -> Tensor:
    return x.softmax(-1)


def over_columns(x: Tensor) -> Tensor:
    return x.softmax(0)


def not_scaled(x: Tensor) -> Tensor:
    return x.exp()


@check
def sums_to_1(value: Any, before: Any) -> list[Reading]:
    return [Reading("the sum", float(value.sum()), 1, 1e-6)]


def stub(x: Tensor) -> Tensor:
    raise NotImplementedError


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder with practice data; the list collects the panels shown in it."""
    panels: list[str] = []
    practised = replace(session.current(), seed=3)
    monkeypatch.setattr(session, "_begun", [lambda: practised])
    key = make_key(cell, right, {"over_columns": over_columns, "not_scaled": not_scaled})
    (tmp_path / PRACTICE_FILE).write_bytes(pack_keys({"it": key}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(practice, "display", lambda data, raw: panels.append(data["text/plain"]))
    monkeypatch.setattr(judgements, "last", {})
    monkeypatch.setattr(judgements, "refused", set())
    monkeypatch.setattr(asking, "_hints_shown", Counter())
    monkeypatch.setattr(runs, "_runs", [])
    return panels


def test_right_answer_is_shown_and_does_not_raise(shown: list[str]) -> None:
    cell(right)
    assert shown == [
        "it: 4 of 4 points\n  right  a matrix\n"
        "This lesson: 1 of 1 exercises right, 4 of 4 points. "
        "At the end save the notebook and press Validate."
    ]


def test_symptom_comes_first_and_the_misconception_next(shown: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(practice.RubricFailed, match="it is not right: a matrix"):
            cell(over_columns)
    first, second = shown
    assert "sums to" in first
    assert "over_columns is right." not in first
    assert "Ask why() for what may be behind it" in first
    assert "This result usually comes from assuming that over_columns is right." in second
    assert "Hint: Think." in second


def test_another_mistake_than_the_one_before_is_not_named_at_once(shown: list[str]) -> None:
    for mistake in (over_columns, not_scaled, over_columns):
        with pytest.raises(practice.RubricFailed):
            cell(mistake)
    assert not any("This result usually comes from" in panel for panel in shown)
    assert all("Ask why()" in panel for panel in shown)


def test_why_is_answered_without_a_name(shown: list[str]) -> None:
    asking.why()
    assert "Run a rubric cell first" in shown[-1]
    asking.why("it")
    assert shown[-1] == "it: why\nRun its rubric cell first."
    with pytest.raises(practice.RubricFailed):
        cell(over_columns)
    asking.why()
    assert "assuming that over_columns is right." in shown[-1]
    with pytest.raises(practice.RubricFailed):
        cell(lambda x: 3 * x)
    asking.why()
    assert "not one of the mistakes that the course knows" in shown[-1]
    cell(right)
    asking.why()
    assert shown[-1] == "it: why\nIt is right."


def test_a_case_can_be_played_with(shown: list[str]) -> None:
    assert asking.case("it") is None
    with pytest.raises(practice.RubricFailed):
        cell(over_columns)
    found = asking.case()
    assert found is not None
    (x,) = found.arguments
    assert found.result.equal(over_columns(x))
    assert found.expected.equal(right(x))
    for tensor in (x, found.result, found.expected):
        tensor.zero_()
    again = asking.case()
    assert again is not None
    assert again.expected.equal(right(*again.arguments))
    assert again.result.equal(over_columns(*again.arguments))
    assert asking.case("it", 2) is None
    assert shown[-1] == "it: case\nThere is no line 2; there are 1."
    cell(right)
    assert shown[-1].startswith("it: 4 of 4 points")


def test_a_case_of_a_line_with_several_right_results_has_the_result_itself(
    shown: list[str], tmp_path: Path
) -> None:
    @as_cell
    def sums(r: Any, answer: Callable[..., Any]) -> None:
        r.check("sums to 1", "sums_to_1", answer, (r.normal(5),))

    (tmp_path / PRACTICE_FILE).write_bytes(pack_keys({"it": make_key(sums, right)}))
    lesson_here.keys.cache_clear()
    with pytest.raises(practice.RubricFailed):
        sums(not_scaled)
    found = asking.case()
    assert found is not None
    assert found.result.equal(not_scaled(*found.arguments))
    assert found.expected is None


def test_a_case_of_a_table_can_be_played_with(shown: list[str], tmp_path: Path) -> None:
    @as_cell
    def totals(r: Any, answer: Callable[..., Any]) -> None:
        r.call("sums", answer, pd.DataFrame({"a": r.rng.normal(size=3)}))

    def total(table: pd.DataFrame) -> Any:
        return table.sum()

    (tmp_path / PRACTICE_FILE).write_bytes(pack_keys({"it": make_key(totals, total)}))
    lesson_here.keys.cache_clear()
    with pytest.raises(practice.RubricFailed):
        totals(lambda table: table.mean())
    found = asking.case()
    assert found is not None
    (table,) = found.arguments
    assert found.result.equals(table.mean())
    assert found.expected.equals(total(table))
    assert "table (DataFrame of shape (3, 1))" in repr(found)


def test_a_case_is_shown_as_a_small_page(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed):
        cell(over_columns)
    found = asking.case()
    assert found is not None
    page = found._repr_mimebundle_()
    assert "x (shape (5, 7))" in page["text/plain"]
    assert "came back (shape (5, 7)), wrong entries marked *" in page["text/plain"]
    assert ">x, shape (5, 7)</th>" in page["text/html"]
    cell(right)
    found = asking.case("it", 1)
    assert found is not None
    assert "is right." in repr(found)


def test_a_case_of_what_is_not_written_is_not_called_right(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed):
        cell(stub)
    found = asking.case()
    assert found is not None
    text = repr(found)
    assert "is right" not in text
    assert "was not judged. Not written yet" in text
    assert "expected (shape (5, 7))" in text
    assert "came back" not in text


def test_of_what_was_not_called_no_mistake_and_no_wrong_line_is_named(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed):
        cell(lambda x: it(x))  # noqa: F821
    why = (
        "Not checked: it is not defined yet. Run the cell that defines it, under exactly this name."
    )
    assert why in shown[0]
    assert "WRONG" not in shown[0]
    assert "Right so far" not in shown[0]
    asking.why()
    assert shown[-1] == f"it: why\n{why}"
    assert f"was not judged. {why}" in repr(asking.case())


def test_what_can_be_asked_is_folded_in_the_panel(
    shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[str] = []
    monkeypatch.setattr(practice, "display", lambda data, raw: pages.append(data["text/html"]))
    for _ in range(2):
        with pytest.raises(practice.RubricFailed):
            cell(over_columns)
    cell(right)
    first, second, third = pages
    summaries = [re.findall(r"<summary[^>]*>([^<]*)<", page) for page in pages]
    assert summaries[0][-4:] == ["Why?", "Hint 1 of 2", "Hint 2 of 2", "Case"]
    assert first.count("<details") == first.count("</details>")
    assert "over_columns is right." in first.split("Why?")[1]
    assert "Why?" not in second  # it is said outright
    assert "<summary" not in third


def test_an_answer_whose_older_run_prints_is_not_run_again_when_the_last_run_failed(
    shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def loud(x: Tensor) -> Tensor:
        print("an older function")
        return x

    runs._runs.append(Run(7, "def it(x)", "SyntaxError: no"))
    with pytest.raises(practice.RubricFailed):
        cell(loud)
    assert capsys.readouterr().out == ""


@as_cell
def two_lines(r: Any, answer: Callable[..., Any]) -> None:
    r.each("any numbers", answer, (r.normal(2, 3),), (100 * r.normal(2, 3),))
    r.each("large numbers", answer, (1000 * r.normal(2, 3),))


@as_cell
def ordinary_last(r: Any, answer: Callable[..., Any]) -> None:
    r.each("any numbers", answer, (r.normal(2, 3),), (100 * r.normal(2, 3),))
    r.each("twice as precise", answer, (100 * r.normal(2, 3).double(),))
    r.conventions(answer, 100 * r.normal(2, 3))


def naive(x: Tensor) -> Tensor:
    return x.exp() / x.exp().sum(-1, keepdim=True)


def test_the_line_that_leads_is_the_one_whose_simplest_case_is_wrong(
    shown: list[str], tmp_path: Path
) -> None:
    (tmp_path / PRACTICE_FILE).write_bytes(pack_keys({"it": make_key(two_lines, right)}))
    lesson_here.keys.cache_clear()
    with pytest.raises(practice.RubricFailed, match="large numbers"):
        two_lines(naive)
    with pytest.raises(practice.RubricFailed, match="any numbers"):
        two_lines(over_columns)
    with pytest.raises(practice.RubricFailed):
        two_lines(lambda x: right(x.clamp(-300, 300)) if x.abs().max() < 300 else x)
    assert "Right so far: 1 of 2 lines, 1 more than before." in shown[-1]


def test_a_dtype_or_a_gradient_does_not_lead_where_numbers_are_wrong(
    shown: list[str], tmp_path: Path
) -> None:
    key = make_key(ordinary_last, right)
    (tmp_path / PRACTICE_FILE).write_bytes(pack_keys({"it": key}))
    lesson_here.keys.cache_clear()
    with pytest.raises(practice.RubricFailed, match="any numbers"):
        ordinary_last(lambda x: right(x.clamp(-20, 20)))
    with pytest.raises(practice.RubricFailed, match="twice as precise"):
        ordinary_last(lambda x: right(x.float()))
    assert "WRONG  float64 in, float64 out" in shown[-1]


def test_hints_come_one_at_a_time(shown: list[str]) -> None:
    for _ in range(3):
        asking.hint("it")
    assert shown == [
        "it: hint 1 of 2\nlook",
        "it: hint 2 of 2\nlook again",
        "it: hint 1 of 2\nlook",
    ]


def test_untouched_exercise_says_so(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed, match="not written yet"):
        cell(stub)
    assert "still runs, here or in an answer that it calls." in shown[0]
    assert "WRONG" not in shown[0]
    asking.why()
    assert shown[-1] == "it: why\nIt is not written yet. hint() helps to begin."


def test_a_forgotten_return_is_named(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed):
        cell(lambda x: None)
    said = "it(x) is None, expected a tensor of shape (5, 7). Does it return its result?"
    assert said.removeprefix("it") in shown[0]


def test_an_exercise_is_known_by_its_function(shown: list[str]) -> None:
    def it() -> None: ...

    asking.hint(it)
    assert shown == ["it: hint 1 of 2\nlook"]


def test_a_misspelt_name_is_answered_with_the_nearest(shown: list[str]) -> None:
    asking.hint("ti")
    assert shown == ["No exercise is called ti\nDid you mean it?"]
    asking.hint("something_else")
    assert shown[1] == "No exercise is called something_else\nThe exercises are: it."


def test_the_run_that_was_judged_is_named(shown: list[str]) -> None:
    runs._runs += [Run(4, "def it(x): ...", ""), Run(7, "it = 3", ""), Run(9, "print(it)", "")]
    runs._runs.append(Run(10, "'''\ndef it(x): an earlier answer\n'''\nit(1, 2)", "TypeError: no"))
    with pytest.raises(practice.RubricFailed):
        cell(over_columns)
    assert "Judged: your cell as run in [7]." in shown[0]
    cell(right)
    assert shown[1].endswith("Judged: your cell as run in [7].")


def test_an_answer_cell_that_asks_a_person_is_told_so_though_it_is_right(
    shown: list[str],
) -> None:
    runs._runs.append(Run(2, "n = input('n? ')\ndef it(x):\n    return x", ""))
    cell(right)
    said = "Your cell calls input(). In grading nobody answers, and the cell fails: take it out."
    assert said in shown[0]
    runs._runs.append(Run(3, "def it(x):\n    return x", ""))
    cell(right)
    assert "input()" not in shown[1]


def test_nothing_older_is_judged_when_the_last_run_of_the_answer_failed(shown: list[str]) -> None:
    runs._runs += [Run(4, "def it(x):\n    return x", ""), Run(7, "def it(x)", "SyntaxError: no")]
    with pytest.raises(practice.RubricFailed, match="its cell ended with SyntaxError: no"):
        cell(right)
    assert shown[0].startswith("it: not judged\nThe cell of it, run as [7], ended with an error")
    assert "points" not in shown[0]


def test_questions_after_an_error_are_about_the_cell_that_had_it(shown: list[str]) -> None:
    cell(right)
    judgements.last["another"] = judgements.last["it"]
    runs._runs.append(Run(7, "def it(x)", "SyntaxError: no"))
    with pytest.raises(practice.RubricFailed):
        cell(right)
    asking.why()
    assert shown[-1].startswith("it: why\nIts cell ended with an error. Fix that")
    assert asking.case() is None
    assert shown[-1].startswith("it: case\nIts cell ended with an error. Fix that")
    del judgements.last["another"]
    runs._runs.append(Run(8, "def it(x):\n    return x", ""))
    cell(right)
    asking.why()
    assert shown[-1] == "it: why\nIt is right."


def test_missing_practice_data_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(session.CellEnded, match="Fetch the lesson again"):
        asking.hint("it")


def test_a_cell_that_leaves_the_folder_changes_nothing(
    shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = SimpleNamespace(starting_dir=str(tmp_path))
    monkeypatch.setattr(lesson_here, "get_ipython", lambda: shell)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert lesson_here.unsolved() == {"it"}
    cell(right)
    assert shown[0].startswith("it: 4 of 4 points")
    assert lesson_here.unsolved() == set()


def test_a_kernel_that_started_elsewhere_may_go_to_the_folder(
    shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `%cd 01_self_attention` does where a hosted service starts every kernel in one folder."""
    monkeypatch.setattr(lesson_here, "get_ipython", lambda: SimpleNamespace(starting_dir="/"))
    cell(right)
    assert shown[0].startswith("it: 4 of 4 points")


def test_damaged_practice_data_are_named_by_the_rubric_alone(shown: list[str]) -> None:
    Path(PRACTICE_FILE).write_bytes(b"damaged")
    assert lesson_here.unsolved() == set()
    with pytest.raises(session.CellEnded, match=r"cannot be read .* Run autograde update"):
        cell(right)


def test_a_notebook_of_another_version_is_named(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed, match="fetch both again"):

        @rubric("it")
        def _(r: Any) -> None:
            r.call("a line of tomorrow", right, r.normal(5, 7))


def test_an_exercise_that_the_data_lack_is_named(shown: list[str]) -> None:
    with pytest.raises(session.CellEnded, match="newer: The rubric did not record"):

        @rubric("newer")
        def _(r: Any) -> None:
            r.call("a matrix", right, r.normal(5, 7))


def test_keys_of_another_version_are_refused_by_name() -> None:
    data = gzip.compress(pack([{"exercise": "it", "points": 1.0}]))
    with pytest.raises(BadData, match="a key lacks 'needs'"):
        unpack_keys(data)


def test_a_notebook_alone_finds_its_practice_data_in_the_package(
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, this = (tmp_path / "lessons" / name / PRACTICE_FILE for name in ("01", "02"))
    for path in (other, this):
        path.parent.mkdir(parents=True)
    other.write_bytes(pack_keys({}))
    (tmp_path / PRACTICE_FILE).rename(this)
    asking.progress()
    assert shown.pop() == "Progress\nRun a rubric cell first."
    brought = Installed("this-course", tmp_path / "lessons")
    monkeypatch.setattr(lesson_here, "installed", lambda: (brought,))
    cell(right)
    asking.progress()
    assert shown[0].startswith("it: 4 of 4 points")
    assert shown[1] == "This lesson: 1 of 1 exercises right, 4 of 4 points\nRight: it"
    asking.hint("that")
    assert shown[2].startswith("No exercise is called that")


def test_failed_rubric_shows_one_line_instead_of_a_traceback() -> None:
    assert practice.RubricFailed("not right")._render_traceback_() == ["not right"]


def test_other_numbers_in_the_environment_are_named(shown: list[str]) -> None:
    with session.recording(5) as recordings:
        cell(right)
    with pytest.raises(practice.RubricFailed):
        practice.answer(recordings["it"])
    assert "The answer itself is not at fault" in shown[0]
