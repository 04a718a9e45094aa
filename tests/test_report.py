"""The class report: what it says of a class, with names and without, as a page and as CSV."""

import csv
import errno
import gc
import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from big_class import made_up
from classes import LESSON, NO_WALL, file_of, gradebook_of
from conftest import run
from nightly import nightly
from screen_reader import Outline, outline_of

from autograde.course.lessons import CourseError, Lesson, Written
from autograde.grader import grader_of
from autograde.lms.spreadsheet import write_table
from autograde.report.class_report import render, tables, write_report
from autograde.report.classdata import (
    EMPTY,
    SCORED,
    WAITING,
    ClassData,
    Row,
    Student,
    read_class,
    rows_of,
    without_names,
)
from autograde.report.counts import count, means, misconceptions, parts_of, talk_to, teach_again
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief

STUDENTS = ("ada", "bob", "eve", "zoe", "kim")


def test_a_class_is_read_from_gradebook_and_notebooks(small_class: Lesson) -> None:
    data = read_class(small_class)
    scores = {each.name: each.score for each in data.students}
    assert scores["ada"] == small_class.points
    assert 0 < scores["bob"] < scores["ada"]
    assert scores["eve"] == scores["zoe"] == 0
    assert data.judged == {"ada", "bob"}
    assert {each.name: each.share for each in data.students} == pytest.approx(
        {"ada": 1, "bob": scores["bob"] / small_class.points, "zoe": 0, "eve": None}
    )
    assert data.not_graded == ("kim",)
    assert {each.version for each in data.students} == {grader_of("attention_course")}


def test_a_folder_whose_name_is_no_text_is_listed(small_class: Lesson) -> None:
    folder = Path(os.fsdecode(bytes(small_class.root) + b"/submitted/\xff\xfe"))
    (folder / small_class.name).mkdir(parents=True)
    try:
        assert read_class(small_class).not_graded == ("kim", "\ufffd\ufffd")
        assert "\ufffd\ufffd" in write_report(small_class).read_text()
    finally:
        shutil.rmtree(folder)


def test_known_mistakes_are_counted(small_class: Lesson) -> None:
    ((found, students),) = misconceptions(read_class(small_class))
    assert (found.exercise, students) == ("causal_mask", 1)
    assert found.what == "`diagonal=1` means that the diagonal is included."


def test_the_page_says_what_the_class_shows(small_class: Lesson) -> None:
    page = outline_of(write_report(small_class).read_text())
    assert page.headings[0] == (1, "Class report: The causal mask")
    for text in (
        "The file is not JSON", "Handed in, not graded.", "Handed in untouched: 1.",
        grader_of("attention_course"), "inputs drawn for it alone",
    ):  # fmt: skip
        assert text in page.text


def test_the_page_stands_alone_and_can_be_listened_to(small_class: Lesson) -> None:
    text = write_report(small_class).read_text()
    assert outline_of(text).faults() == []
    assert not re.search(
        r"""(=|url\()["']?https?:|@import""", text
    )  # a student's name may have one


@pytest.mark.parametrize("anonymous", [False, True])
def test_without_names_nothing_says_who(
    small_class: Lesson, anonymous: bool, tmp_path: Path
) -> None:
    page = write_report(small_class, anonymous=anonymous, csv_folder=tmp_path)
    texts = [outline_of(page.read_text()).text, *(p.read_text() for p in tmp_path.iterdir())]
    words = set(re.findall(r"\w+", " ".join(texts)))
    assert words.isdisjoint(STUDENTS) == anonymous
    assert words >= {"JSON"}  # the kind of a problem stays


