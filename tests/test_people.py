"""Who handed what in, from lesson to lesson: `autograde collect`, and the numbers that go back."""

import csv
import shutil
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from classes import gradebook_of, make_course
from conftest import run
from downloads import zipped
from nbgrader.api import Grade

from autograde.commands import terminal
from autograde.course.lessons import Lesson, lessons
from autograde.grading.gradebook import odd_due_date
from autograde.lms.exports import export_grades
from autograde.lms.people import read_numbers

MASK, INF = "02_causal_mask", "03_inf_mask"
FOLDER = "{}_assignsubmission_file/mask.ipynb"
HEAD = "Identifier,Full name,ID number,Email address,Group,Last modified (submission)\n"

NOTEBOOK = '{"nbformat": 4, "metadata": {}, "cells": []}'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("people") / "course"
    make_course(root, ())
    with gradebook_of(root) as gradebook:
        gradebook.update_or_create_assignment(INF)
        ana = {"first_name": "Ana", "last_name": "Muster", "email": "Ana@uni.example"}
        gradebook.update_or_create_student("ana", lms_user_id="481516", **ana)
        gradebook.update_or_create_student("bob", first_name="Bob", last_name="O'Neil")
        gradebook.update_or_create_student("4711", first_name="Max", last_name="Other")
        for twin in ("kim1", "kim2"):
            gradebook.update_or_create_student(twin, first_name="Kim", last_name="Li")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "course")
    return tmp_path / "course"


def collect(
    root: Path, *folders: str, sheet: str = "", lesson: str = MASK, **files: bytes | str
) -> list[str]:
    """Collect a download with these folders of Moodle's, or these files; return what is said."""
    named = {FOLDER.format(folder): NOTEBOOK for folder in folders}
    paths = [root.parent / "moodle.zip"]
    paths[0].write_bytes(zipped({**named, **files}))
    if sheet:
        paths.append(root.parent / "sheet.csv")
        paths[1].write_text(HEAD + sheet)
    result = run(root, "collect", lesson, *map(str, paths))
    said = result.output.splitlines()
    assert result.exit_code == any(line.startswith("NOT COLLECTED") for line in said), said
    return said


def who_has(root: Path, lesson: str = MASK) -> set[str]:
    return {path.parent.name for path in (root / "submitted").glob(f"*/{lesson}")}


def test_a_person_is_the_same_in_every_lesson(root: Path) -> None:
    collect(root, "Ana Muster_481516")
    collect(root, "Ana Muster_502342", lesson=INF)
    assert who_has(root) == who_has(root, INF) == {"ana"}
    assert read_numbers(root, MASK) == {"ana": "481516"}
    assert read_numbers(root, INF) == {"ana": "502342"}


SAME: dict[str, tuple[str, str, set[str]]] = {
    "by name": ("Ana Muster_7", "", {"ana"}),
    "by name, the other way round": ("MUSTER Ana_7", "", {"ana"}),
    "by name, without what Moodle leaves out": ("Bob ONeil_7", "", {"bob"}),
    "by ID number": ("Anita M_7", "Participant 7,Anita M,ana,,,-\n", {"ana"}),
    "by email": ("Anita M_7", "Participant 7,Anita M,,ana@uni.example,,-\n", {"ana"}),
    "a namesake by ID number": ("Kim Li_7", "Participant 7,Kim Li,kim2,,,-\n", {"kim2"}),
    "somebody new with an ID number": (
        "Zoë X_7", "Participant 7,Zoë X,s9,z@u.example,,-\n", {"s9"}),
    "somebody new with an address": ("Zoë X_7", "Participant 7,Zoë X,,z@u.example,,-\n",
                                     {"z@u.example"}),
    "somebody new": ("Zoë X_7", "Participant 7,Zoë X,,,,-\n", {"7"}),
    "hidden names": ("Participant_7 Participant_8", "Participant 7\nParticipant 8\n", {"7", "8"}),
    "a group": ("Team Red_45", "Participant 7,Ana Muster,,,Team Red,-\n"
                "Participant 8,Zoë X,s9,,Team Red,-\nParticipant 9,Bob O'Neil,,,Blue,-\n",
                {"ana", "s9"}),
}  # fmt: skip
"""A folder of Moodle's, the worksheet, and who gets the file."""


