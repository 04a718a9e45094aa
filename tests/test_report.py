"""The class report: what it says of a class, with names and without, as a page and as CSV."""

import csv
import errno
import gc
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from big_class import made_up
from classes import LESSON, NO_WALL, file_of, gradebook_of
from conftest import run
from nightly import nightly
from screen_reader import Outline, outline_of

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, Lesson, Written, lessons
from autograde.grader import grader_of
from autograde.grading.gradebook import open_gradebook
from autograde.lms.spreadsheet import write_table
from autograde.report.actions import parts_of, talk_to, teach_again
from autograde.report.class_report import exercise_rows, line_rows, render, tables, write_report
from autograde.report.classdata import (
    EMPTY,
    WAITING,
    ClassData,
    GradedSubmission,
    _before,
    misconceptions,
    read_class,
    without_names,
)
from autograde.rubric.judge import Failure, LineVerdict, Verdict
from autograde.rubric.misconceptions import Belief

STUDENTS = ("ada", "bob", "eve", "zoe", "kim")


def test_a_class_is_read_from_gradebook_and_notebooks(small_class: Lesson) -> None:
    data = read_class(small_class)
    scores = {each.student: each.score for each in data.submissions}
    assert scores["ada"] == small_class.points
    assert 0 < scores["bob"] < scores["ada"]
    assert scores["eve"] == scores["zoe"] == 0
    assert {each.student for each in data.judged} == {"ada", "bob"}
    assert [each.student for each in data.submissions if each.untouched] == ["zoe"]
    assert data.not_graded == ("kim",)
    assert {each.version for each in data.submissions} == {grader_of("attention_course")}


def test_a_folder_whose_name_is_no_text_is_listed(small_class: Lesson) -> None:
    folder = Path(os.fsdecode(bytes(small_class.root) + b"/submitted/\xff\xfe"))
    (folder / small_class.name).mkdir(parents=True)
    try:
        assert read_class(small_class).not_graded == ("kim", "\ufffd\ufffd")
        assert "\ufffd\ufffd" in write_report(small_class).read_text()
    finally:
        shutil.rmtree(folder)


def test_known_mistakes_are_counted(small_class: Lesson) -> None:
    data = read_class(small_class)
    assert [(exercise, wrong.name, n) for exercise, wrong, n in misconceptions(data)] == [
        ("causal_mask", "one_too_many", 1)
    ]


