"""What can go wrong around a class: each case has its message, and nothing is half written."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest
from classes import LESSON, NO_WALL, contents, gradebook_of, make_course, scores
from conftest import HERE, run

from autograde.course.cells import named_cells
from autograde.course.lessons import lessons
from autograde.course.versions import Version
from autograde.grading import (
    coordinator,
    feedback,
    pipeline,
    state,
    submission,
    verdicts,
    workers,
)
from autograde.grading.reading import parse
from autograde.grading.running.job import Job, Ran
from autograde.grading.running.run import Look
from autograde.sandbox import template
from autograde.sandbox.wall import missing

STUDENTS = ("perfect", "other")


def fakes(patch: pytest.MonkeyPatch) -> None:
    """Nothing is really run: every job ends with nothing recorded, and every page says nothing."""

    def run_job(job: Job, look: Look, *, alone: bool) -> Ran:
        nothing = {"outputs": [], "execution_count": 1}
        return Ran(job.key, [nothing] * len(job.cells), None, {}, 0.1)

    patch.setattr(workers, "Worker", lambda *_: ThreadPoolExecutor(1))
    patch.setattr(workers, "start_template", lambda *_: None)
    patch.setattr(template, "prepare", lambda *_: None)
    patch.setattr(feedback, "warm_up", lambda version: None)
    patch.setattr(pipeline, "run_job", run_job)
    patch.setattr(feedback, "page", lambda notebook, marks: b"a page")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course after a run without any trouble."""
    root = tmp_path_factory.mktemp("undisturbed") / "course"
    make_course(root, STUDENTS)
    with pytest.MonkeyPatch.context() as patch:
        fakes(patch)
        patch.chdir(root)
        code, said = graded()
    assert code == 0, said
    return root