def test_csv_holds_the_rows(small_class: Lesson, tmp_path: Path) -> None:
    write_report(small_class, csv_folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"02_causal_mask-{name}.csv" for name in ("lines", "students")
    ]
    with (tmp_path / "02_causal_mask-lines.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    states = Counter((row["student"], row["state"]) for row in rows)
    assert states["ada", "right"] == states["zoe", "not judged"] == states["eve", "not judged"]
    wrong = [row for row in rows if row["state"] == "wrong"]
    assert {(row["student"], row["exercise"], row["points"]) for row in wrong} == {
        ("bob", "causal_mask", "0.0"),
        ("bob", "tril_causal_weights", "0.0"),  # it calls causal_mask
    }
    assert wrong[0]["misconception"] == "`diagonal=1` means that the diagonal is included."


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["02_causal_mask"], 0, "report/02_causal_mask.html"),
        ([], 0, "no submission of 01_self_attention is graded"),
        (["01_self_attention"], 1, "no submission of 01_self_attention is graded"),
        (["03"], 1, "there is no lesson '03'"),
    ],
)
def test_the_command(small_class: Lesson, arguments: list[str], code: int, said: str) -> None:
    result = run(small_class.root, "report", *arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output


def test_a_broken_graded_notebook_is_named(own_class: Lesson) -> None:
    file_of(own_class, "ada", "autograded").write_text("{}")
    with pytest.raises(CourseError, match=r"ada.*causal_mask.ipynb .*--student ada --regrade"):
        read_class(own_class)
    assert run(own_class.root, "report").exit_code == 1


def test_a_lesson_that_a_merge_has_damaged_is_named(own_class: Lesson) -> None:
    path = own_class.released_notebook
    path.write_text("<<<<<<< mine\n")
    said = run(own_class.root, "report", own_class.name)
    assert said.exit_code == 1
    assert f"{path} cannot be read" in said.output
    assert f"Run: autograde build {own_class.name}" in said.output


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_damaged_gradebook_is_said(own_class: Lesson) -> None:
    (own_class.root / "gradebook.db").write_bytes(b"no database at all" * 1000)
    for command in (["report"], ["export", "--format", "csv"]):
        result = run(own_class.root, *command)
        assert result.exit_code == 1
        assert "cannot be used: file is not a database" in result.output
    del result  # its traceback holds the connection that nbgrader could not use and left open;
    gc.collect()  # Python 3.13 warns of that


def verdict(name: str, *passed: bool, note: str = "", attempted: bool = True) -> Verdict:
    """A verdict by its lines, right or wrong."""
    lines = tuple(
        LineVerdict(f"line {i}", ok, float(ok), 1.0, None if ok else Failure("why"))
        for i, ok in enumerate(passed)
    )
    points = sum(line.points for line in lines)
    return Verdict(name, points, float(len(lines)), lines, note=note, attempted=attempted)


Handed = tuple[Student, list[Row]]


def submission(name: str, *verdicts: Verdict, **more: object) -> Handed:
    score = sum(each.points for each in verdicts)
    return Student(name, score, **more), list(rows_of(name, verdicts))  # type: ignore[arg-type]


def class_of(lesson: Lesson, *handed: Handed, **more: tuple[str, ...]) -> ClassData:
    students = tuple(student for student, _ in handed)
    return ClassData(lesson, students, tuple(row for _, rows in handed for row in rows), **more)


def test_every_state_of_a_line_is_counted(small_class: Lesson) -> None:
    data = class_of(
        small_class,
        submission("a", verdict("causal_mask", True, False, False)),
        submission("b", verdict("causal_mask", True, True, True)),
        submission("died", replace(verdict("causal_mask", False, False, False), lines=tuple(
            LineVerdict(f"line {i}", False, 0.0, 1.0) for i in range(3)))),
        submission("c", verdict("causal_mask", False, False, False, attempted=False),
                   verdict("apply_mask", True)),
    )  # fmt: skip
    states = ("right", "wrong", "not judged")
    counts = count(data)
    assert {line: [counts[*line, state] for state in states] for line in data.lines} == {
        ("causal_mask", "line 0"): [2, 0, 1],
        ("causal_mask", "line 1"): [1, 1, 1],
        ("causal_mask", "line 2"): [1, 1, 1],
        ("apply_mask", "line 0"): [1, 0, 0],  # the others' version of the lesson lacks it
    }
    assert "0.67" in outline_of(render(data)).text


def test_a_misconception_counts_once_a_student(small_class: Lesson) -> None:
    words = Belief("a", "The same belief.", "The same hint.", ("line 0", "line 1"))
    beliefs = [words, replace(words, name="b"), replace(words, belief="Another belief.")]
    wrong = verdict("causal_mask", False, False)
    data = class_of(
        small_class,
        *(submission(f"{n}", replace(wrong, beliefs=(each,))) for n, each in enumerate(beliefs)),
    )
    found = [(wrong.what, n) for wrong, n in misconceptions(data)]
    assert found == [("The same belief.", 2), ("Another belief.", 1)]


def test_answers_in_words_have_lines_of_their_own(small_class: Lesson) -> None:
    answers = {"a": (SCORED, 2.0), "b": (SCORED, 1.5), "c": (WAITING, 0.0), "d": (EMPTY, 0.0)}
    handed = [
        (student, [*rows, Row(student.name, "why_zero", "", *answers[student.name], 2.0)])
        for student, rows in (submission(name, verdict("causal_mask", True)) for name in answers)
    ]
    data = class_of(replace(small_class, written=(Written("why_zero", 2.0),)), *handed)
    page = outline_of(render(data))
    assert page.faults() == []
    assert (2, "Written answers") in page.headings
    assert "why_zero2\n2111.75\n2 (1 ×), 1.5 (1 ×)" in page.text  # noqa: RUF001
    head, rows = tables(data)["lines"]
    found = [dict(zip(head, row, strict=True)) for row in rows if row[1] == "why_zero"]
    assert {row["student"]: (row["state"], row["points"]) for row in found} == answers


def test_a_lesson_without_questions_has_no_section_for_them(small_class: Lesson) -> None:
    assert "Written answers" not in render(read_class(small_class))


def hostile(small_class: Lesson) -> ClassData:
    bad = Belief("x", "<script>1</script>", "<img src=x>", ("line 0",))
    return class_of(
        small_class,
        submission("<b>x</b>", replace(verdict("causal_mask", False), beliefs=(bad,)),
                   problem="<script>2</script>"),
        submission("=cmd|' /C calc'!A0", verdict("causal_mask", True)),
        not_graded=("<i>gone</i>",),
    )  # fmt: skip


def test_nothing_in_a_submission_becomes_markup(small_class: Lesson) -> None:
    page = render(hostile(small_class))
    for text in ("<script", "<b>x", "<img src=x", "<i>gone"):
        assert text not in page
    assert "&lt;script&gt;2" in page


def test_no_cell_of_a_table_is_a_formula(small_class: Lesson, tmp_path: Path) -> None:
    for name, (head, rows) in tables(hostile(small_class)).items():
        write_table(tmp_path / name, head, rows)
        with (tmp_path / name).open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell[:1] in "=+@" and cell]