def test_the_page_says_what_the_class_shows(small_class: Lesson) -> None:
    page = outline_of(write_report(small_class).read_text())
    assert page.headings[0] == (1, "Class report: The causal mask")
    for text in (
        "The file is not JSON", "Handed in, not graded.", "Handed in untouched: 1.",
        "there is none: fewer than 10 students", "Psychometrika",
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


def test_csv_holds_the_same(small_class: Lesson, tmp_path: Path) -> None:
    write_report(small_class, csv_folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"02_causal_mask-{name}.csv" for name in ("lines", "misconceptions", "students", "written")
    ]
    with (tmp_path / "02_causal_mask-lines.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    bobs = [row for row in lines if row["wrong"] == "1"]  # of two whose work was judged
    assert {(row["exercise"], row["right"], row["difficulty"]) for row in bobs} == {
        ("causal_mask", "1", "0.5"),
        ("tril_causal_weights", "1", "0.5"),  # it calls causal_mask
    }
    assert {row["right"] for row in lines if row not in bobs} == {"2"}


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


def submission(student: str, *verdicts: Verdict, **more: object) -> GradedSubmission:
    return GradedSubmission(
        student,
        score=sum(each.points for each in verdicts),
        verdicts={each.exercise: each for each in verdicts},
        **more,  # type: ignore[arg-type]
    )


def test_every_state_of_a_line_is_counted(small_class: Lesson) -> None:
    data = ClassData(
        small_class,
        (
            submission("a", verdict("causal_mask", True, False, False)),
            submission("b", verdict("causal_mask", True, True, True)),
            submission("died", replace(verdict("causal_mask", False, False, False), lines=tuple(
                LineVerdict(f"line {i}", False, 0.0, 1.0) for i in range(3)))),
            submission("c", verdict("causal_mask", False, False, False, attempted=False),
                       verdict("apply_mask", True)),
        ),
    )  # fmt: skip
    counts = [dict(row.counts) for row in line_rows(data)]
    assert counts == [
        {"right": 2, "not judged": 1},
        {"right": 1, "wrong": 1, "not judged": 1},
        {"right": 1, "wrong": 1, "not judged": 1},
        {"right": 1, "not judged": 2},
    ]
    assert [row.difficulty for row in line_rows(data)] == [2 / 3, 1 / 3, 1 / 3, 1 / 3]


def test_a_line_counts_over_the_students_whose_version_has_it(small_class: Lesson) -> None:
    two, three = (verdict("causal_mask", *[True] * lines) for lines in (2, 3))
    wrong = verdict("causal_mask", False, True, False)
    data = ClassData(
        small_class,
        tuple(submission(f"{n}", each) for n, each in enumerate([two] * 5 + [three, wrong] * 5)),
    )
    last = line_rows(data)[2]
    assert dict(last.counts) == {"right": 5, "wrong": 5}
    assert last.difficulty == 0.5
    assert last.discrimination == pytest.approx(1.0)


def test_variants_with_the_same_words_are_one_misconception(small_class: Lesson) -> None:
    words = Belief("a", "The same belief.", "The same hint.", ("line 0",))
    beliefs = [words, replace(words, name="b"), replace(words, belief="Another belief.")]
    data = ClassData(
        small_class,
        tuple(
            submission(each.name, replace(verdict("causal_mask", False), beliefs=(each,)))
            for each in beliefs
        ),
    )
    found = [(wrong.name, wrong.belief, n) for _, wrong, n in misconceptions(data)]
    assert found == [("a, b", "The same belief.", 2), ("a", "Another belief.", 1)]


def test_answers_in_words_have_lines_of_their_own(small_class: Lesson) -> None:
    answers = {"a": 2.0, "b": 1.5, "c": WAITING, "d": EMPTY}
    data = ClassData(
        replace(small_class, written=(Written("why_zero", 2.0),)),
        tuple(
            submission(student, verdict("causal_mask", True), written={"why_zero": answer})
            for student, answer in answers.items()
        ),
    )
    page = outline_of(render(data))
    assert page.faults() == []
    assert (2, "Written answers") in page.headings
    head, rows = tables(data)["written"]
    assert head == ["question", "points", "scored", "waiting", "no answer", "mean of the scored"]
    assert rows == [["why_zero", 2.0, 2, 1, 1, 1.75]]
    assert "2 (1 ×), 1.5 (1 ×)" in page.text  # noqa: RUF001
    head, rows = tables(data)["students"]
    assert head[-1] == "why_zero"
    assert [row[-1] for row in rows] == ["2", "1.5", "waiting", "no answer"]


def test_a_lesson_without_questions_has_no_section_for_them(small_class: Lesson) -> None:
    assert "Written answers" not in render(read_class(small_class))


def hostile(small_class: Lesson) -> ClassData:
    bad = Belief("x", "<script>1</script>", "<img src=x>", ())
    return ClassData(
        small_class,
        (
            submission("<b>x</b>", replace(verdict("causal_mask", False), beliefs=(bad,)),
                       problem="<script>2</script>"),
            submission("=cmd|' /C calc'!A0", verdict("causal_mask", True)),
        ),
        ("<i>gone</i>",),
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
    data = ClassData(
        small_class,
        (
            submission("a", mistaken, later),
            submission("b", mistaken, later, verdict("apply_mask", False, True)),
            submission("c", verdict("apply_mask", False, True)),
            submission("d", verdict("apply_mask", True, False, attempted=False)),
        ),
    )
    found = [(t.exercise, t.what, t.students, t.points) for t in teach_again(data)]
    assert found == [
        ("causal_mask", "A belief.", 2, 4.0),
        ("causal_mask", "line 2", 2, 2.0),
        ("apply_mask", "line 0", 2, 2.0),
    ]
    assert teach_again(data)[0].part == "2 The triangle"
    page = outline_of(render(data))
    assert [text for _, text in page.headings[1:4]] == ["Teach again", "Talk to", "Exercises"]
    assert "To read: 2 The triangle" in page.text


def test_headings_are_those_of_the_lesson(small_class: Lesson) -> None:
    parts = parts_of(small_class)
    assert parts["future_influence"] == "3 Does it leak?"
    assert {exercise.name for exercise in small_class.exercises} <= set(parts)


def test_whom_to_talk_to(small_class: Lesson) -> None:
    right, wrong = verdict("causal_mask", True, True), verdict("causal_mask", True, False)
    idle = verdict("apply_mask", False, attempted=False)
    lesson = replace(small_class, exercises=small_class.exercises[:1])  # 2 points
    data = ClassData(
        lesson,
        (
            submission("well", right, before=1.0),
            submission("fell", wrong, before=0.75),
            submission("near", wrong, before=0.74),
            submission("idle", right, idle),
            submission("bad", idle, problem="The file is empty."),
            submission("slow", wrong, problem="The notebook ran longer than 300 s."),
        ),
        absent=("gone",),
    )
    talk = talk_to(data)
    assert talk == {
        "without a submission here": [("gone", "")],
        "submitted a broken file": [("bad", "The file is empty.")],
        "have a notebook that could not be graded whole": [
            ("slow", "The notebook ran longer than 300 s.")
        ],
        "fell behind": [
            ("fell", "50% of the points, 75% in earlier lessons"),
            ("idle", "tried 1 of 2 exercises"),
        ],
        "handed in the same file as others": [],
    }
    assert "gone" in outline_of(render(data)).text
    anonymous = outline_of(render(without_names(data), anonymous=True))
    assert "1 without a submission here" in anonymous.text
    assert anonymous.faults() == []


def test_who_handed_in_the_same_file_is_said(own_class: Lesson) -> None:
    """Not of files in which nothing was tried: they are all alike."""
    ada, bob = file_of(own_class, "ada"), file_of(own_class, "bob")
    bob.write_bytes(ada.read_bytes())
    data = read_class(own_class)
    title = "handed in the same file as others"
    assert talk_to(data)[title] == [
        ("ada", f"as {data.name_of('bob')}"),
        ("bob", f"as {data.name_of('ada')}"),
    ]
    page = outline_of(render(data))
    assert "It may be the work of a group" in page.text
    assert page.faults() == []
    anonymous = without_names(data)
    assert talk_to(anonymous)[title][0] == ("student 1", "as student 2")
    for each in (ada, bob):  # each kept the file that was handed out beside the own work
        each.with_stem(f"{each.stem}-Copy1").write_bytes(
            each.read_bytes().replace(b"\n", b"\n ", each is ada)
        )
        each.write_bytes(own_class.released_notebook.read_bytes())
    assert talk_to(read_class(own_class))[title] == []
    ada.write_bytes(file_of(own_class, "zoe").read_bytes())
    assert talk_to(read_class(own_class))[title] == []


def test_who_is_absent_is_read_from_the_gradebook(own_class: Lesson) -> None:
    with gradebook_of(own_class.root) as gradebook:
        gradebook.add_student("gone", first_name="Gus", last_name="Away")
    data = read_class(own_class)
    assert data.absent == ("gone",)
    assert "Gus Away (gone)" in outline_of(render(data)).text
    anonymous = outline_of(render(without_names(data), anonymous=True)).text
    assert "Gus" not in anonymous
    assert "gone" not in anonymous


def test_the_share_in_earlier_lessons_is_read_from_the_gradebook(small_class: Lesson) -> None:
    """As if lesson 02 had been graded before lesson 03: its shares are those of before."""
    next_lesson = lessons(small_class.root)["03_inf_mask"]
    with open_gradebook(course_config(small_class.root)) as gradebook:
        found = _before(next_lesson, gradebook)
    data = read_class(small_class)
    scores = {each.student: (each.score + each.penalty) / 13 for each in data.submissions}
    assert found == pytest.approx({name: scores[name] for name in ("ada", "bob")})


def test_unmarked_answers_and_broken_files_are_kept_apart(small_class: Lesson) -> None:
    lesson = replace(
        small_class,
        exercises=(replace(small_class.exercise("causal_mask"), points=2.0),),
        written=(Written("why", 2.0),),
    )
    half = submission("half", verdict("causal_mask", True, False), by_hand=2.0)
    # an answer that was scored 1 and is another by now
    again = replace(half, student="again", score=2.0, held=1.0)
    bad = submission("bad", verdict("causal_mask", False, attempted=False), problem="Broken.")
    data = ClassData(lesson, (half, again, replace(half, by_hand=0.0), bad))
    assert [data.share(each) for each in data.submissions] == [0.5, 0.5, 0.25, None]
    text = outline_of(render(data)).text
    assert "mean 42%" in text
    assert "1 broken, left out here" in " ".join(text.split())
    (row, *_) = exercise_rows(data, line_rows(data))
    assert (row.mean, row.counts) == (0.5, {"partly": 3})


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
    bad = submission("bad", verdict("causal_mask", False, attempted=False), problem="Broken.")
    data = ClassData(small_class, (bad,))
    (line,) = line_rows(data)
    assert (line.difficulty, line.discrimination) == (None, None)
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
    best = [row.discrimination for row in line_rows(data)]
    assert best[0] is not None
    assert 0 < best[0] < 1


def test_without_names_the_order_is_by_score(small_class: Lesson) -> None:
    data = ClassData(
        small_class,
        (submission("weak", verdict("causal_mask", False)),
         submission("strong", verdict("causal_mask", True), problem="jane wrote nothing",
                    cause="the file is empty")),
        ("missing",),
    )  # fmt: skip
    found = without_names(data)
    assert [(each.student, each.score) for each in found.submissions] == [
        ("student 1", 1.0),
        ("student 2", 0.0),
    ]
    assert found.submissions[0].problem == "the file is empty"
    assert found.not_graded == ("submission 1",)