@pytest.fixture(scope="module")
def clean(undisturbed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same course before it."""
    root = tmp_path_factory.mktemp("clean") / "course"
    shutil.copytree(undisturbed, root)
    (copy,) = (root / ".autograde" / "gradebooks").iterdir()
    copy.replace(root / "gradebook.db")
    for name in ("autograded", "feedback", ".autograde/ran", ".autograde/graded"):
        shutil.rmtree(root / name)
    return root


@pytest.fixture
def course(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fakes(monkeypatch)
    shutil.copytree(clean, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    return tmp_path / "course"


def graded() -> tuple[int, str]:
    result = run(Path(), "grade", LESSON, "--workers", "1", *NO_WALL)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def submitted(course: Path, student: str = "other") -> Path:
    return course / "submitted" / student / LESSON / "causal_mask.ipynb"


def change(path: Path, edit: Callable[[Any], None]) -> None:
    nb = nbformat.read(path, as_version=4)
    edit(nb)
    nbformat.write(nb, path)


def relabel(path: Path, **label: str) -> None:
    """Change what nbgrader wrote into a rubric cell when the lesson was built."""
    change(path, lambda nb: named_cells(nb)["test_apply_mask"].metadata.nbgrader.update(label))


def older_rubric(course: Path) -> None:
    """Handed in from a version whose rubric was another one."""
    relabel(submitted(course), checksum="0" * 32)
    change(submitted(course), lambda nb: named_cells(nb)["test_apply_mask"].update(source="1"))


def newer_rubric(course: Path) -> None:
    """Built again, with another rubric, since students got theirs; theirs was built elsewhere."""
    shutil.rmtree(course / ".autograde" / "released")
    released = lessons(course)[LESSON].released_notebook
    relabel(released, checksum="1" * 32)
    change(released, lambda nb: named_cells(nb)["test_apply_mask"].update(source="1"))


def long_time(course: Path) -> None:
    (submitted(course).parent / "timestamp.txt").write_text("1." * 500_000)


def no_time(course: Path) -> None:
    (submitted(course).parent / "timestamp.txt").write_text("yesterday, at night")


def test_a_student_whose_scores_a_killed_run_did_not_save_is_no_trouble(course: Path) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("new")
        gradebook.update_or_create_submission(LESSON, "new")
    code, said = graded()
    assert code == 0, said


@pytest.mark.parametrize(
    ("trouble", "message", "others"),
    [
        (older_rubric, "the rubric of apply_mask was changed", 1),
        (newer_rubric, "a rubric in ", 0),
        (long_time, "timestamp.txt says '1.1.1.1.", 1),
        (no_time, "timestamp.txt says 'yesterday, at night', which is not a time", 1),
    ],
)
def test_a_submission_that_cannot_be_graded_is_named_and_the_others_are_graded(
    course: Path, trouble: Callable[[Path], None], message: str, others: int
) -> None:
    trouble(course)
    code, said = graded()
    assert code == 1
    assert "not graded: other" in said
    assert message in said
    assert sorted(scores(course)) == ["perfect"][:others]
    assert not (course / "autograded" / "other").exists()
    code, said = graded()  # nor is it forgotten
    assert code == 1
    assert message in said


def test_a_time_that_is_none_is_named_before_anything_runs(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_time(course)
    began, really = [], pipeline.grade_submission

    def grade(task: submission.Task, versions: tuple[Version, ...]) -> submission.Graded:
        began.append(task.submission.place.student)
        return really(task, versions)

    monkeypatch.setattr(pipeline, "grade_submission", grade)
    assert graded()[0] == 1
    assert began == ["perfect"]


def test_a_lesson_that_is_not_built_is_named_once_and_the_others_are_graded(course: Path) -> None:
    other = lessons(course)["03_inf_mask"]
    for student in STUDENTS:
        shutil.copytree(
            course / "submitted" / student / LESSON, course / "submitted" / student / other.name
        )
    shutil.rmtree(other.released_notebook.parent)
    result = run(course, "grade", "--workers", "1", *NO_WALL)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert said.count("03_inf_mask is not built here. Run: autograde build 03_inf_mask") == 1
    assert "02_causal_mask: 2 graded, mean 0% of 13 points" in said
    assert "no lesson of this course" not in said
    assert "03_inf_mask: 2 not graded (other, perfect)" in said
    assert sorted(scores(course)) == sorted(STUDENTS)


def test_a_clone_with_another_grader_says_which_one_to_run(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    # else workers of later tests would import this clone's grader
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    shutil.copytree(HERE / "autograde", course / "autograde")
    assert run(course, "grade", "--workers", "1", *NO_WALL).exit_code == 0
    with (course / "autograde" / "student_text.py").open("a") as file:
        file.write("# a newer one\n")
    result = run(course, "grade", "--workers", "1", *NO_WALL)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert f"{course}/autograde differs from the grader that you run" in said
    assert f"pip install -e {course}" in said


def test_a_lesson_named_twice_is_graded_once(course: Path) -> None:
    result = run(course, "grade", LESSON, LESSON, "--workers", "1", *NO_WALL)
    assert result.output.count("2 graded") == 1


@pytest.mark.parametrize("due", [None, "2026-03-01 12:00 UTC"])
def test_a_fresh_clone_says_what_to_build_and_records_nobody(course: Path, due: str | None) -> None:
    (course / "gradebook.db").unlink()
    if due:
        with gradebook_of(course) as gradebook:
            gradebook.add_assignment(LESSON, duedate=due)
    code, said = graded()
    assert code == 1
    assert f"the gradebook does not know {LESSON}. Run: autograde build {LESSON}" in said
    assert "autograde report" not in said
    with gradebook_of(course) as gradebook:  # nbgrader would refuse the build
        assert not gradebook.students


def test_a_run_does_again_only_what_has_changed(course: Path) -> None:
    (state.state_folder(course) / "secret").unlink()  # as before the first run
    assert graded()[0] == 0
    assert "2 unchanged" in graded()[1]
    (course / "submitted" / "other" / LESSON / "notes.txt").write_text("more")
    assert "1 graded, 1 unchanged" in graded()[1]
    (course / "feedback" / "other" / LESSON / "causal_mask.html").unlink()
    assert "1 graded, 1 unchanged" in graded()[1]
    assert "2 unchanged" in graded()[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "c.LatePolicy.penalty_method = 'zzz'",
            "nbgrader_config.py: The 'penalty_method' trait",
        ),
        ("c.LatePolicy.penalty_method =", "nbgrader_config.py fails: SyntaxError: invalid syntax"),
    ],
)
def test_a_slip_in_the_configuration_is_said_once(course: Path, line: str, message: str) -> None:
    with (course / "nbgrader_config.py").open("a") as config:
        config.write(f"\n{line}\n")
    code, said = graded()
    assert code == 1
    assert said.count(message) == 1
    assert "the grader failed" not in said


def test_a_folder_of_no_lesson_is_named(course: Path) -> None:
    (course / "submitted" / "other" / "02_causal").mkdir()
    assert "no lesson of this course, so not graded: 02_causal" in graded()[1]


def test_the_second_of_two_runs_at_once_refuses(course: Path) -> None:
    with state.one_run(course):
        code, said = graded()
    assert code == 1
    assert f"is being graded already, by process {os.getpid()} since 20" in said
    assert not (course / "autograded").exists()
    assert graded()[0] == 0


def damaged(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged inside: it opens, and only a look at all of it tells."""
    path = course / "gradebook.db"
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)


