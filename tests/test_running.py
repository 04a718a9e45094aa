"""Running a class: the same gradebook however it is run, and nothing done twice."""

import shutil
from pathlib import Path

import pytest
from classes import LESSON, contents, grade, make_course, scores
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback

from autograde.course import Lesson, lessons
from autograde.course_config import convert, course_config
from autograde.kernels.wall import missing

STUDENTS = ("perfect", "process_ended", "not_json", "untouched")
NOTEBOOK = "causal_mask"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose class was graded by two workers."""
    root = tmp_path_factory.mktemp("class") / "course"
    make_course(root, STUDENTS)
    result = grade(root, "--workers", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return root


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(graded, tmp_path / "course")
    return tmp_path / "course"


def the_lesson(root: Path) -> Lesson:
    return lessons(root)[LESSON]


def file(root: Path, kind: str, student: str, ending: str = ".ipynb") -> Path:
    return root / kind / student / LESSON / f"{NOTEBOOK}{ending}"


def forget(root: Path, *, results: bool = False) -> None:
    """As if nobody had been graded yet; with `results` nothing has run, either."""
    for name in ("autograded", "feedback", ".autograde/graded"):
        shutil.rmtree(root / name)
    if results:
        shutil.rmtree(root / ".autograde" / "done")
    with Gradebook(f"sqlite:///{root}/gradebook.db", "attention") as gradebook:
        for student in STUDENTS:
            gradebook.remove_student(student)


def test_scores_and_words(graded: Path) -> None:
    assert scores(graded) == {
        "perfect": 14, "process_ended": 12, "not_json": 0, "untouched": 0,
    }  # fmt: skip


def test_one_worker_gives_the_same_gradebook(course: Path, graded: Path) -> None:
    forget(course, results=True)
    assert contents(course) != contents(graded)
    result = grade(course, "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert contents(course) == contents(graded)


def test_nbgraders_own_commands_give_the_same_gradebook_files_and_pages(
    course: Path, graded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(course)
    config = course_config(course)
    config.CourseDirectory.assignment_id = LESSON
    config.Run.wall = not missing()
    convert(Autograde, config)
    convert(GenerateFeedback, config)
    assert contents(course) == contents(graded)
    for student in STUDENTS:
        ours, theirs = (file(root, "autograded", student) for root in (graded, course))
        assert ours.stat().st_mode == theirs.stat().st_mode
        assert ours.read_bytes() == theirs.read_bytes()
        ours, theirs = (file(root, "feedback", student, ".html") for root in (graded, course))
        assert ours.stat().st_mode == theirs.stat().st_mode
        assert ours.read_text() == theirs.read_text()
