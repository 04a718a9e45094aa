"""nbgrader's exchange on this course, and what students can place in it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from nbgrader.exchange.default import (
    Exchange,
    ExchangeCollect,
    ExchangeFetchAssignment,
    ExchangeReleaseAssignment,
    ExchangeSubmit,
)
from small_class import LESSON, NOTEBOOK, make_course
from traitlets.config import Config

from autograde.course.config import course_config
from autograde.course.lessons import Lesson
from autograde.lms import exchange, plain_copy
from autograde.lms.plain_copy import ENTRIES

NOTEBOOK_FILE = f"{NOTEBOOK}.ipynb"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return make_course(tmp_path_factory.mktemp("exchange"))


def with_exchange(course: Lesson, folder: Path) -> Config:
    config = course_config(course.root)
    config.CourseDirectory.assignment_id = LESSON
    config.Exchange.root = str(folder / "exchange")
    config.ExchangeCollect.check_owner = False  # the students of these tests are no users here
    return config


def test_nbgraders_exchange_works_on_this_course(
    course: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(course.root / "submitted", ignore_errors=True)
    home = tmp_path / "student"
    home.mkdir()
    config = with_exchange(course, tmp_path)
    config.Exchange.cache = str(tmp_path / "cache")
    (tmp_path / "exchange").mkdir(mode=0o777)

    def run(step: type[Exchange], folder: Path) -> None:
        monkeypatch.chdir(folder)
        step(coursedir=CourseDirectory(config=config), authenticator=Authenticator(config=config),
             config=config).start()  # fmt: skip

    run(ExchangeReleaseAssignment, course.root)
    run(ExchangeFetchAssignment, home)
    given = {path.name for path in (home / LESSON).iterdir()}
    assert given == {path.name for path in course.released_notebook.parent.iterdir()}
    assert not [name for name in given if name.endswith((".py", ".md"))]
    (home / LESSON / NOTEBOOK_FILE).write_text('{"answered": true}')
    run(ExchangeSubmit, home)
    run(ExchangeCollect, course.root)
    (collected,) = (course.root / "submitted").glob(f"*/{LESSON}/{NOTEBOOK_FILE}")
    assert collected.read_text() == '{"answered": true}'
    assert (collected.parent / "timestamp.txt").is_file()


def a_link(folder: Path, secret: Path) -> None:
    (folder / NOTEBOOK_FILE).symlink_to(secret)


def a_folder_behind_a_link(folder: Path, secret: Path) -> None:
    (folder / "more").symlink_to(secret.parent)


def a_link_for_a_folder(folder: Path, secret: Path) -> None:
    folder.rmdir()
    folder.symlink_to(secret.parent)


def a_pipe(folder: Path, secret: Path) -> None:
    os.mkfifo(folder / NOTEBOOK_FILE)


def a_pipe_deep_inside(folder: Path, secret: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    os.mkfifo(folder / "a" / "b" / "c")


def too_many_bytes(folder: Path, secret: Path) -> None:
    (folder / "large.bin").touch()
    os.truncate(folder / "large.bin", 120_000_000)


def too_many_files(folder: Path, secret: Path) -> None:
    for number in range(ENTRIES + 1):
        (folder / str(number)).touch()


def too_deep(folder: Path, secret: Path) -> None:
    (folder / "/".join("a" * 30)).mkdir(parents=True)


def a_file(folder: Path, secret: Path) -> None:
    folder.rmdir()
    folder.write_text("{}")


def no_time(folder: Path, secret: Path) -> None:
    folder.rename(folder.with_name(f"bea+{LESSON}+yesterday+x"))


def a_hidden_name(folder: Path, secret: Path) -> None:
    folder.rename(folder.with_name(folder.name.replace("bea", "..")))


ODD = [a_link, a_folder_behind_a_link, a_link_for_a_folder, a_pipe, a_pipe_deep_inside,
       too_many_bytes, too_many_files, too_deep, a_file, no_time, a_hidden_name]  # fmt: skip


def hand_in(folder: Path, student: str, second: int = 0) -> Path:
    """Place a submission in the exchange; its notebook says when."""
    inbound = folder / "exchange" / "attention" / "inbound"
    made = inbound / f"{student}+{LESSON}+2026-03-01 12:00:{second:02}.000000 UTC+x"
    made.mkdir(parents=True)
    (made / NOTEBOOK_FILE).write_text(f'{{"second": {second}}}')
    return made


def collect(course: Lesson, config: Config) -> dict[str, str]:
    """Collect; return each collected notebook, by student."""
    coursedir, login = CourseDirectory(config=config), Authenticator(config=config)
    factory = ExchangeFactory(config=config)
    factory.Collect(coursedir=coursedir, authenticator=login, config=config).start()
    found = (course.root / "submitted").glob(f"*/{LESSON}/{NOTEBOOK_FILE}")
    return {path.parent.parent.name: path.read_text() for path in found}


@pytest.fixture
def nothing_collected(course: Lesson) -> None:
    shutil.rmtree(course.root / "submitted", ignore_errors=True)


@pytest.mark.usefixtures("nothing_collected")
@pytest.mark.parametrize("place", ODD)
def test_only_plain_files_are_collected(
    course: Lesson,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    place: Callable[[Path, Path], None],
) -> None:
    made = {student: hand_in(tmp_path, student) for student in ("ann", "bea", "cid")}
    (made["bea"] / NOTEBOOK_FILE).unlink()
    place(made["bea"], course.solution_notebook)
    before = {path.name for path in course.root.iterdir()}
    assert collect(course, with_exchange(course, tmp_path)).keys() == {"ann", "cid"}
    assert {path.name for path in course.root.iterdir()} - before <= {"submitted"}
    assert place is a_hidden_name or "Not collected: bea+" in caplog.text


@pytest.mark.usefixtures("nothing_collected")
def test_a_folder_that_cannot_be_read_costs_its_student_alone(
    course: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "bea", "cid"):
        hand_in(tmp_path, student)
    really = os.open

    def refuse(path: str, *arguments: Any, **options: Any) -> int:
        if str(path).startswith("bea+"):
            raise PermissionError(13, "Permission denied", path)
        return really(path, *arguments, **options)

    monkeypatch.setattr(plain_copy.os, "open", refuse)  # root may read all
    assert collect(course, with_exchange(course, tmp_path)).keys() == {"ann", "cid"}


@pytest.mark.usefixtures("nothing_collected")
@pytest.mark.parametrize("what", ["a file", "a folder", "the submission"])
def test_a_link_put_in_after_the_check_is_not_followed(
    course: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    made, secret = hand_in(tmp_path, "bea"), tmp_path / "secret"
    secret.mkdir()
    (secret / NOTEBOOK_FILE).write_text("the secret")
    (made / "more").mkdir()
    hand_in(tmp_path, "cid")
    places = {"a file": made / NOTEBOOK_FILE, "a folder": made / "more", "the submission": made}
    place, checked = places[what], plain_copy._require_plain

    def swap(mode: int, shown: str) -> None:
        checked(mode, shown)
        if shown.endswith(place.name) and not place.is_symlink():
            place.rename(tmp_path / "away")
            place.symlink_to(secret / NOTEBOOK_FILE if what == "a file" else secret)

    monkeypatch.setattr(plain_copy, "_require_plain", swap)
    assert collect(course, with_exchange(course, tmp_path)).keys() == {"cid"}
    assert place.is_symlink()


@pytest.mark.usefixtures("nothing_collected")
def test_a_submission_in_another_students_name_is_left_and_theirs_collected(
    course: Lesson,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    users = {"ann": os.getuid(), "bea": os.getuid() + 1}
    monkeypatch.setattr(exchange, "_user", lambda name: users[name])
    for second, student in enumerate(["ann", "bea"]):
        hand_in(tmp_path, student, second)
    config = with_exchange(course, tmp_path)
    config.ExchangeCollect.check_owner = True
    assert collect(course, config).keys() == {"ann"}
    assert "it belongs to another user" in caplog.text


def test_a_folder_that_changes_hands_after_the_check_is_not_copied(tmp_path: Path) -> None:
    made = hand_in(tmp_path, "ann")
    plain_copy.plain_copy(made, tmp_path / "one", 1_000, os.getuid())
    with pytest.raises(plain_copy.NotPlain, match="belongs to another user"):
        plain_copy.plain_copy(made, tmp_path / "two", 1_000, os.getuid() + 1)
    with pytest.raises(plain_copy.NotPlain, match="more bytes than are allowed"):
        plain_copy.plain_copy(made, tmp_path / "three", 5, os.getuid())


@pytest.mark.usefixtures("nothing_collected")
def test_a_later_submission_that_is_refused_leaves_the_earlier_one(
    course: Lesson, tmp_path: Path
) -> None:
    config = with_exchange(course, tmp_path)
    config.ExchangeCollect.update = True
    (hand_in(tmp_path, "ann", 1) / "timestamp.txt").write_text("2026-03-01 12:00:01 UTC")
    (hand_in(tmp_path, "bea", 1) / "timestamp.txt").write_text("9" * 10_000)
    assert collect(course, config) == {"ann": '{"second": 1}', "bea": '{"second": 1}'}
    a_pipe_deep_inside(hand_in(tmp_path, "ann", 2), tmp_path)
    hand_in(tmp_path, "bea", 2)
    assert collect(course, config) == {"ann": '{"second": 1}', "bea": '{"second": 2}'}


@pytest.mark.filterwarnings("ignore:.*timestamp.txt:pytest.PytestUnraisableExceptionWarning")
def test_feedback_that_cannot_be_addressed_is_left_out_and_named(
    course: Lesson, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for student in ("ann", "bea", "cid", "dan"):
        folder = course.root / "feedback" / student / LESSON
        folder.mkdir(parents=True)
        (folder / f"{NOTEBOOK}.html").write_text("a page")
        (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
        secret = {"bea": b"", "dan": b"\xff\xfe"}.get(student, student.encode())
        (folder / "submission_secret.txt").write_bytes(secret)
    config = with_exchange(course, tmp_path)
    (tmp_path / "exchange").mkdir(mode=0o777)
    coursedir, login = CourseDirectory(config=config), Authenticator(config=config)
    release = ExchangeFactory(config=config).ReleaseFeedback
    release(coursedir=coursedir, authenticator=login, config=config).start()
    assert len([*(tmp_path / "exchange" / "attention" / "feedback").glob("*.html")]) == 2
    for student in ("bea", "dan"):
        assert f"Not released: {student} has no readable timestamp.txt or" in caplog.text
