"""`autograde new`: a lesson that builds, checks and grades before a word of it is changed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from classes import NO_WALL, file_of, fill, put_file, reference_answers
from conftest import HERE, run

from autograde.authoring import new as making
from autograde.authoring.release import ENVIRONMENT, GUIDE, PACKAGE
from autograde.authoring.variants import read_variants
from autograde.course.config import CONFIG
from autograde.course.lessons import CURRICULUM, CourseError, Lesson, lessons, read_course
from autograde.grading.record import read_record
from autograde.installed import manual
from autograde.rubric.judge import Verdict
from autograde.workspace.project import find_project

NAME, EXERCISE = "07_my_lesson", "center_rows"
PAGE = (HERE / "docs" / "authoring.md").read_text()
NO_LESSONS = "# The lessons of a course that is about to begin.\n"


def empty_course(root: Path) -> Path:
    (root / "source").mkdir()
    (root / CURRICULUM).write_text(NO_LESSONS)
    shutil.copy(HERE / "nbgrader_config.py", root)
    (root / "docs").mkdir()
    for name in (*ENVIRONMENT, GUIDE, PACKAGE):
        (root / name).symlink_to(HERE / name)
    return root


@pytest.fixture(scope="module")
def made(new_lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """A copy of the new lesson, in a course that has what a release needs."""
    root = tmp_path_factory.mktemp("made") / "course"
    shutil.copytree(new_lesson.root, root)
    (root / "docs").mkdir()
    for name in (*ENVIRONMENT, GUIDE, PACKAGE):
        (root / name).symlink_to(HERE / name)
    return lessons(root)[NAME]


def test_a_lesson_is_entered_before_those_that_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in ("measure", "sync"):
        monkeypatch.setattr(making, step, lambda lesson: None)
    root = empty_course(tmp_path)
    for name in ("02_two", "04_four", "03_three", "01_one"):
        making.new(root, name)
    assert [*lessons(root)] == ["01_one", "02_two", "03_three", "04_four"]
    exercises = {each.name for lesson in lessons(root).values() for each in lesson.exercises}
    assert exercises == {EXERCISE, *(f"{EXERCISE}_{number}" for number in ("01", "03", "04"))}
    text = (root / CURRICULUM).read_text()
    assert text.startswith(f"{NO_LESSONS}\n[[lesson]]")
    assert "\n\n\n" not in text


def test_it_is_checked_without_a_fault(made: Lesson) -> None:
    result = run(made.root, "check", NAME)
    assert result.exit_code == 0, result.output
    assert EXERCISE in result.output


def test_it_has_a_figure_and_says_what_to_replace(made: Lesson) -> None:
    solution = nbformat.read(made.solution_notebook, as_version=4)
    outputs = [output for cell in solution.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    for path in (made.text, *made.folder.glob("variants/*.md"), made.root / CURRICULUM):
        assert "REPLACE" in path.read_text()
        assert not re.search(r"{{|{%", path.read_text())


def test_a_lesson_in_plain_python_is_built_and_checked_without_a_fault(tmp_path: Path) -> None:
    root = tmp_path / "course"
    assert run(tmp_path, "init", "course", "--plain").exit_code == 0
    for command in ("build", "check"):
        result = run(root, command)
        assert result.exit_code == 0, result.output
        assert "fault" not in result.output.replace("No faults.", "")
    (lesson,) = lessons(root).values()
    assert "numpy" not in lesson.text.read_text()
    making.new(root, "02_about_arrays")
    assert "numpy" in lessons(root)["02_about_arrays"].text.read_text()


def test_students_may_have_it(made: Lesson, tmp_path: Path) -> None:
    said = run(made.root, "release", str(tmp_path / "out"), NAME).output
    variants = f"source/{NAME}/variants"
    assert f"{NAME} is not finished: {CURRICULUM}, source/{NAME}/my_lesson.py, {variants}/" in said
    assert "still says “REPLACE:”. To leave it out, name" in said
    root = tmp_path / "finished"
    shutil.copytree(made.root, root)
    (root / "due.toml").write_text("09_other = 2026-03-01\n")
    lesson = lessons(root)[NAME]
    for path in (root / CURRICULUM, lesson.text, lesson.released_notebook):
        path.write_text(path.read_text().replace("REPLACE", "About"))
    said = run(root, "release", str(tmp_path / "out"), NAME).output
    assert f"{NAME} is not finished: {variants}/" in said  # its hints travel with the practice data
    for path in lesson.folder.glob("variants/*.md"):
        path.write_text(path.read_text().replace("REPLACE:", "As in SQL's REPLACE,"))
    assert run(root, "build", NAME).exit_code == 0
    said = run(root, "release", str(tmp_path / "out"), NAME).output
    assert "due.toml names 09_other: no such lesson here" in said
    (root / "due.toml").write_text(f"{NAME} = 2026-03-01\n")
    result = run(root, "release", str(tmp_path / "out"), NAME)
    assert result.exit_code == 0, result.output
    released = tmp_path / "out" / "notebooks" / NAME
    assert {path.name for path in released.iterdir()} == {
        "my_lesson.ipynb",
        "practice.safetensors.gz",
    }
    assert "has the number 07 already" in run(root, "new", "07_another").output


def test_a_right_and_a_wrong_answer_are_graded(made: Lesson) -> None:
    wrong = read_variants(made, made.exercise(EXERCISE)).wrong[0]
    answers = {"ada": reference_answers(made), "bob": {EXERCISE: wrong.code}}
    for student, answer in answers.items():
        put_file(made, student, fill(made, answer))
    result = run(made.root, "grade", NAME, "--workers", "1", *NO_WALL)
    assert result.exit_code == 0, result.output
    ada, bob = (verdict_of(made, student) for student in answers)
    assert ada.points == made.points == 2
    assert bob.points < 1
    assert [belief.name for belief in bob.beliefs] == [wrong.name] == ["mean_of_everything"]


def verdict_of(lesson: Lesson, student: str) -> Verdict:
    path = file_of(lesson, student, "autograded")
    return read_record(nbformat.read(path, as_version=4)).verdicts[EXERCISE]


def test_the_other_lessons_are_left_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source").mkdir()
    before = (HERE / CURRICULUM).read_bytes()
    (tmp_path / CURRICULUM).write_bytes(before)
    monkeypatch.setattr(making, "measure", lambda lesson: {})  # slow, and tested above
    lesson = making.new(tmp_path, "10_masks_2")
    after = (tmp_path / CURRICULUM).read_bytes()
    assert after.startswith(before)
    assert list(lessons(tmp_path)) == [*lessons(HERE), "10_masks_2"]
    assert (lesson.title, lesson.text.name) == ("Masks 2", "masks_2.py")
    assert "\nimport attention_course  # its probes" in lesson.text.read_text()


NAMES = [
    "my_lesson",
    "7_my_lesson",
    "07_My_Lesson",
    "07 my lesson",
    "07_",
    "07_a__b",
    "../07_x",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    result = run(empty_course(tmp_path), "new", name)
    assert result.exit_code == 1
    assert "cannot be a lesson's name" in result.output
    assert "as in 10_my_lesson" in result.output
    assert (tmp_path / CURRICULUM).read_text() == NO_LESSONS


def test_a_lesson_that_is_there_is_refused(course: Path) -> None:
    result = run(course, "new", "02_causal_mask")
    assert result.exit_code == 1
    assert "there is a lesson 02_causal_mask already" in result.output
    (course / "source" / "08_draft").mkdir()
    assert run(course, "new", "08_draft").exit_code == 1
    assert (course / CURRICULUM).read_bytes() == (HERE / CURRICULUM).read_bytes()


THREE_FILES = ("source/curriculum.toml", "nbgrader_config.py", "jupytext.toml")


def test_a_course_of_three_files_releases_what_it_has(new_lesson: Lesson, tmp_path: Path) -> None:
    root = tmp_path / "course"
    shutil.copytree(new_lesson.root, root)
    shutil.copy(HERE / "jupytext.toml", root)
    assert {path.name for path in root.iterdir()} >= {Path(name).parts[0] for name in THREE_FILES}
    assert [name for name in THREE_FILES if f"`{name}`" not in PAGE] == []
    texts = [*root.glob("source/*/my_lesson.py"), *root.glob("source/*/variants/*.md")]
    for path in (root / CURRICULUM, *texts):
        path.write_text(path.read_text().replace("REPLACE", "About"))
    assert run(root, "build").exit_code == 0
    result = run(root, "release", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert f"released to {tmp_path / 'out'}: {NAME}" in result.output
    assert "students install that and run `autograde lab` there" in result.output
    assert {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()} == {
        "my_lesson.ipynb",
        "practice.safetensors.gz",
    }
    assert find_project(tmp_path / "out" / "notebooks").root == tmp_path / "out"
    (root / "docs").mkdir()
    (root / GUIDE).write_text("# How to start\n")
    assert run(root, "release", str(tmp_path / "guided")).exit_code == 0
    assert (tmp_path / "guided" / "README.md").read_text() == "# How to start\n"


CONFIGS: dict[str, tuple[str | None, str]] = {
    "absent": (None, "nbgrader_config.py is missing, so nbgrader knows no course. Have it import "),
    "empty": ("", "nbgrader_config.py lacks the settings of a course. Have it import "),
}


@pytest.mark.parametrize("config", CONFIGS)
def test_a_configuration_that_lacks_what_a_course_needs(mine: Lesson, config: str) -> None:
    text, said = CONFIGS[config]
    path = mine.root / CONFIG
    path.unlink()
    if text is not None:
        path.write_text(text)
    result = run(mine.root, "build", NAME)
    assert result.exit_code == 1
    assert said in result.output
    assert f"{manual() / 'plain.md'}, “Lessons in a course that you have”" in result.output


def test_init_touches_no_course_and_says_how_lessons_join_one(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text("c = get_config()\n")
    with pytest.raises(CourseError, match="not empty") as refused:
        making.init(tmp_path)
    page = Path(str(refused.value).rpartition(": ")[2])
    assert "## Lessons in a course that you have" in page.read_text()
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG]


@pytest.fixture
def without_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` makes the course's files alone, and this process does not import its package."""
    monkeypatch.setattr(making, "make_importable", lambda _: None)
    monkeypatch.setattr(making, "new", lambda *_, **__: None)


