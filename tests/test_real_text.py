"""Real text comes with Python; a program that runs a lesson is not someone who watches."""

from pydoc_data import topics
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from attention_course import real_text


def test_python_carries_real_text() -> None:
    text = real_text.python_help()
    assert len(text) > 200_000
    assert "statement" in text


def test_the_text_has_no_drawn_lines_and_no_other_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"a": "one\n-----\n“two”…", "b": "\N{DEVANAGARI LETTER SA} is a letter\n20 °"}
    monkeypatch.setattr(topics, "topics", told)
    assert real_text.python_help() == "one\n“two”…\n20 °"


@pytest.mark.parametrize("there", [True, False])
def test_a_front_end_says_whether_someone_can_answer(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=there))
    monkeypatch.setattr(real_text, "get_ipython", lambda: shell)
    assert real_text.someone_is_there() == there


def test_nobody_is_there_without_a_kernel() -> None:
    assert not real_text.someone_is_there()


def test_nobody_is_there_when_a_program_runs_the_notebook() -> None:
    source = "from attention_course.real_text import someone_is_there\nprint(someone_is_there())"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(nb, kernel_name="python3").execute()
    assert nb.cells[0].outputs[0].text == "False\n"
