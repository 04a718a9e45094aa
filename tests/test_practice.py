"""Practice: the answer at once, first the symptom, then the misconception."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import make_key
from torch import Tensor

from autograde.notebook import practice, standing
from autograde.rubric import session
from autograde.rubric.key import pack_keys, unpack_keys
from autograde.rubric.packing import BadData, pack
from autograde.rubric.probes import rubric


def cell(answer: Callable[..., Any]) -> None:
    with rubric("it") as r:
        r.call("a matrix", answer, r.normal(5, 7))


def right(x: Tensor) -> Tensor:
    return x.softmax(-1)


def over_columns(x: Tensor) -> Tensor:
    return x.softmax(0)


def stub(x: Tensor) -> Tensor:
    raise NotImplementedError


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A folder with practice data; the list collects the panels shown in it."""
    panels: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(session, "PRACTICE_SEED", 3)
        key = make_key(cell, right, {"over_columns": over_columns})
        (tmp_path / practice.PRACTICE_FILE).write_bytes(pack_keys({"it": key}))
        patch.chdir(tmp_path)
        patch.setattr(practice, "display", lambda data, raw: panels.append(data["text/plain"]))
        patch.setattr(practice, "_last", {})
        patch.setattr(practice, "_hints_shown", {})
        patch.setattr(standing, "_here", {})
        yield panels


def test_right_answer_is_shown_and_does_not_raise(shown: list[str]) -> None:
    cell(right)
    assert shown == [
        "it: 4 of 4 points\n  right  a matrix\n"
        "This lesson: 1 of 1 exercises right, 4 of 4 points. Save the notebook and press Validate."
    ]


def test_symptom_comes_first_and_the_misconception_next(shown: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(practice.RubricFailed, match="1 of 1 lines wrong"):
            cell(over_columns)
    first, second = shown
    assert "sums to" in first
    assert "is believed" not in first
    assert 'Ask why("it")' in first
    assert "over_columns is believed." in second
    assert "Hint: Think." in second


def test_misconception_is_named_when_asked(
    shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    practice.why("it")
    assert "Run the rubric cell of it first." in capsys.readouterr().out
    with pytest.raises(practice.RubricFailed):
        cell(over_columns)
    practice.why("it")
    assert "over_columns is believed." in capsys.readouterr().out
    with pytest.raises(practice.RubricFailed):
        cell(lambda x: 3 * x)
    practice.why("it")
    assert "none of the known mistakes" in capsys.readouterr().out
    cell(right)
    practice.why("it")
    assert "it is right." in capsys.readouterr().out


def test_hints_come_one_at_a_time(shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        practice.hint("it")
    assert capsys.readouterr().out.splitlines() == [
        "Hint 1 of 2: look",
        "Hint 2 of 2: look again",
        "Hint 1 of 2: look",
    ]


def test_untouched_exercise_says_so(shown: list[str]) -> None:
    with pytest.raises(practice.RubricFailed, match="not attempted yet"):
        cell(stub)
    assert "Not attempted yet." in shown[0]
    assert "WRONG" not in shown[0]


def test_unknown_exercise_lists_those_there_are(shown: list[str]) -> None:
    with pytest.raises(KeyError, match="no exercise is called 'that'; there are it"):
        practice.hint("that")


def test_missing_practice_data_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="fetch the lesson again"):
        practice.hint("it")


def test_validate_says_what_the_panel_says(
    shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    with pytest.raises(practice.RubricFailed) as failed:
        cell(over_columns)
    assert [str(failed.value)] == shown


def test_a_notebook_of_another_version_is_named(shown: list[str]) -> None:
    tomorrow = rubric("it")
    tomorrow.call("a line of tomorrow", right, tomorrow.normal(5, 7))
    with pytest.raises(practice.RubricFailed, match="know no line “a line of tomorrow”"):
        tomorrow(lambda r: None)


def test_keys_of_another_version_are_refused_by_name() -> None:
    data = gzip.compress(pack([{"exercise": "it", "points": 1.0}]))
    with pytest.raises(BadData, match="a key lacks 'needs'"):
        unpack_keys(data)


def test_a_notebook_alone_finds_its_practice_data_in_the_package(
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed = tmp_path / "01_it.safetensors.gz"
    (tmp_path / practice.PRACTICE_FILE).rename(installed)
    (tmp_path / "02_other.safetensors.gz").write_bytes(pack_keys({}))
    practice.progress()
    assert capsys.readouterr().out == "Run a rubric cell first.\n"
    found = [tmp_path / "02_other.safetensors.gz", installed]
    monkeypatch.setattr(practice, "_installed", lambda: found)
    cell(right)
    practice.progress()
    assert shown[0].startswith("it: 4 of 4 points")
    assert shown[1] == ("This lesson: 1 of 1 exercises right, 4 of 4 points\n  right      it")
    with pytest.raises(KeyError, match="no exercise is called 'that'; there are it"):
        practice.hint("that")


def test_failed_rubric_shows_one_line_instead_of_a_traceback() -> None:
    assert practice.RubricFailed("2 lines wrong")._render_traceback_() == [
        "RubricFailed: 2 lines wrong"
    ]


def test_other_numbers_in_the_environment_are_named(shown: list[str]) -> None:
    with session.recording(5) as recordings:
        cell(right)
    with pytest.raises(practice.RubricFailed):
        practice.answer(recordings["it"])
    assert "no fault of the answer" in shown[0]
