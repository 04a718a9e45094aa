"""Progress: for the student alone, kept beside the working copy, without a say in grading."""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from classes import files_in
from conftest import HERE

from autograde import progress
from autograde.notebook import judgements, lesson_here, practice, rubric
from autograde.notebook.asking import in_paragraphs
from autograde.notebook.judgements import Judgement
from autograde.progress import Standing, of_course
from autograde.rubric import session
from autograde.rubric.judge import Verdict
from autograde.rubric.recording import Recording

WORTH = {"f": 2.0, "g": 3.0}
LESSON = {name: SimpleNamespace(points=points) for name, points in WORTH.items()}
ENTRY = {
    "worth": WORTH, "written": {}, "title": "01 It", "notebook": "it.ipynb", "due": "",
    "newer": False,
}  # fmt: skip
BROKEN = [
    b"",
    b"[" * 100_000,
    b'{"points": "many", "answer": 1}',
    b"{",
    b"\xff\xfe",
    b"[]",
    b'{"a": 1}',
    b'{"01_it": {"f": "many"}}',
    json.dumps({"01_it": WORTH}).encode(),
    b"null",
    b'"x"',
]


@pytest.fixture
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working copy of one lesson, seen from a kernel in its folder."""
    (tmp_path / "01_it").mkdir()
    (tmp_path / progress.STATE).mkdir()
    (tmp_path / progress.STATE / progress.INDEX).write_text(json.dumps({"01_it": ENTRY}))
    monkeypatch.chdir(tmp_path / "01_it")
    return tmp_path


def remember(exercise: str, points: float, judged: str = "") -> None:
    practice._remember(Verdict(exercise, points, WORTH.get(exercise, points), ()), judged)


def of_lesson(earned: dict[str, float]) -> Standing:
    """The standing in a kernel whose rubrics earned these points."""
    verdicts = {name: Verdict(name, points, WORTH[name], ()) for name, points in earned.items()}
    return standing(verdicts)


def standing(verdicts: dict[str, Verdict]) -> Standing:
    """The standing in a kernel whose rubrics gave these verdicts."""
    judged = {
        name: Judgement(verdict, Recording(name, ()), "") for name, verdict in verdicts.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judgements, "last", judged)
        patch.setattr(lesson_here, "lesson_keys", lambda: LESSON)
        here, _ = lesson_here.standing_here()
    return here


def files(working: Path) -> list[str]:
    folder = working / progress.STATE / "progress"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def test_it_outlives_the_kernel_and_the_last_run_counts(working: Path) -> None:
    remember("f", 2.0)
    remember("g", 1.5)
    assert of_lesson({}).in_words() == "1 of 2 exercises right, 3.5 of 5 points"
    assert of_lesson({}).next == "g"
    remember("g", 3.0)
    remember("f", 0.0)  # the cell was changed and is wrong now
    assert of_lesson({}).solved == ["g"]
    assert of_lesson({"f": 2.0, "g": 0.0}).solved == ["f"]
    assert [lesson.in_words() for lesson in of_course(working)] == [
        "1 of 2 exercises right, 3 of 5 points"
    ]
    assert files(working) == ["01_it/f.json", "01_it/g.json"]


def test_a_rubric_that_finds_no_answer_in_a_new_kernel_takes_nothing_away(working: Path) -> None:
    remember("f", 2.0)
    missing = Verdict("f", 0.0, 2.0, (), note="Not checked: `f` is not defined yet.")
    practice._remember(missing, "")
    assert of_lesson({}).solved == ["f"]
    assert standing({"f": missing}).solved == ["f"]
    stub = replace(missing, attempted=False)  # the answer was deleted, and that was seen
    practice._remember(stub, "")
    assert of_lesson({}).solved == []


def test_it_notes_which_cell_was_judged(working: Path) -> None:
    remember("f", 2.0, "def f(x):\n    return x\n")
    noted = progress.last_attempt(working / "01_it", "f")
    assert noted is not None
    assert noted.answer == progress.digest_of_cell("def f(x):\n    return x")
    assert progress.last_attempt(working / "01_it", "g") is None


def test_outside_a_working_copy_only_the_kernel_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    remember("f", 2.0)
    assert of_lesson({"f": 2.0}).solved == ["f"]
    assert list(tmp_path.rglob("*")) == []


def test_what_validate_runs_is_not_kept(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    remember("f", 2.0)
    assert files(working) == []


@pytest.mark.parametrize("content", BROKEN)
def test_a_damaged_file_is_no_error(working: Path, content: bytes) -> None:
    remember("f", 2.0)
    remember("g", 3.0)
    (working / progress.STATE / "progress" / "01_it" / "f.json").write_bytes(content)
    assert of_lesson({}).solved == ["g"]
    assert progress.last_attempt(working / "01_it", "f") is None
    (working / progress.STATE / progress.INDEX).write_bytes(content)
    assert of_course(working) == []
    remember("f", 2.0)
    assert of_lesson({"f": 2.0}).solved == ["f"]


def test_a_folder_that_cannot_be_written_is_no_error(working: Path) -> None:
    (working / progress.STATE / "progress").write_text("not a folder")
    remember("f", 2.0)
    assert of_lesson({"f": 2.0}).solved == ["f"]


def test_two_kernels_at_once_leave_a_whole_file(
    working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [
        threading.Thread(target=lambda: [remember("f", 2.0) for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    path = working / progress.STATE / "progress" / "01_it" / "f.json"
    while any(thread.is_alive() for thread in threads):
        assert not path.exists() or json.loads(path.read_text())["points"] == 2.0
    assert files(working) == ["01_it/f.json"]


def test_the_panel_names_exercises_by_their_state() -> None:
    here = Standing("01_it", WORTH, {"f": 2.0, "g": 1.0})
    course = [Standing("02_<b>", {"h": 1.0}, {})]
    assert in_paragraphs(here, course) == [
        "Right: `f`",
        "Not right: `g`",
        "Next: `g`",
        "02_<b>: 0 of 1 exercises right, 0 of 1 point",
    ]


def cell(answer: Callable[..., Any]) -> None:
    @rubric("it")
    def _(r: Any) -> None:
        r.call("a matrix", answer, r.normal(5, 7))


def test_grading_neither_writes_nor_reads_it(
    working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In grading a rubric cell only hands over what it recorded."""
    remember("it", 99.0)
    before = files_in(working)
    monkeypatch.setattr(practice, "keep_attempt", lambda *_: pytest.fail("written in grading"))
    monkeypatch.setattr(lesson_here, "of_course", lambda *_: pytest.fail("read in grading"))
    monkeypatch.setattr(session, "display", lambda data, raw: None)
    with monkeypatch.context() as graded:
        graded.setattr(session, "_begun", [lambda: session.Session(7, session.hand_over)])
        with pytest.raises(session.RecordedNotJudged):
            cell(lambda x: x)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(session.RecordedNotJudged):
        cell(lambda x: x)
    assert files_in(working) == before


def test_nothing_that_judges_knows_of_it() -> None:
    package = HERE / "autograde"
    readers = [
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if re.search(r"import [\w, ]*progress\b|autograde\.progress", path.read_text("utf-8"))
    ]
    assert not {"grading", "rubric", "sandbox"} & set(readers)