def no_gradebook(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (course / "gradebook.db").write_bytes(b"this is a spreadsheet" * 100)


def little_room(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(course)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=7_000_000))


@pytest.mark.parametrize(
    ("trouble", "messages"),
    [
        (damaged, ["gradebook.db", "There is no copy of it."]),
        (no_gradebook, ["gradebook.db", "file is not a database", "There is no copy of it."]),
        (little_room, ["7 MB are free", "Make room first"]),
    ],
)
def test_a_class_that_cannot_be_graded_is_left_as_it_is(
    course: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Path, pytest.MonkeyPatch], None],
    messages: list[str],
) -> None:
    trouble(course, monkeypatch)
    before = (course / "gradebook.db").read_bytes()
    code, said = graded()
    assert code == 1
    for message in messages:
        assert message in said
    assert (course / "gradebook.db").read_bytes() == before
    assert not (course / "autograded").exists()


def test_a_damaged_gradebook_has_a_copy(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert graded()[0] == 0
    damaged(course, monkeypatch)
    _, said = graded()
    assert f"The last copy, from before the last run, is {course}" in said


def test_a_gradebook_that_is_missing_has_a_copy_and_a_way_without(course: Path) -> None:
    assert graded()[0] == 0
    (course / "gradebook.db").unlink()
    code, said = graded()
    assert code == 1
    assert f"gradebook.db is missing. The last copy, from before the last run, is {course}" in said
    assert not (course / "gradebook.db").exists()
    shutil.rmtree(course / ".autograde" / "gradebooks")
    assert "the gradebook does not know" in graded()[1]


FULL = OSError(errno.ENOSPC, "No space left on device", "somewhere")


class Place(NamedTuple):
    """A function that writes; the disk is full from its `after`th call on."""

    module: Any
    name: str
    after: int


@pytest.mark.parametrize(
    "place",
    [
        Place(state, "write_whole", 0),
        Place(state, "write_whole", 1),
        Place(state, "write_whole", 3),
        Place(coordinator.Coordinator, "_write", 0),
        Place(coordinator.Coordinator, "_write", 1),
        Place(coordinator.Coordinator, "_write", 3),
    ],
    ids=lambda place: f"{place.name} {place.after}",
)
def test_a_disk_that_fills_up_stops_the_run_and_the_next_one_goes_on(
    course: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    real, calls = getattr(place.module, place.name), []

    def write(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) > place.after:
            raise FULL
        real(*arguments)

    with monkeypatch.context() as full:
        full.setattr(place.module, place.name, write)
        code, said = graded()
        assert code == 1
        assert "the disk is full (somewhere). Make room. What was finished is kept" in said
    assert [path for path in course.rglob("*fresh*") if ".autograde" not in path.parts] == []
    assert graded()[0] == 0
    assert contents(course) == contents(undisturbed)


@pytest.mark.skipif(bool(missing()), reason="bubblewrap makes a folder read-only even for root")
@pytest.mark.parametrize(
    ("read_only", "writable", "message"),
    [
        (".", (), "Read-only"),
        (".", (".autograde",), "cannot write to {course}: grading changes it"),
        ("gradebook.db", (), "cannot write to {course}/gradebook.db: grading changes it"),
    ],
)
def test_a_read_only_course_is_refused(
    course: Path, read_only: str, writable: tuple[str, ...], message: str
) -> None:
    options = ["--ro-bind", str(course / read_only), str(course / read_only)]
    for name in writable:
        options += ["--bind", str(course / name), str(course / name)]
    command = ["bwrap", "--dev-bind", "/", "/", *options, "--chdir", str(course),
               sys.executable, "-m", "autograde.cli", "grade", "--no-wall", LESSON]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert message.format(course=course) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_fault_of_the_grader_costs_one_submission(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = parse.parse

    def failing(content: bytes) -> Any:
        if b"this is other" in content:
            raise ZeroDivisionError("nobody thought of it")
        return real(content)

    monkeypatch.setattr(parse, "parse", failing)
    code, said = graded()
    assert code == 1
    assert "not graded: other" in said
    assert "the grader failed: ZeroDivisionError: nobody thought of it" in said
    assert "Traceback" in (course / ".autograde" / "grading.log").read_text()
    assert sorted(scores(course)) == ["perfect"]


def test_a_judge_that_fails_leaves_its_traceback(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge_cell(*_: object) -> Any:
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr(verdicts, "_judge_outputs", judge_cell)
    _, said = graded()
    assert "The judge failed on" in said
    assert "nobody thought of it" in (course / ".autograde" / "grading.log").read_text()
