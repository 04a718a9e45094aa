"""Grades for other systems, column by column, and what lateness costs."""

import csv
import errno
import re
import shutil
from datetime import timedelta
from pathlib import Path, PurePath
from zipfile import ZipFile

import pytest
from classes import gradebook_of
from conftest import HERE, run
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, Lesson
from autograde.grading.gradebook import LatePolicy
from autograde.lms.exports import export_grades
from autograde.lms.people import keep_numbers
from autograde.lms.recognise import recognise

LESSON = "02_causal_mask"
DAY = 86400.0


@pytest.fixture(scope="module")
def course(small_class: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small class with ids as Canvas and Moodle give them, and a penalty for bob."""
    root = tmp_path_factory.mktemp("exports") / "course"
    shutil.copytree(small_class.root, root)
    with gradebook_of(root) as gradebook:
        gradebook.update_or_create_student("ada", lms_user_id="4711", email="ada@example.org")
        gradebook.update_or_create_student("1234", first_name="Never", last_name="There")
        late = gradebook.find_submission_notebook("causal_mask", LESSON, "bob")
        late.late_submission_penalty = 1.0
        gradebook.db.commit()
    return root


def exported(root: Path, kind: str, *lessons: str) -> list[list[str]]:
    path = export_grades(root, kind, lessons, root / f"out-{kind}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_an_export_says_in_one_line_whose_work_waits(course: Path, tmp_path: Path) -> None:
    shutil.copytree(course, tmp_path / "course")
    with gradebook_of(tmp_path / "course") as gradebook:
        for student in ("ada", "bob"):
            submission = gradebook.find_submission_notebook("causal_mask", LESSON, student)
            submission.grades[0].needs_manual_grade = True
        gradebook.db.commit()
    said = run(tmp_path / "course", "export", "--format", "csv", LESSON).output
    assert f"{LESSON}: to be graded by hand: 2 (ada, bob)" in said
    assert f"{LESSON}: handed in and not graded, so without a score: 1 (kim)" in said


def test_what_nbgrader_failed_to_grade_is_no_zero(course: Path, tmp_path: Path) -> None:
    """A file under another name, say: nbgrader keeps the submission, and no score of it."""
    shutil.copytree(course, tmp_path / "course")
    with gradebook_of(tmp_path / "course") as gradebook:
        submission = gradebook.find_submission_notebook("causal_mask", LESSON, "ada")
        for grade in submission.grades:
            grade.auto_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()
    said = run(tmp_path / "course", "export", "--format", "moodle", LESSON).output
    assert f"{LESSON}: handed in and not graded, so without a score: 2 (ada, kim)" in said
    assert "to be graded by hand" not in said
    head, *rows = exported(tmp_path / "course", "moodle", LESSON)
    (row,) = (row for row in rows if "ada" in row)
    assert dict(zip(head, row, strict=True))["Grade"] == ""


def test_csv_is_nbgraders_own_table(course: Path) -> None:
    plugin = CsvExportPlugin(config=Config(ExportPlugin={"to": str(course / "stock.csv")}))
    with gradebook_of(course) as gradebook:
        plugin.assignment = [LESSON]
        # nbgrader writes names as they are, so those with a comma or quotes break its table
        for student in gradebook.students:
            student.last_name = {"bob": "Müller", "ada": "L"}.get(student.id, student.last_name)
        plugin.export(gradebook)
        gradebook.db.rollback()
    table = csv.DictReader((course / "stock.csv").read_text().splitlines())
    stock = {row["student_id"]: row for row in table}
    head, *rows = exported(course, "csv", LESSON)
    ours = {row["student_id"]: row for row in (dict(zip(head, r, strict=True)) for r in rows)}
    assert head == list(stock["bob"])
    assert set(ours) == set(stock)
    for student, row in stock.items():
        for name in ("raw_score", "late_submission_penalty", "score", "max_score"):
            assert float(ours[student][name]) == pytest.approx(float(row[name]))
        assert ours[student]["timestamp"] == row["timestamp"]
    assert ours["bob"]["last_name"] == "Müller, jr."
    assert ours["ada"]["last_name"].startswith("'=HYPERLINK")


def test_canvas(course: Path) -> None:
    rows = exported(course, "canvas", LESSON)
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert rows[1] == ["    Points Possible", "", "", "", "", "13.0"]
    found = {row[3]: row for row in rows[2:]}
    assert found["ada"][:2] == ['\'=HYPERLINK("https://example.org","x"), Ada', "4711"]
    assert found["1234"] == ["There, Never", "1234", "", "1234", "", ""]
    assert found["bob"][1] == ""
    assert float(found["bob"][5]) == pytest.approx(what_counts(course), abs=1e-4)
    assert found["eve"][5] == "0.0"


def test_moodle_one_lesson_is_the_grading_worksheet(course: Path) -> None:
    head, *rows = exported(course, "moodle", LESSON)
    found = {row["ID number"]: row for row in (dict(zip(head, r, strict=True)) for r in rows)}
    assert found["ada"]["Identifier"] == "Participant 4711"
    assert found["1234"]["Identifier"] == "Participant 1234"
    assert found["1234"]["Grade"] == ""
    assert found["bob"]["Identifier"] == ""
    assert found["ada"]["Grade"] == found["ada"]["Maximum Grade"] == "13.0"
    # Moodle refuses a file without these three; an empty column of comments would delete them
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(head)
    assert "Feedback comments" not in head


def test_the_manual_packs_feedback_as_moodle_names_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (HERE / "docs" / "class.md").read_text()
    (recipe,) = re.findall(r"```python moodle\n(.*?)```", page, re.DOTALL)
    keep_numbers(tmp_path, LESSON, {"ada_lovelace": "31", "kim": "32"})
    written = tmp_path / "feedback" / "ada_lovelace" / LESSON / "causal_mask.html"
    written.parent.mkdir(parents=True)
    written.write_text("5 of 9")
    monkeypatch.chdir(tmp_path)
    exec(recipe, {})  # noqa: S102 (the page's own)
    with ZipFile("feedback.zip") as packed:
        (name,) = packed.namelist()
        assert packed.read(name) == b"5 of 9"
    # importziplib.php splits a name at its first four underscores
    assert name.split("_", 4)[1:] == ["31", "assignsubmission", "file", "causal_mask.html"]
    found = recognise(PurePath(name), {})
    assert found
    assert [person.number for person in found.owners] == ["31"]


def test_moodles_worksheet_is_of_one_lesson(course: Path, tmp_path: Path) -> None:
    shutil.copytree(course, tmp_path / "course")
    with gradebook_of(tmp_path / "course") as gradebook:
        gradebook.update_or_create_assignment("01_self_attention")
    lessons = (LESSON, "01_self_attention")
    result = run(tmp_path / "course", "export", "--format", "moodle", *lessons)
    assert result.exit_code == 1
    assert "Moodle's worksheet is of one assignment: name one lesson" in result.output


def test_titles_of_the_other_system(course: Path, tmp_path: Path) -> None:
    shutil.copytree(course, tmp_path / "course")
    with (tmp_path / "course" / "nbgrader_config.py").open("a") as config:
        config.write(f'c.Lms.titles = {{"{LESSON}": "The mask (991)"}}\n')
    assert exported(tmp_path / "course", "canvas", LESSON)[0][-1] == "The mask (991)"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--format", "canvas"], 0, "grades-canvas.csv"),
        (["--format", "csv", LESSON, "--to", "own.csv"], 0, "own.csv"),
        (["--format", "excel"], 2, "'excel' is not one of"),
        (["--format", "csv", "03"], 1, "there is no gradebook entry '03'"),
        (["--format", "csv", "--to", "/dev/stdout"], 0, "/dev/stdout"),
    ],
)
def test_the_command(course: Path, arguments: list[str], code: int, said: str) -> None:
    result = run(course, "export", *arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output


def test_on_a_full_disk_the_last_export_stays_and_is_named(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grades = export_grades(course, "csv", (), None)
    before = grades.read_bytes()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = run(course, "export", "--format", "csv")
    assert result.output.endswith(f"Error: {grades}: No space left on device\n")
    assert grades.read_bytes() == before


def test_nothing_is_exported_before_anything_is_graded(course: Path, tmp_path: Path) -> None:
    shutil.copytree(course, tmp_path / "course")
    with gradebook_of(tmp_path / "course") as gradebook:
        for student in list(gradebook.students):
            gradebook.remove_student(student.id)
    result = run(tmp_path / "course", "export", "--format", "csv", "--to", "new.csv")
    assert result.exit_code == 1
    assert "Error: nothing is graded yet. Run: autograde grade" in result.output
    assert not (tmp_path / "course" / "new.csv").exists()


def test_a_lesson_the_gradebook_does_not_know_is_named(course: Path) -> None:
    with pytest.raises(CourseError, match="no gradebook entry '05_x'; there are:"):
        export_grades(course, "csv", ("05_x",), None)


@pytest.mark.parametrize(
    ("late", "taken"),
    [(1.0, 1.2), (DAY, 1.2), (DAY + 1, 2.4), (9 * DAY, 10.8), (10 * DAY, 12), (99 * DAY, 12)],
)
def test_a_tenth_for_each_day_that_has_begun(late: float, taken: float) -> None:
    policy = LatePolicy(penalty_method="percent")
    assert policy.late_submission_penalty("x", 12.0, late) == pytest.approx(taken)


@pytest.mark.parametrize(
    ("method", "hours", "late", "taken"),
    [
        ("none", 0, 9 * DAY, None),
        ("zero", 0, 1.0, 12.0),
        ("zero", 1, 3600.0, None),
        ("percent", 1, 3600.0, None),
        ("percent", 1, 3601.0, 1.2),
        ("percent", 48, 2 * DAY + 1, 3.6),
    ],
)
def test_a_policy_and_its_grace(
    method: str, hours: float, late: float, taken: float | None
) -> None:
    policy = LatePolicy(penalty_method=method, grace_hours=hours)
    assert policy.late_submission_penalty("x", 12.0, late) == (
        taken if taken is None else pytest.approx(taken)
    )


def test_the_course_takes_nothing_off_unless_told(small_class: Lesson) -> None:
    with gradebook_of(small_class.root) as gradebook:
        bob = gradebook.find_submission(LESSON, "bob")
        assert bob.total_seconds_late == timedelta(days=1.5).total_seconds()
        assert not bob.late_submission_penalty


def test_a_policy_in_the_configuration_counts(own_class: Lesson) -> None:
    config = course_config(own_class.root)
    config.LatePolicy.penalty_method = "percent"
    config.LatePolicy.grace_hours = 12.0
    about = {"notebook": "causal_mask", "assignment": LESSON, "student": "bob",
             "db_url": CourseDirectory(config=config).db_url}  # fmt: skip
    AssignLatePenalties(config=config).preprocess(new_notebook(), {"nbgrader": about})
    with Gradebook(about["db_url"], "attention") as gradebook:
        bob = gradebook.find_submission(LESSON, "bob")
        assert bob.late_submission_penalty == pytest.approx(0.2 * bob.score)


def what_counts(root: Path) -> float:
    with gradebook_of(root) as gradebook:
        bob = gradebook.find_submission(LESSON, "bob")
        return float(bob.score - (bob.late_submission_penalty or 0))
