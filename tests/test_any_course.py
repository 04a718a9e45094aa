"""A course on plain Python, NumPy and pandas: right answers earn all, wrong ones nothing."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from any_course import ROWS, make
from classes import NO_WALL, scores
from conftest import HERE, run

from autograde.authoring.check import check
from autograde.authoring.measure import measure
from autograde.course.lesson_files import read_measured
from autograde.course.lessons import CURRICULUM, Lesson, lessons, read_course
from autograde.grading.running.reference import Lines, Program, load, right_key
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.panel import to_display
from autograde.rubric.recording import unpack_recording
from autograde.values.packing import pack

Measured = tuple[Program, dict[str, Lines]]


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return make(tmp_path_factory.mktemp("any"))


@pytest.fixture(scope="module")
def measured(lesson: Lesson) -> Measured:
    measure(lesson, seeds=range(1000, 1020))
    return load(lesson), read_measured(lesson)


def verdict_on(measured: Measured, exercise: str, answer: str, seed: int) -> Verdict:
    reference, lines = measured
    key = right_key(reference, reference.lesson.exercise(exercise), seed, lines[exercise])
    recording = reference.with_answer(answer).record(exercise, seed)
    return judge(unpack_recording(pack(recording)), key)


@pytest.mark.parametrize(("exercise", "answer", "right"), ROWS.values(), ids=ROWS)
def test_an_answer_earns_what_it_deserves(
    measured: Measured, exercise: str, answer: str, right: bool
) -> None:
    for seed in (1, 2):
        verdict = verdict_on(measured, exercise, answer, seed)
        assert verdict.points == (2 if right else 0), verdict


def test_check_finds_nothing(lesson: Lesson, measured: Measured) -> None:
    faults = [fault for result in check(lesson) for fault in result.faults]
    assert faults == []


UNRECORDABLE = {
    "iter({1, 2})": "a set_iterator",
    "(i for i in range(3))": "a generator",
    "lambda: 1": "a function (<lambda>)",
    "object()": "a object",
    "range(3)": "a range",
    "[{'a': open}]": "a function (open)",
    "np.array([None, 1])": "an array of dtype object",
    "pd.DataFrame({'a': [1]}).groupby('a')": "a DataFrameGroupBy",
    "pd.Series([object()])": "a Series that holds a object",
    "{1: {2: iter([])}}": "a list_iterator",
}


@pytest.mark.parametrize("result", UNRECORDABLE)
def test_a_reference_that_cannot_be_recorded_is_refused_once(
    lesson: Lesson, measured: Measured, result: str
) -> None:
    reference, lines = measured
    broken = reference.with_answer(f"def remainders(x, m):\n    return {result}")
    with pytest.raises(Exception, match="cannot be recorded; return") as refused:
        right_key(broken, lesson.exercise("remainders"), 1, lines["remainders"])
    text = str(refused.value)
    assert f" returned {UNRECORDABLE[result]}, which cannot be recorded; return " in text
    assert text.startswith("remainders: the set: `remainders(")
    verdict = verdict_on(measured, "remainders", f"def remainders(x, m):\n    return {result}", 1)
    assert verdict.points == 0
    shown = to_display(verdict, [])["text/plain"]
    assert f"returned {UNRECORDABLE[result]}, expected a set" in shown


@pytest.mark.parametrize("command", [["check", "--measure"], ["check"], ["build"]])
def test_measuring_checking_and_building_refuse_it_alike(
    lesson: Lesson, measured: Measured, tmp_path: Path, command: list[str]
) -> None:
    mine = make(tmp_path)
    mine.tolerance_file.write_bytes(lesson.tolerance_file.read_bytes())
    text = mine.text.read_text()
    mine.text.write_text(text.replace("return {v % m for v in x}", "return iter({*x})"))
    shutil.copy(HERE / "nbgrader_config.py", mine.root)
    result = run(mine.root, *command, mine.name)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert said.count("cannot be recorded") == 1
    assert "remainders: the set: `remainders(" in said
    assert "returned a set_iterator, which cannot be recorded; return numbers, text" in said


BLOCKED = "raise ImportError('a course without it')\n"
TOGETHER = """
import shlex, sys
from autograde.cli import main
for command in sys.argv[1:]:
    main(shlex.split(command), standalone_mode=False)
"""
"""Commands, one after another in one process, which imports torch once."""


@pytest.fixture
def without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every process that is started from now on this course's package cannot be imported."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "attention_course.py").write_text(BLOCKED)
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    command = [sys.executable, "-c", "import attention_course"]
    failed = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert b"a course without it" in failed.stderr


@pytest.mark.usefixtures("without_the_package")
def test_a_course_without_a_package_is_built_checked_and_graded(tmp_path: Path) -> None:
    root = tmp_path / "course"
    (root / "source").mkdir(parents=True)
    (root / CURRICULUM).touch()
    shutil.copy(HERE / "nbgrader_config.py", root)

    def autograde(*commands: str) -> str:
        command = [sys.executable, "-c", TOGETHER, *commands]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "No faults." in autograde("new 01_rows", "build 01_rows", "check 01_rows")
    made = lessons(root)["01_rows"]
    assert (made.package, read_course(root).title) == ("", "Lessons")
    for student, path in (("ada", made.solution_notebook), ("bob", made.released_notebook)):
        place = root / "submitted" / student / made.name
        place.mkdir(parents=True)
        shutil.copy(path, place)
    assert "2 graded" in autograde(shlex.join(["grade", *NO_WALL, "--workers", "1"]))
    assert scores(root, made.name) == {"ada": 2, "bob": 0}