KNOWN = Belief("known", "A belief.", "A hint.", ("line 0", "line 1"))


def test_what_cost_the_class_most_leads(small_class: Lesson) -> None:
    """A misconception has the points of its lines; what builds on a wrong exercise has none."""
    mistaken = replace(verdict("causal_mask", False, False, False), beliefs=(KNOWN,))
    later = verdict("tril_causal_weights", *[False] * 9)  # it needs causal_mask
    data = class_of(
        small_class,
        submission("a", mistaken, later),
        submission("b", mistaken, later, verdict("apply_mask", False, True)),
        submission("c", verdict("apply_mask", False, True)),
        submission("d", verdict("apply_mask", True, False, attempted=False)),
    )
    found = [
        (topic.exercise, topic.what, {row.student for row in rows}, sum(row.worth for row in rows))
        for topic, rows in teach_again(data)
    ]
    assert found == [
        ("causal_mask", "A belief.", {"a", "b"}, 4.0),
        ("causal_mask", "line 2", {"a", "b"}, 2.0),
        ("apply_mask", "line 0", {"b", "c"}, 2.0),
    ]
    page = outline_of(render(data))
    assert [text for _, text in page.headings[1:4]] == ["Teach again", "Talk to", "Exercises"]
    assert "2 students, 4 points in all. Hint: A hint." in " ".join(page.text.split())
    assert "To read: 2 The triangle" in page.text


def test_headings_are_those_of_the_lesson(small_class: Lesson) -> None:
    parts = parts_of(small_class)
    assert parts["future_influence"] == "3 Does it leak?"
    assert {exercise.name for exercise in small_class.exercises} <= set(parts)


