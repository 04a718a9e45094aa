"""Collecting from archives as Canvas, Moodle and Gradescope make them."""

import shutil
from datetime import datetime
from pathlib import Path, PurePath
from zoneinfo import ZoneInfo

import pytest
from classes import gradebook_of
from downloads import zip_collect, zipped
from small_class import LESSON, NOTEBOOK, make_course

from autograde.course import Lesson
from autograde.lms.collect import Found, read_metadata, read_worksheet, recognise

NOTEBOOK_FILE = f"{NOTEBOOK}.ipynb"
HANDED_IN = datetime(2026, 3, 2, 21, 30)

METADATA = """---
submission_99:
  :submitters:
  - :name: Jane Doe
    :sid: '555'
    :email: jane@example.org
  :created_at: 2026-03-02 13:30:00.000000000 -08:00
  :score: 3.0
  :results: !ruby/object:Results {a: 1}
  :history: []
submission_100:
  :submitters:
  - :name: No Number
    :sid:
    :email: no@example.org
  :created_at: 2026-02-02 13:30:00 +01:00
submission_101: 7
"""

PATHS: dict[str, Found | None] = {
    f"doejane_123_4567_{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    f"doejane_LATE_123_4567_{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE, late=True),
    f"o_neil_ann_123_4567_{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    "müllerjörg_123_4567_my_2_3_x.ipynb": Found("123", "my_2_3_x.ipynb"),
    f"anon_aB3xY_4567_{NOTEBOOK_FILE}": Found("anon_aB3xY", NOTEBOOK_FILE),
    f"LATE_anon_aB3xY_4567_{NOTEBOOK_FILE}": Found("anon_aB3xY", NOTEBOOK_FILE, late=True),
    f"all.zip.d/doejane_123_4567_hw1.zip.d/{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    f"c/Jane Doe_123_assignsubmission_file/{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    f"c/Jane Doe_77_assignsubmission_file_/sub/{NOTEBOOK_FILE}":
        Found("77", NOTEBOOK_FILE, datetime(2026, 3, 2)),
    f"c/Jane Doe_123_assignsubmission_file_{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    "c/Jane Doe_123_assignsubmission_onlinetext/x.ipynb": None,
    # names that students chose in the hope of handing in as 999
    f"doejane_123_4567_x_999_assignsubmission_file_{NOTEBOOK_FILE}":
        Found("123", f"x_999_assignsubmission_file_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_x_999_1_{NOTEBOOK_FILE}": Found("123", f"x_999_1_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_hw.zip.d/x_999_1_{NOTEBOOK_FILE}": Found("123", f"x_999_1_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_hw.zip.d/submission_99/{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    f"c/Jane_123_assignsubmission_file_x_999_assignsubmission_file_{NOTEBOOK_FILE}":
        Found("123", f"x_999_assignsubmission_file_{NOTEBOOK_FILE}"),
    f"c/Jane_123_assignsubmission_file/x_999_1_{NOTEBOOK_FILE}":
        Found("123", f"x_999_1_{NOTEBOOK_FILE}"),
    f"c/Jane_123_assignsubmission_onlinetext/x_999_1_{NOTEBOOK_FILE}": None,
    f"a/submission_99/submission_100/{NOTEBOOK_FILE}": Found("555", NOTEBOOK_FILE, HANDED_IN),
    f"a/submission_102/x_999_1_{NOTEBOOK_FILE}": None,
    f"a/submission_102/submission_99/{NOTEBOOK_FILE}": None,
    # a folder that a teacher unpacked, with numbers of the course in its name
    f"cs_101_2026_mask_submissions/doejane_123_4567_{NOTEBOOK_FILE}": Found("123", NOTEBOOK_FILE),
    f"a/submission_99/{NOTEBOOK_FILE}": Found("555", NOTEBOOK_FILE, HANDED_IN),
    f"a/submission_100/src/{NOTEBOOK_FILE}":
        Found("no@example.org", NOTEBOOK_FILE, datetime(2026, 2, 2, 12, 30)),
    f"a/submission_101/{NOTEBOOK_FILE}": None,
    f"a/submission_102/{NOTEBOOK_FILE}": None,
    f"__MACOSX/doejane_123_4567_{NOTEBOOK_FILE}": None,
    f"c/doejane_123_4567_homework.zip.d/._{NOTEBOOK_FILE}": None,
    NOTEBOOK_FILE: None,
}  # fmt: skip
"""Paths inside a download, and whose they are."""


@pytest.fixture
def metadata(tmp_path: Path) -> dict[PurePath, object]:
    """As it is read beside the download; students handed in one of their own, which is not."""
    for folder in ("a", "a/submission_102", "c/Jane_1_assignsubmission_file", "d_1_2_hw.zip.d"):
        (tmp_path / folder).mkdir(parents=True)
        own = METADATA if folder == "a" else METADATA.replace("submission_99", "submission_102")
        (tmp_path / folder / "submission_metadata.yml").write_text(own)
    found, unread = read_metadata(tmp_path)
    assert not unread
    return dict(found)


def test_metadata_that_a_student_handed_in_says_nothing(metadata: dict[PurePath, object]) -> None:
    assert {path.as_posix() for path in metadata} == {
        f"a/submission_{number}" for number in (99, 100, 101)
    }


@pytest.mark.parametrize("path", PATHS)
def test_whose_a_file_is(path: str, metadata: dict[PurePath, object]) -> None:
    times = {"77": datetime(2026, 3, 2)}
    assert recognise(PurePath(path), metadata, times) == PATHS[path]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a: [", b"- 1", b"", b"a: !!python/object/apply:os.system ['true']"]
)
def test_metadata_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_bytes(content)
    assert read_metadata(tmp_path) == ({}, [PurePath("submission_metadata.yml")])


def test_an_object_of_some_program_in_metadata_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_text("a: !ruby/object:Time {}")
    assert read_metadata(tmp_path) == ({PurePath("a"): None}, [])


def test_moodles_worksheet_says_when(tmp_path: Path) -> None:
    (tmp_path / "Grades-Attention-7.csv").write_text(
        "\ufeffIdentifier,Full name,Last modified (submission),Last modified (grade)\n"
        'Participant 12,Jane,"Monday, 2 March 2026, 10:30 PM",-\n'
        "Participant 13,Joe,-,-\n"
        'Participant 14,Zoe,"Montag, 2. März 2026, 22:30",-\n'
    )
    assert read_worksheet(tmp_path, ZoneInfo("Europe/Berlin")) == (
        {"12": HANDED_IN},
        ["Montag, 2. März 2026, 22:30"],
    )


def test_a_long_text_in_the_worksheet_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "Grades-Attention-7.csv").write_text(
        "Identifier,Online text,Last modified (submission)\n"
        f"Participant 11,{'a' * 200_000},-\n"
        'Participant 12,,"Monday, 2 March 2026, 10:30 PM"\n'
    )
    assert read_worksheet(tmp_path, ZoneInfo("Europe/Berlin")) == ({"12": HANDED_IN}, [])


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    lesson = make_course(tmp_path_factory.mktemp("collect"))
    with gradebook_of(lesson.root) as gradebook:
        gradebook.update_or_create_student("jdoe", lms_user_id="123")
    return lesson


DOWNLOADS: dict[str, dict[str, bytes | str]] = {
    "canvas": {
        f"doejane_LATE_123_4567_{NOTEBOOK_FILE}": "{}",
        "roejoe_124_4568_causal_mask-1.ipynb": "{}",
        "roejoe_124_4569_notes.txt": "x",
    },
    "moodle": {
        f"Jane Doe_77_assignsubmission_file/{NOTEBOOK_FILE}": "{}",
        f"Jane Doe_77_assignsubmission_file/old/{NOTEBOOK_FILE}": "a copy in a folder below",
        "Jane Doe_77_assignsubmission_onlinetext/onlinetext.html": "x",
    },
    "gradescope": {
        "assignment_1_export/submission_metadata.yml": METADATA,
        f"assignment_1_export/submission_99/{NOTEBOOK_FILE}": "{}",
        "assignment_1_export/submission_100/homework.zip": zipped({f"hw/{NOTEBOOK_FILE}": "{}"}),
    },
}

COLLECTED = {
    "canvas": {
        f"jdoe/{LESSON}/{NOTEBOOK_FILE}", f"jdoe/{LESSON}/timestamp.txt",
        f"124/{LESSON}/causal_mask-1.ipynb",
    },
    "moodle": {f"77/{LESSON}/{NOTEBOOK_FILE}", f"77/{LESSON}/timestamp.txt"},
    "gradescope": {
        f"555/{LESSON}/{NOTEBOOK_FILE}", f"555/{LESSON}/timestamp.txt",
        f"no@example.org/{LESSON}/{NOTEBOOK_FILE}", f"no@example.org/{LESSON}/timestamp.txt",
    },
}  # fmt: skip

TIMES = {
    "canvas": ("jdoe", "2026-03-01 12:00:01"),
    "moodle": ("77", "2026-03-02 22:30:00"),
    "gradescope": ("555", "2026-03-02 21:30:00"),
}


@pytest.fixture
def archives(course: Lesson) -> Path:
    """The folder for downloads, empty, in a course where nothing is collected."""
    for folder in ("downloaded", "submitted"):
        shutil.rmtree(course.root / folder, ignore_errors=True)
    folder = course.root / "downloaded" / LESSON / "archive"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("system", DOWNLOADS)
def test_a_download_is_collected_with_its_late_marks(
    system: str, course: Lesson, archives: Path
) -> None:
    (archives / "submissions.zip").write_bytes(zipped(DOWNLOADS[system]))
    if system == "moodle":
        (archives / "Grades.csv").write_text(
            "Identifier,Last modified (submission),Last modified (grade)\n"
            'Participant 77,"Monday, 2 March 2026, 10:30 PM",-\n'
        )
    zip_collect(course)
    submitted = course.root / "submitted"
    found = {p.relative_to(submitted).as_posix() for p in submitted.rglob("*") if p.is_file()}
    assert found == COLLECTED[system]
    assert not [p for p in submitted.rglob("*.ipynb") if p.read_text() != "{}"]
    student, time = TIMES[system]
    assert (submitted / student / LESSON / "timestamp.txt").read_text() == time


def test_a_bad_download_stops_collecting_and_is_named(
    course: Lesson, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (archives / "good.zip").write_bytes(zipped(DOWNLOADS["canvas"]))
    (archives / "evil.zip").write_bytes(zipped({"../../../x.ipynb": "{}"}))
    (archives / "link.zip").symlink_to("/etc/passwd")
    (archives / "cs_101_2026_mask_submissions.zip").write_bytes(zipped(DOWNLOADS["canvas"]))
    with pytest.raises(SystemExit):
        zip_collect(course)
    said = capsys.readouterr().err
    assert "evil.zip: '../../../x.ipynb' leads out of the folder" in said
    assert "link.zip: it is a link" in said
    assert "submissions.zip: that could be a student's file; call it download.zip" in said
    assert not (course.root / "submitted").exists()


def test_a_time_zone_that_does_not_exist_is_named(
    course: Lesson, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (archives / "moodle.zip").write_bytes(zipped(DOWNLOADS["moodle"]))
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text(f"{before}\nc.LmsCollector.time_zone = 'Europe/Bärlin'\n")
    with pytest.raises(SystemExit):
        zip_collect(course)
    config.write_text(before)
    assert "time_zone is 'Europe/Bärlin', which is no time zone" in capsys.readouterr().err


def test_an_id_that_is_no_folders_name_is_left_out(course: Lesson, archives: Path) -> None:
    evil = METADATA.replace("'555'", "'../../evil'").replace("no@example.org", "-rf")
    (archives / "x.zip").write_bytes(
        zipped({**DOWNLOADS["gradescope"], "assignment_1_export/submission_metadata.yml": evil})
    )
    zip_collect(course)
    assert not (course.root / "submitted").exists()
