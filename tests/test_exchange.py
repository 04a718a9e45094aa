"""nbgrader's exchange on this course, and what students can place in it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

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

from autograde.course import Lesson
from autograde.course_config import course_config

NOTEBOOK_FILE = f"{NOTEBOOK}.ipynb"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return make_course(tmp_path_factory.mktemp("exchange"))


def with_exchange(course: Lesson, folder: Path) -> Config:
    config = course_config(course.root)
    config.CourseDirectory.assignment_id = LESSON
    config.Exchange.root = str(folder / "exchange")
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
    assert not [name for name in given if name.endswith((".py", ".toml"))]
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


@pytest.mark.parametrize("place", [a_link, a_folder_behind_a_link, a_link_for_a_folder, a_pipe])
def test_only_plain_files_are_collected(
    course: Lesson, tmp_path: Path, place: Callable[[Path, Path], None]
) -> None:
    shutil.rmtree(course.root / "submitted", ignore_errors=True)
    inbound = tmp_path / "exchange" / "attention" / "inbound"
    made = {}
    for student in ("ann", "bea", "cid"):
        made[student] = inbound / f"{student}+{LESSON}+2026-03-01 12:00:00.000000 UTC+x"
        made[student].mkdir(parents=True)
    for student in ("ann", "cid"):
        (made[student] / NOTEBOOK_FILE).write_text("{}")
    place(made["bea"], course.solution_notebook)
    config = with_exchange(course, tmp_path)
    coursedir, login = CourseDirectory(config=config), Authenticator(config=config)
    factory = ExchangeFactory(config=config)
    factory.Collect(coursedir=coursedir, authenticator=login, config=config).start()
    collected = {path.parent.name for path in (course.root / "submitted").glob(f"*/{LESSON}")}
    assert collected == {"ann", "cid"}


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