def test_whom_to_talk_to(small_class: Lesson) -> None:
    wrong = verdict("causal_mask", True, False)
    idle = verdict("causal_mask", False, attempted=False)
    data = class_of(
        small_class,
        submission("well", verdict("causal_mask", True, True)),
        submission("bad", idle, problem="The file is empty.", broken=True),
        submission("slow", wrong, problem="The notebook ran longer than 300 s."),
        absent=("gone",),
    )
    talk = talk_to(data)
    assert talk == {
        "without a submission here": [("gone", "")],
        "submitted a broken file": [("bad", "The file is empty.")],
        "have a notebook that could not be graded whole": [
            ("slow", "The notebook ran longer than 300 s.")
        ],
    }
    assert "gone" in outline_of(render(data)).text
    anonymous = outline_of(render(without_names(data), anonymous=True))
    assert "1 without a submission here" in anonymous.text
    assert anonymous.faults() == []


def test_who_is_absent_is_read_from_the_gradebook(own_class: Lesson) -> None:
    with gradebook_of(own_class.root) as gradebook:
        gradebook.add_student("gone", first_name="Gus", last_name="Away")
    data = read_class(own_class)
    assert data.absent == ("gone",)
    assert "Gus Away (gone)" in outline_of(render(data)).text
    anonymous = outline_of(render(without_names(data), anonymous=True)).text
    assert "Gus" not in anonymous
    assert "gone" not in anonymous


def test_broken_files_are_left_out(small_class: Lesson) -> None:
    idle = verdict("causal_mask", False, attempted=False)
    half = submission("half", verdict("causal_mask", True, False), share=0.5)
    bad = submission("bad", idle, problem="Broken.", broken=True)
    data = class_of(small_class, half, bad)
    text = " ".join(outline_of(render(data)).text.split())
    assert "50% mean" in text
    assert "1 broken, left out here" in text
    assert means(data) == {"causal_mask": 0.5}
    counts = count(data)
    assert (counts["causal_mask", "", "partly"], counts["causal_mask", "", "not tried"]) == (1, 0)


def test_on_a_full_disk_the_last_report_stays_and_is_named(
    own_class: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_report(own_class)
    before = page.read_bytes()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = run(own_class.root, "report", LESSON)
    assert result.output == f"Error: {page}: No space left on device\n"
    assert page.read_bytes() == before


def test_the_terminal_has_the_mean_of_the_report(own_class: Lesson) -> None:
    """Of eve there is no notebook."""
    said = run(own_class.root, "grade", "--student", "ada", *NO_WALL).output
    mean = re.search(r"mean \d+%", outline_of(write_report(own_class).read_text()).text)
    assert mean
    assert f"{mean[0]} of 13 points (1 broken left out)" in said


def test_a_class_of_broken_files_has_no_mean(small_class: Lesson) -> None:
    idle = verdict("causal_mask", False, attempted=False)
    data = class_of(small_class, submission("bad", idle, problem="Broken.", broken=True))
    page = outline_of(render(data))
    assert page.faults() == []
    assert "no students" in page.text


@nightly
def test_two_thousand_students_on_one_page(small_class: Lesson) -> None:
    data = made_up(replace(small_class, written=(Written("why", 2.0),)), 2000)
    page: Outline = outline_of(render(data))
    assert page.faults() == []
    assert re.findall(r"Heatmap of (\d+) rubric lines by", page.text) == ["56"]
    assert page.tags.count("td") < 40_000  # a cell for every line would be 100,000


def test_without_names_the_order_is_by_score(small_class: Lesson) -> None:
    data = class_of(
        small_class,
        submission("weak", verdict("causal_mask", False)),
        submission("strong", verdict("causal_mask", True), problem="jane wrote nothing",
                   cause="the file is empty"),
        not_graded=("missing",),
    )  # fmt: skip
    found = without_names(data)
    assert [(each.name, each.score) for each in found.students] == [
        ("student 1", 1.0),
        ("student 2", 0.0),
    ]
    assert [(row.student, row.state) for row in found.rows] == [
        ("student 2", "wrong"),
        ("student 1", "right"),
    ]
    assert found.students[0].problem == "the file is empty"
    assert found.not_graded == ("submission 1",)