@pytest.mark.parametrize("name", ["class", "json"])
def test_lessons_can_import_the_package_of_a_course_of_any_name(
    name: str, tmp_path: Path, without_lessons: None
) -> None:
    making.init(tmp_path / name)
    assert (tmp_path / name / f"{name}_course" / "__init__.py").is_file()


def test_a_course_is_named_after_its_folder_in_any_letters(
    tmp_path: Path, without_lessons: None
) -> None:
    making.init(tmp_path / "Größen für Ärzte_2")
    course = read_course(tmp_path / "Größen für Ärzte_2")
    assert (course.title, course.package) == ("Größen für Ärzte 2", "grossen_fur_arzte_2")
    making.init(tmp_path / "Физика")
    course = read_course(tmp_path / "Физика")
    assert (course.title, course.package) == ("Физика", "my_course")


def test_its_students_name_the_wheel_in_full(tmp_path: Path, without_lessons: None) -> None:
    """On Windows nobody puts a file's name in place of a `*`, and pip finds no file called that."""
    making.init(tmp_path / "my-course")
    guide = (tmp_path / "my-course" / GUIDE).read_text()
    assert re.findall("pip install (.+)", guide) == ["my_course-0.1.0-py3-none-any.whl"]


def test_it_wants_a_course(tmp_path: Path) -> None:
    result = run(tmp_path, "new", NAME)
    assert result.exit_code == 1
    assert "is not in a course" in result.output


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_course_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    root = empty_course(tmp_path)
    result = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(root), str(root),
         sys.executable, "-m", "autograde.cli", "new", NAME],
        cwd=root, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    assert result.returncode == 1
    assert re.search(rf"Error: .*source/{NAME}.*: Read-only file system", result.stderr)


@pytest.mark.parametrize("error", [CourseError("its reference fails"), KeyboardInterrupt()])
def test_nothing_is_left_when_it_cannot_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(lesson: Lesson) -> None:
        raise error

    monkeypatch.setattr(making, "measure", fail)
    with pytest.raises(type(error)):
        making.new(empty_course(tmp_path), NAME)
    assert (tmp_path / CURRICULUM).read_text() == NO_LESSONS
    assert not (tmp_path / "source" / NAME).exists()


def test_a_course_without_lessons_says_what_to_do(tmp_path: Path) -> None:
    result = run(empty_course(tmp_path), "build")
    assert result.exit_code == 1
    assert "Run: autograde new 01_my_lesson" in result.output