@pytest.mark.parametrize("case", SAME)
def test_moodles_people_are_found(root: Path, case: str) -> None:
    folder, sheet, students = SAME[case]
    folders = folder.split(" ") if case == "hidden names" else [folder]
    collect(root, *folders, sheet=sheet)
    assert who_has(root) == students


def test_somebody_new_is_known_in_the_next_lesson(root: Path) -> None:
    collect(root, "Zoë X_7", sheet="Participant 7,Zoë X,,,,-\n")
    collect(root, "Zoë X_88", lesson=INF)
    assert who_has(root, INF) == {"7"}
    with gradebook_of(root) as gradebook:
        zoe = gradebook.find_student("7")
        assert (zoe.last_name, zoe.first_name) == ("X", "Zoë")


def test_a_word_that_hides_names_is_nobodys_name(root: Path) -> None:
    collect(root, "Participant_7", sheet="Participant 7,,,,,-\n")
    collect(root, "Participant_88", sheet="Participant 88,,,,,-\n", lesson=INF)
    assert (who_has(root), who_has(root, INF)) == ({"7"}, {"88"})


UNCLEAR: dict[str, tuple[tuple[str, ...], str, str]] = {
    "nobody of that name": (("Zoë X_7",), "", "a new student or a group. Put Moodle's grading w"),
    "a group without a worksheet": (("Team Red_45",), "", "Put Moodle's grading worksheet beside"),
    "those in no group": (("Default group",), "", "from a group of students. Put Moodle's grading"),
    "a name that two have": (("Kim Li_7",), "", "several students have this name"),
    "a name that two in Moodle have": (
        ("Ana Muster_7",), "Participant 7,Ana Muster,,,,-\nParticipant 8,Ana Muster,,,,-\n",
        "several students have this name"),
    "two folders of one name": (("Ana Muster_7", "Ana Muster_8", "Bob ONeil_9"), "",
                                "several students have this name"),
    "another address": (("Ana Muster_7",), "Participant 7,Ana Muster,,other@uni.example,,-\n",
                        "has another email address"),
    "a number that is somebody's id": (("Zoë X_4711",),
                                       "Participant 4711,Zoë X,,,,-\n",
                                       "somebody else has the id '4711' in the gradebook"),
    "one id, two people": (("A_7", "B_8"), "Participant 7,A,ana,,,-\nParticipant 8,B,ana,,,-\n",
                           "2 submissions seem to be from ana"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCLEAR)
def test_nobody_is_guessed(root: Path, case: str) -> None:
    folders, sheet, said = UNCLEAR[case]
    text = "\n".join(collect(root, *folders, sheet=sheet))
    assert said in text.partition("NOT COLLECTED")[2]
    assert who_has(root) <= {"bob"}


def test_of_whom_two_came_is_not_said_that_nothing_came(root: Path) -> None:
    folders, sheet, _ = UNCLEAR["one id, two people"]
    said = collect(root, *folders, sheet=sheet)
    assert "  Ana Muster (ana)" not in said
    assert any(
        "(ana): 2 submissions seem to be from ana, those of 'A ana', 'B ana'. " in s for s in said
    )


def test_an_address_with_an_apostrophe_is_collected(root: Path) -> None:
    metadata = "submission_9:\n  :submitters:\n  - :name: Pat\n    :email: pat.o'neil@uni.edu\n"
    files = {"x/submission_metadata.yml": metadata, "x/submission_9/mask.ipynb": NOTEBOOK}
    collect(root, **files)
    assert who_has(root) == {"pat.o'neil@uni.edu"}
    zoe = {path: text.replace("pat.o'neil", "zoë.d’arc") for path, text in files.items()}  # noqa: RUF001
    collect(root, lesson=INF, **zoe)
    assert who_has(root, INF) == {"zoë.d’arc@uni.edu"}  # noqa: RUF001


def test_everybody_who_handed_in_together_gets_it(root: Path) -> None:
    metadata = (
        "submission_9:\n  :submitters:\n  - {':name': Pat, ':sid': p}\n"
        "  - {':name': Ana, ':email': ANA@uni.example}\n"
    )
    files = {"x/submission_metadata.yml": metadata, "x/submission_9/mask.ipynb": NOTEBOOK}
    collect(root, **files)
    assert who_has(root) == {"p", "ana"}


def test_the_end_says_who_has_what_and_from_whom_nothing_came(root: Path) -> None:
    sheet = (
        'Participant 1,Ana Muster,,,,"Monday, 2 March 2026, 10:30 PM"\n'
        "Participant 2,Bob O'Neil,,,,-\nParticipant 3,Zoë X,s9,,,-\n"
    )
    files = {FOLDER.format("Bob ONeil_2").replace("mask.ipynb", f"work.{end}"): b"Rar!"
             for end in ("rar", "7z", "tar.gz")}  # fmt: skip
    said = collect(root, "Ana Muster_1", sheet=sheet, **files, **{"lost.ipynb": NOTEBOOK})
    assert said == [
        f"{MASK}: collected from 1",
        "  ana ('Ana Muster'): 'mask.ipynb', 2026-03-02 22:30:00 UTC, new",
        "nothing in the download from: 4",
        "  Max Other (4711)",
        "  Zoë X s9",
        "  Kim Li (kim1)",
        "  Kim Li (kim2)",
        "to look at: 1",
        "  the path does not say who handed in 'moodle.zip/lost.ipynb'",
        "NOT COLLECTED: 1",
        "  Bob O'Neil (bob): no notebook in what was handed in, 'work.7z', 'work.rar', "
        "'work.tar.gz': only notebooks and zip archives are opened",
        f"next: autograde grade {MASK}",
    ]


def test_of_whom_there_is_nothing_the_gradebook_knows_all_the_same(root: Path) -> None:
    sheet = (
        "Participant 1,Ana Muster,,,,-\nParticipant 2,Bob B,,,,-\nParticipant 3,Zoë X,s9,,,-\n"
        "Participant 4,Yve Y,,yve@uni.example,,-\nParticipant 5,Nobody Known,,,,-\n"
        "Participant 6,Pia P,s10,,,-\n"
    )
    a_file = {FOLDER.format("Pia P_6").replace("mask.ipynb", "work.rar"): b"Rar!"}
    collect(root, "Ana Muster_1", sheet=sheet, **a_file)
    with gradebook_of(root) as gradebook:
        students = {student.id: student.first_name for student in gradebook.students}
    new = {"s9": "Zoë", "yve@uni.example": "Yve", "s10": "Pia"}
    assert {who: students.get(who) for who in new} == new
    assert "Nobody" not in students.values()
    assert {*new} <= read_numbers(root, MASK).keys()


def at(time: str) -> str:
    return f'Participant 1,Ana Muster,,,,"{time}"\n'


def test_a_later_download_replaces_and_an_earlier_one_does_not(root: Path) -> None:
    folder = root / "submitted" / "ana" / MASK
    name = FOLDER.format("Ana Muster_1")
    second = zipped({"hw/mask.ipynb.txt": NOTEBOOK, "hw/.ipynb_checkpoints/mask.ipynb": NOTEBOOK})
    assert "UTC, new" in collect(root, "Ana Muster_1", sheet=at("2 March 2026, 10:30 PM"))[1]
    assert "UTC, as before" in collect(root, "Ana Muster_1", sheet=at("2 March 2026, 22:30"))[1]
    later = collect(
        root, sheet=at("3 March 2026, 9:00"), **{name.replace(".ipynb", ".zip"): second}
    )
    assert later[1].endswith("2026-03-03 09:00:00 UTC, replaced")
    assert {path.name for path in folder.iterdir()} == {"mask.ipynb.txt", "timestamp.txt"}
    earlier = collect(root, "Ana Muster_1", sheet=at("2 March 2026, 22:30"))
    assert earlier[1].endswith("left out: what is there was handed in later")
    assert (folder / "mask.ipynb.txt").is_file()


@pytest.mark.parametrize(
    ("name", "content"), [("both.zip", zipped({"a.ipynb": NOTEBOOK})), ("both.csv", HEAD.encode())]
)
def test_of_two_downloads_of_one_name_neither_replaces_the_other(
    root: Path, name: str, content: bytes
) -> None:
    paths = [root.parent / folder / name for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(content)
    result = run(root, "collect", MASK, *map(str, paths))
    assert result.exit_code == 1
    assert f"{paths[1]}: another file has that name; rename one of them" in result.output


def test_a_download_that_is_refused_leaves_everything(root: Path) -> None:
    path = root.parent / "x.zip"
    path.write_bytes(zipped({"../x.ipynb": NOTEBOOK}))
    result = run(root, "collect", MASK, str(path))
    assert result.exit_code == 1
    assert "leads out of the folder" in result.output
    assert not (root / "submitted").exists()
    result = run(root, "collect", MASK)
    assert "name the files that you downloaded, or put them into" in result.output


def test_each_lesson_goes_back_with_its_own_numbers(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collect(root, "Ana Muster_481516", sheet="Participant 9,Bob O'Neil,,,,-\n"
            "Participant 481516,Ana Muster,,,,-\n")  # fmt: skip
    collect(root, "Ana Muster_502342", lesson=INF)
    with gradebook_of(root) as gradebook:
        for lesson in (MASK, INF):
            for student in ("ana", "kim1"):
                gradebook.update_or_create_submission(lesson, student)
        for grade in gradebook.db.query(Grade):
            grade.auto_score = 1.0
        gradebook.db.commit()
    for lesson, ana, bob in ((MASK, "481516", "9"), (INF, "502342", "")):
        path = export_grades(root, "moodle", (lesson,), root / "out.csv")
        with path.open(newline="", encoding="utf-8") as file:
            found = {row["ID number"]: row["Identifier"] for row in csv.DictReader(file)}
        assert found["ana"] == f"Participant {ana}"
        assert found["bob"] == (f"Participant {bob}" if bob else "")
        assert f"No participant's number in {lesson} for kim1:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("due", "odd"),
    [
        (datetime(2026, 3, 3, 6, 8, 20), True),  # 06:00 -0500, read as 500 seconds
        (datetime(2026, 3, 3, 5, 58, 20), True),  # 06:00 +0100
        (datetime(2026, 3, 3, 5, 51, 10), True),  # 06:00 +0530
        (datetime(2026, 3, 3, 6, 0), False),
        (datetime(2026, 3, 2, 23, 59, 59), False),
        (None, False),
    ],
)
def test_a_due_date_that_nbgrader_misread_is_noticed(due: datetime | None, odd: bool) -> None:
    assert bool(odd_due_date(due)) == odd


def lesson_due(root: Path, text: str) -> Lesson:
    with gradebook_of(root) as gradebook:
        gradebook.update_or_create_assignment(MASK, duedate=text)
    return lessons(root)[MASK]


def test_collect_warns_of_a_misread_due_date(root: Path) -> None:
    lesson_due(root, "2026-03-03 06:00 -0500")
    said = "\n".join(collect(root, "Ana Muster_1"))
    assert "the due date is 2026-03-03 06:08:20 UTC" in said
    lesson_due(root, "2026-03-03 06:00 UTC")
    assert "the due date" not in "\n".join(collect(root, "Ana Muster_1"))


def test_grade_warns_of_a_misread_due_date(root: Path) -> None:
    said = terminal._summary([lesson_due(root, "2026-03-03 06:00 -0500")], Counter())
    assert f"{MASK}: the due date is 2026-03-03 06:08:20 UTC" in said
    said = terminal._summary([lesson_due(root, "2026-03-03 06:00-05:00")], Counter())
    assert "the due date" not in said


def test_who_only_reads_numbers_makes_no_folder(tmp_path: Path) -> None:
    assert read_numbers(tmp_path, "01_it") == {}
    assert list(tmp_path.iterdir()) == []
