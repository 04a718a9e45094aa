"""What a kernel notes of its runs, and what it says of a cell that waits for an exercise."""

from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograde.notebook import explaining, judgements, lesson_here
from autograde.progress import PRACTICE_FILE, keep_attempt
from autograde.rubric import runs
from autograde.rubric.runs import Run
from autograde.workspace.lab import SETTINGS

UNSOLVED = "attention_scores"


def in_this_lesson(
    monkeypatch: pytest.MonkeyPatch, *cells: dict[str, Any], wrong: Collection[str] = ()
) -> None:
    """Let the lesson have these cells; `attention_scores` is not right, those named are wrong."""
    monkeypatch.setattr(lesson_here, "unsolved", lambda: {UNSOLVED, *wrong})
    monkeypatch.setattr(judgements, "wrong", lambda: {*wrong})
    monkeypatch.setattr(lesson_here, "lesson_cells", lambda: cells)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell in which `attention_scores` is not right yet."""
    monkeypatch.setattr(runs, "_runs", [])
    in_this_lesson(monkeypatch, wrong={UNSOLVED})
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    made = InteractiveShell.instance(config=config)
    explaining.watch()
    yield made
    InteractiveShell.clear_instance()


def said(shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    return capsys.readouterr().out


WAITS = f"This cell waits for the exercise {UNSOLVED}"


def test_a_cell_after_an_unwritten_answer_waits_for_it(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"def {UNSOLVED}(x):\n    raise NotImplementedError()", store_history=True)
    assert f"{WAITS}, which is not written yet." in said(shell, f"s = {UNSOLVED}(1)", capsys)
    assert f"{WAITS}, which is not right yet." in said(shell, "s + 1", capsys)


def test_an_error_in_a_function_of_another_cell_names_that_function(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def helper(x):\n    return x.y", store_history=True)
    for called, at in ("x.y", "line 2: return x.y"), ("helper(x)", "helper, line 2: return x.y"):
        shell.run_cell(f"def {UNSOLVED}(x):\n    return {called}", store_history=True)
        assert f"(in {at})" in said(shell, f"s = {UNSOLVED}(1)", capsys)


def test_a_cell_after_a_forgotten_return_waits_for_it(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"def {UNSOLVED}(x):\n    x + 1", store_history=True)
    assert said(shell, f"s = {UNSOLVED}(1)", capsys) == ""
    assert WAITS in said(shell, "s.shape", capsys)
    shell.run_cell(f"def mean_of(x):\n    return {UNSOLVED}(x).mean()", store_history=True)
    assert WAITS in said(shell, "mean_of(1)", capsys)
    shell.run_cell("s = 2", store_history=True)
    assert WAITS not in said(shell, "s.shape", capsys)


def test_a_cell_waits_for_an_answer_that_a_function_of_another_cell_calls(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"def {UNSOLVED}(x):\n    raise NotImplementedError()", store_history=True)
    shell.run_cell(f"def draw(x):\n    return {UNSOLVED}(x)", store_history=True)
    assert f"{WAITS}, which is not written yet." in said(shell, "found = draw(1)", capsys)
    assert WAITS in said(shell, "found + 1", capsys)
    shell.run_cell(f"class {UNSOLVED}:\n    def f(self):\n        1 / 0", store_history=True)
    shell.run_cell(f"def draw(x):\n    return {UNSOLVED}().f()", store_history=True)
    assert "ZeroDivisionError" in said(shell, "draw(1)", capsys)


def test_of_an_error_in_an_answer_that_is_not_right_the_line_is_shown(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"def {UNSOLVED}(x):\n    y = x + 1\n    return y / 0", store_history=True)
    cause = ": ZeroDivisionError: division by zero (in line 3: return y / 0)."
    assert f"{WAITS}, which is not right yet{cause}" in said(shell, f"{UNSOLVED}(1)", capsys)


def judged(run: Run, *, passed: bool) -> SimpleNamespace:
    return SimpleNamespace(verdict=SimpleNamespace(passed=passed), source=run.source)


def test_an_answer_that_has_changed_since_its_rubric_is_not_known_to_be_right_or_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Run(1, f"def {UNSOLVED}(x): return x", "")
    monkeypatch.setattr(runs, "_runs", [right])
    monkeypatch.setattr(lesson_here, "lesson_keys", lambda: {UNSOLVED: None})
    monkeypatch.setattr(judgements, "last", {UNSOLVED: judged(right, passed=True)})
    assert lesson_here.unsolved() == judgements.wrong() == set()
    monkeypatch.setattr(judgements, "last", {UNSOLVED: judged(right, passed=False)})
    assert lesson_here.unsolved() == judgements.wrong() == {UNSOLVED}
    runs._runs.append(Run(3, f"def {UNSOLVED}(x): x", ""))
    assert lesson_here.unsolved() == {UNSOLVED}
    assert judgements.wrong() == set()


def test_an_answer_that_an_earlier_kernel_found_right_is_right_until_it_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = Run(1, f"def {UNSOLVED}(x): return x", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lesson_here, "lesson_keys", lambda: {UNSOLVED: SimpleNamespace(points=2)})
    monkeypatch.setattr(judgements, "last", {})
    monkeypatch.setattr(runs, "_runs", [right])
    assert lesson_here.unsolved() == {UNSOLVED}
    keep_attempt(tmp_path, UNSOLVED, 2, right.source)
    assert lesson_here.unsolved() == set()
    runs._runs.append(Run(3, f"def {UNSOLVED}(x): x", ""))
    assert lesson_here.unsolved() == {UNSOLVED}
    keep_attempt(tmp_path, UNSOLVED, 1, runs._runs[-1].source)
    assert lesson_here.unsolved() == {UNSOLVED}


def test_an_error_of_the_students_own_is_shown(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"def {UNSOLVED}(x):\n    return x + 1", store_history=True)
    shell.run_cell(f"s = {UNSOLVED}(1)", store_history=True)
    assert "AttributeError" in said(shell, "s.shape", capsys)
    assert "ZeroDivisionError" in said(shell, f"def {UNSOLVED}(x): return x\n1 / 0", capsys)


def test_an_interruption_is_one_line(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def wait():\n    raise KeyboardInterrupt", store_history=True)
    assert said(shell, "wait()", capsys) == "Interrupted in line 2: raise KeyboardInterrupt\n"
    of_a_rubric = "it = KeyboardInterrupt()\nit._render_traceback_ = lambda: ['f(2)']\nraise it"
    assert said(shell, of_a_rubric, capsys) == "f(2)\n"


def test_an_interruption_of_an_import_asks_for_a_restart(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "large_package.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    line = f"{explaining.HALF_LOADED}\n"
    assert said(shell, "import large_package", capsys).endswith(line)
    assert explaining.HALF_LOADED not in said(shell, "raise KeyboardInterrupt", capsys)


def test_a_result_of_a_wrong_answer_says_so(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = {"source": "t = s + 1", "metadata": {"tags": ["raises-exception"]}}
    in_this_lesson(monkeypatch, cell, wrong={UNSOLVED})
    line = f"This uses your {UNSOLVED}, which is not fully right yet: "
    line += "what you see here may be wrong too.\n"
    assert said(shell, f"def {UNSOLVED}(x):\n    return x", capsys) == ""
    assert said(shell, f"# demonstration\ns = {UNSOLVED}(1)", capsys) == line
    assert said(shell, "t = s + 1", capsys) == line
    assert said(shell, "t = s + 2", capsys) == ""  # a cell of the student's own
    assert said(shell, "# demonstration\nt = 1", capsys) == ""
    assert WAITS in said(shell, f"# demonstration\n{UNSOLVED}(1).y", capsys)
    in_this_lesson(monkeypatch, cell)
    assert said(shell, "# demonstration\nt = s", capsys) == ""


def test_an_empty_guess_says_so_where_somebody_can_guess(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(shell, "my_guess = None", capsys) == ""
    shell.kernel = SimpleNamespace(_allow_stdin=True)
    assert said(shell, "my_guess = None", capsys) == f"{explaining.EMPTY}\n"
    assert said(shell, "my_guess = 0", capsys) == ""


@pytest.mark.parametrize("failing", ["my_guess = yes", "my_guess = more than 2"])
def test_a_guess_that_fails_does_not_leave_the_one_before(
    shell: InteractiveShell, failing: str
) -> None:
    for source in ("my_guess = 'no'", failing):
        shell.run_cell(source, store_history=True)
    assert shell.user_ns["my_guess"] is None


def test_a_guess_stands_beside_the_answer(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("from autograde.notebook.guesses import beside")

    def shown(guess: str) -> str:
        shell.run_cell(guess, store_history=True)
        capsys.readouterr()
        shell.run_cell("beside(my_guess, 3)", store_history=True)
        return capsys.readouterr().out

    assert shown("my_guess = 1") == "your guess: 1\nit is:      3\n"
    for none in ("my_guess = None", "my_guess = oops"):
        assert "No guess yet" in shown(none)


def test_a_traceback_holds_no_lines_of_packages(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("from torch import nn, ones\nlayer = nn.Sequential(nn.Linear(3, 2))")
    found = said(shell, "layer(ones(2))", capsys)
    assert "mat1 and mat2 shapes cannot be multiplied" in found
    assert found.count("\n") < 8


def test_an_exercise_calls_what_its_answer_and_its_rubric_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = ("def later(x):\n    return earlier(x)", '@rubric("later")\ndef _(r):\n    other')
    monkeypatch.setattr(runs, "_runs", [Run(1, cell, "") for cell in cells])
    assert {"earlier", "other"} <= runs.called_by("later")
    runs._runs.append(Run(3, "def later(x):\n    return x", ""))
    assert "earlier" not in runs.called_by("later")


def test_a_panel_is_not_repeated_by_its_error_unless_validate_asks(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = "from autograde.notebook.practice import RubricFailed\nraise RubricFailed('it is wrong')"
    assert said(shell, cell, capsys) == ""
    assert not shell.run_cell(cell).success
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    assert "it is wrong" in said(shell, cell, capsys)


def test_a_warning_has_no_path_of_pytorchs_own_code(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "`x.T` is deprecated (Triggered internally at /pytorch/aten/src/x.cpp:44.)"
    capsys.readouterr()
    explaining._show_warning(UserWarning(text), UserWarning, "<no cell>", 1)
    assert capsys.readouterr().err == "UserWarning: `x.T` is deprecated\n"


def test_a_name_of_a_cell_that_has_not_run_says_so(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_this_lesson(monkeypatch, {"cell_type": "code", "source": "inputs = 3"})
    line = "inputs is not defined yet: cells above have not run in this kernel."
    assert said(shell, "inputs + 1", capsys).startswith(line)
    shell.run_cell(f"def {UNSOLVED}(x):\n    return x", store_history=True)
    assert said(shell, f"{UNSOLVED}(inputs)", capsys).startswith(line)
    assert "NameError" in said(shell, "input_s + 1", capsys)
    shell.run_cell("raise KeyboardInterrupt()\ninputs = 3", store_history=True)
    assert said(shell, "inputs + 1", capsys).startswith(line)
    shell.run_cell("inputs = 3", store_history=True)
    shell.run_cell("del inputs", store_history=True)
    assert "NameError" in said(shell, "inputs + 1", capsys)


def test_an_answer_may_need_a_cell_that_has_not_run(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = ["import math", f"def {UNSOLVED}(x):\n    return math.sqrt(len(x)) + y"]
    cells = ({"cell_type": "code", "source": source} for source in sources)
    in_this_lesson(monkeypatch, *cells)
    assert lesson_here.not_run(UNSOLVED) == ""
    shell.run_cell(sources[1], store_history=True)
    assert lesson_here.not_run(UNSOLVED) == "math"
    shell.run_cell(sources[0], store_history=True)
    assert lesson_here.not_run(UNSOLVED) == ""


def test_an_answer_that_has_not_run_in_this_kernel_is_not_called_wrong(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = f"def {UNSOLVED}(x):\n    return x.y"
    in_this_lesson(monkeypatch, {"cell_type": "code", "source": answer})
    line = f"{UNSOLVED} is not defined yet: cells above have not run in this kernel."
    assert said(shell, f"s = {UNSOLVED}(1)", capsys).startswith(line)
    shell.run_cell(answer, store_history=True)
    known = f"{WAITS}, which is not known to be right yet: Attr"
    assert known in said(shell, f"s = {UNSOLVED}(1); t", capsys)


def test_a_new_kernel_says_that_nothing_has_run(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shell.set_custom_exc((), None)
    shell.safe_execfile(SETTINGS / "startup.py", shell.user_ns)
    assert "Traceback" in said(shell, "nothing_here", capsys)
    (tmp_path / PRACTICE_FILE).write_bytes(b"")
    shell.safe_execfile(SETTINGS / "startup.py", shell.user_ns)
    found = said(shell, "nothing_here", capsys)
    assert found.startswith("nothing_here is not defined yet: cells above have not run")
    assert "Run > Run All Above Selected Cell" in found
