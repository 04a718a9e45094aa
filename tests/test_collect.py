"""Collecting from archives as Canvas, Moodle and Gradescope make them."""

import csv
import io
import shutil
from datetime import datetime
from pathlib import Path, PurePath
from zoneinfo import ZoneInfo

import pytest
from classes import gradebook_of
from downloads import zipped
from small_class import LESSON, NOTEBOOK, make_course

from autograde.course.lessons import CourseError, Lesson
from autograde.lms.collect import collect
from autograde.lms.recognise import Found, Person, read_metadata, recognise
from autograde.lms.worksheet import Row, read_worksheets

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
submission_103:
  :submitters:
  - {":name": Jane Doe, ":sid": "555", ":email": jane@example.org}
  - {":name": No Number, ":sid": , ":email": no@example.org}
"""


def canvas(number: str, file: str, *, late: bool = False) -> Found:
    return Found((Person(number),), file, late=late)


def moodle(number: str, name: str, file: str) -> Found:
    return Found((Person(number, name, moodle=True),), file)


JANE = Person("", "Jane Doe", "555", "jane@example.org")
NO_NUMBER = Person("", "No Number", "", "no@example.org")

PATHS: dict[str, Found | None] = {
    f"doejane_123_4567_{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    f"doejane_LATE_123_4567_{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE, late=True),
    f"o_neil_ann_123_4567_{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    "müllerjörg_123_4567_my_2_3_x.ipynb": canvas("123", "my_2_3_x.ipynb"),
    f"anon_aB3xY_4567_{NOTEBOOK_FILE}": canvas("anon_aB3xY", NOTEBOOK_FILE),
    f"LATE_anon_aB3xY_4567_{NOTEBOOK_FILE}": canvas("anon_aB3xY", NOTEBOOK_FILE, late=True),
    f"all.zip.d/doejane_123_4567_hw1.zip.d/{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    f"c/Jane Doe_123_assignsubmission_file/{NOTEBOOK_FILE}":
        moodle("123", "Jane Doe", NOTEBOOK_FILE),
    f"c/Jane Doe_77_assignsubmission_file_/sub/{NOTEBOOK_FILE}":
        moodle("77", "Jane Doe", NOTEBOOK_FILE),
    f"c/Jane Doe_123_assignsubmission_file_{NOTEBOOK_FILE}":
        moodle("123", "Jane Doe", NOTEBOOK_FILE),
    "c/Jane Doe_123_assignsubmission_onlinetext/x.ipynb": None,
    # names that students chose in the hope of handing in as 999
    f"doejane_123_4567_x_999_assignsubmission_file_{NOTEBOOK_FILE}":
        canvas("123", f"x_999_assignsubmission_file_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_x_999_1_{NOTEBOOK_FILE}": canvas("123", f"x_999_1_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_hw.zip.d/x_999_1_{NOTEBOOK_FILE}": canvas("123", f"x_999_1_{NOTEBOOK_FILE}"),
    f"doejane_123_4567_hw.zip.d/submission_99/{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    f"c/Jane_123_assignsubmission_file_x_999_assignsubmission_file_{NOTEBOOK_FILE}":
        moodle("123", "Jane", f"x_999_assignsubmission_file_{NOTEBOOK_FILE}"),
    f"c/Jane_123_assignsubmission_file/x_999_1_{NOTEBOOK_FILE}":
        moodle("123", "Jane", f"x_999_1_{NOTEBOOK_FILE}"),
    f"c/Jane_123_assignsubmission_onlinetext/x_999_1_{NOTEBOOK_FILE}": None,
    f"a/submission_99/submission_100/{NOTEBOOK_FILE}": Found((JANE,), NOTEBOOK_FILE, HANDED_IN),
    f"a/submission_102/x_999_1_{NOTEBOOK_FILE}": None,
    f"a/submission_102/submission_99/{NOTEBOOK_FILE}": None,
    # a folder that a teacher unpacked, with numbers of the course in its name
    f"cs_101_2026_mask_submissions/doejane_123_4567_{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    f"a/submission_99/{NOTEBOOK_FILE}": Found((JANE,), NOTEBOOK_FILE, HANDED_IN),
    f"a/submission_100/src/{NOTEBOOK_FILE}":
        Found((NO_NUMBER,), NOTEBOOK_FILE, datetime(2026, 2, 2, 12, 30)),
    f"a/submission_101/{NOTEBOOK_FILE}": None,
    f"a/submission_102/{NOTEBOOK_FILE}": None,
    f"__MACOSX/doejane_123_4567_{NOTEBOOK_FILE}": None,
    f"c/doejane_123_4567_homework.zip.d/._{NOTEBOOK_FILE}": None,
    NOTEBOOK_FILE: None,
    # what programs put there
    f"d/hw.ipynb_checkpoints/doejane_123_4567_{NOTEBOOK_FILE}": canvas("123", NOTEBOOK_FILE),
    f"doejane_123_4567_hw.zip.d/hw/.ipynb_checkpoints/{NOTEBOOK}-checkpoint.ipynb": None,
    f"c/Jane_123_assignsubmission_file/.ipynb_checkpoints/{NOTEBOOK}-checkpoint.ipynb": None,
    f"a/submission_99/.git/{NOTEBOOK_FILE}": None,
    f"doejane_123_4567_hw.zip.d/__MACOSX/{NOTEBOOK_FILE}": None,
    # groups
    f"c/Team Red_45_assignsubmission_file/{NOTEBOOK_FILE}": moodle("45", "Team Red", NOTEBOOK_FILE),
    f"c/Default group_assignsubmission_file/{NOTEBOOK_FILE}":
        moodle("", "Default group", NOTEBOOK_FILE),
    f"a/submission_103/{NOTEBOOK_FILE}":
        Found((JANE, NO_NUMBER), NOTEBOOK_FILE),
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
        f"a/submission_{number}" for number in (99, 100, 101, 103)
    }


@pytest.mark.parametrize("path", PATHS)
def test_whose_a_file_is(path: str, metadata: dict[PurePath, object]) -> None:
    assert recognise(PurePath(path), metadata) == PATHS[path]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a: [", b"- 1", b"", b"a: !!python/object/apply:os.system ['true']"]
)
def test_metadata_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_bytes(content)
    assert read_metadata(tmp_path) == ({}, [PurePath("submission_metadata.yml")])


def test_an_object_of_some_program_in_metadata_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "submission_metadata.yml").write_text("a: !ruby/object:Time {}")
    assert read_metadata(tmp_path) == ({PurePath("a"): None}, [])


ENGLISH = """\
Identifier,Full name,ID number,Email address,Status,Group,Last modified (submission),\
Last modified (grade)
Participant 12,Jane,s1,jane@example.org,Submitted,Red,"Monday, 2 March 2026, 10:30 PM",-
Participant 13,Joe,s2,,No submission,,-,-
"""
GERMAN = ENGLISH.replace("Participant ", "Teilnehmer/in")
for english, german in {
    "Identifier": "ID", "Full name": "Vollständiger Name", "ID number": "ID-Nummer",
    "Email address": "E-Mail-Adresse", "Group": "Gruppe",
    "Last modified (submission)": "Zuletzt geändert (Abgabe)",
    "Last modified (grade)": "Zuletzt geändert (Bewertung)",
}.items():  # fmt: skip
    GERMAN = GERMAN.replace(english, german)
FRENCH = """\
Identifiant,Nom complet,Numéro d'identification,Adresse de courriel,Statut,Groupe,\
Dernière modification (travail remis),Dernière modification (note)
Participant 12,Jane,s1,jane@example.org,Remis,Red,"Monday, 2 March 2026, 10:30 PM",-
Participant 13,Joe,s2,,-,,-,-
"""


def separated(text: str, separator: str) -> str:
    rows = csv.reader(text.splitlines())
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator).writerows(rows)
    return buffer.getvalue()


SHEETS = {
    "English": ENGLISH.encode("utf-8-sig"),
    "German": GERMAN.encode(),
    "German in an older code": GERMAN.encode("cp1252"),
    "French": FRENCH.encode(),
    "semicolons": separated(GERMAN, ";").encode("utf-8-sig"),
    "tabs, UTF-16": separated(ENGLISH, "\t").encode("utf-16"),
    "UTF-16 without a mark": separated(FRENCH, ";").encode("utf-16-le"),
    "quoted": ENGLISH.replace("Identifier", '"Identifier"').encode(),
    "capitals": ENGLISH.replace("Full name", "Full Name").encode(),
}
"""One worksheet, as it comes out of Moodle and of spreadsheets."""


@pytest.mark.parametrize("kind", SHEETS)
def test_moodles_worksheet_says_who_and_when(kind: str, tmp_path: Path) -> None:
    (tmp_path / "Grades-Attention-7.CSV").write_bytes(SHEETS[kind])
    sheet = read_worksheets(tmp_path, ZoneInfo("Europe/Berlin"))
    assert sheet.said == []
    assert sheet.rows == {
        "12": Row(Person("12", "Jane", "s1", "jane@example.org", moodle=True), "Red", HANDED_IN),
        "13": Row(Person("13", "Joe", "s2", "", moodle=True)),
    }


NOT_READ = {
    "a time in German": (
        ENGLISH.replace("Monday, 2 March 2026, 10:30 PM", "Montag, 2. März 2026, 22:30"),
        "1 times in Moodle's worksheet cannot be read, such as 'Montag, 2. März 2026, 22:30'",
    ),
    "an unknown language": (
        "Tunniste,Koko nimi,Viimeksi muokattu\nOsallistuja 1,Jane,-\n", "no row of 'x.csv' is"),
    "a table of something else": ("Name,Points\nJane,1\n", "no row of 'x.csv' is understood"),
    "no time": ("Identifier,Full name\nParticipant 1,Jane\n", "nobody counts as late"),
    "nothing": ("", "no row of 'x.csv' is understood"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOT_READ)
def test_what_is_not_understood_in_a_worksheet_is_said(kind: str, tmp_path: Path) -> None:
    text, said = NOT_READ[kind]
    (tmp_path / "x.csv").write_text(text)
    sheet = read_worksheets(tmp_path, ZoneInfo("Europe/Berlin"))
    assert len(sheet.said) == 1
    assert said in sheet.said[0]
    assert "Download it with Moodle in English" in sheet.said[0]
    assert not any(row.handed_in for row in sheet.rows.values())


def test_a_long_text_in_the_worksheet_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "Grades-Attention-7.csv").write_text(
        "Identifier,Online text,Last modified (submission)\n"
        f"Participant 11,{'a' * 200_000},-\n"
        'Participant 12,,"Monday, 2 March 2026, 10:30 PM"\n'
    )
    sheet = read_worksheets(tmp_path, ZoneInfo("Europe/Berlin"))
    assert {number: row.handed_in for number, row in sheet.rows.items()} == {
        "11": None,
        "12": HANDED_IN,
    }


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
    "moodle": {
        f"77/{LESSON}/{NOTEBOOK_FILE}", f"77/{LESSON}/old/{NOTEBOOK_FILE}",
        f"77/{LESSON}/timestamp.txt",
    },
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
    collect(course, [])
    submitted = course.root / "submitted"
    found = {p.relative_to(submitted).as_posix() for p in submitted.rglob("*") if p.is_file()}
    assert found == COLLECTED[system]
    assert not [p for p in submitted.glob("*/*/*.ipynb") if p.read_text() != "{}"]
    student, time = TIMES[system]
    assert (submitted / student / LESSON / "timestamp.txt").read_text() == time


def test_a_bad_download_stops_collecting_and_is_named(course: Lesson, archives: Path) -> None:
    (archives / "good.zip").write_bytes(zipped(DOWNLOADS["canvas"]))
    (archives / "evil.zip").write_bytes(zipped({"../../../x.ipynb": "{}"}))
    (archives / "link.zip").symlink_to("/etc/passwd")
    (archives / "cs_101_2026_mask_submissions.zip").write_bytes(zipped(DOWNLOADS["canvas"]))
    with pytest.raises(CourseError, match="Refused, so nothing was collected") as refused:
        collect(course, [])
    said = str(refused.value)
    assert "evil.zip: '../../../x.ipynb' leads out of the folder" in said
    assert "link.zip: it is a link" in said
    assert "submissions.zip: that could be a student's file; call it download.zip" in said
    assert not (course.root / "submitted").exists()


def test_a_time_zone_that_does_not_exist_is_named(course: Lesson, archives: Path) -> None:
    (archives / "moodle.zip").write_bytes(zipped(DOWNLOADS["moodle"]))
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text(f"{before}\nc.Lms.time_zone = 'Europe/Bärlin'\n")
    with pytest.raises(CourseError, match="time_zone is 'Europe/Bärlin', which is no time zone"):
        collect(course, [])
    config.write_text(before)


def test_an_id_that_is_no_folders_name_is_left_out(course: Lesson, archives: Path) -> None:
    evil = METADATA.replace("'555'", "'../../evil'").replace("jane@", "../")
    evil = evil.replace("no@example.org", "-rf")
    (archives / "x.zip").write_bytes(
        zipped({**DOWNLOADS["gradescope"], "assignment_1_export/submission_metadata.yml": evil})
    )
    collect(course, [])
    assert not (course.root / "submitted").exists()
