"""The page a student gets: what it says, how it sounds, and what it never shows."""

import html
import re
from datetime import datetime, timedelta

import nbformat
import pytest
from classes import file_of, gradebook_of, reference_answers
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from screen_reader import outline_of
from small_class import LESSON, NOTEBOOK

from autograde.course.config import convert, course_config
from autograde.course.lessons import Lesson
from autograde.grading.feedback import page_of
from autograde.grading.record import Record, write_record

STUDENTS = ("ada", "bob", "zoe", "eve")


def page(lesson: Lesson, student: str) -> str:
    return file_of(lesson, student, "feedback").read_text()


def words(lesson: Lesson, student: str) -> str:
    return " ".join(outline_of(page(lesson, student)).text.split())


@pytest.mark.parametrize("student", STUDENTS)
def test_it_can_be_listened_to(small_class: Lesson, student: str) -> None:
    assert outline_of(page(small_class, student)).faults() == []


@pytest.mark.parametrize("student", STUDENTS)
def test_it_holds_no_address_and_nobody_else(small_class: Lesson, student: str) -> None:
    text = re.sub(r"base64,[^\"]*", "", page(small_class, student))
    text = text.replace("a link (https://example.org/x)", "")  # bob's words
    assert "//" not in re.sub(r"/\*.*?\*/", "", text.replace("</", "<"))
    assert "<script" not in text
    assert set(re.findall(r"\w+", text)).isdisjoint(set(STUDENTS) - {student})


def test_it_says_whose_it_is_and_when_it_was_graded(
    small_class: Lesson, graded_by_hand: Lesson
) -> None:
    path = file_of(small_class, "bob", "autograded")
    date = nbformat.read(path, as_version=4).metadata["autograde"]["date"]
    assert abs(datetime.now() - datetime.fromisoformat(date)) < timedelta(days=2)
    assert f"bob, graded on {date}." in words(small_class, "bob")
    # the gradebook has learned the names after that page was written
    assert f"Bob Müller, jr. (bob), graded on {date}." in words(graded_by_hand, "bob")


def test_a_wrong_line_has_its_reason(small_class: Lesson) -> None:
    said = words(small_class, "bob")
    assert "Feedback: The causal mask" in said
    assert re.search(r"causal_mask: \d.* of 2 points", said)
    assert re.search(r"✗.*causal_mask\(.*, expected ", said)


def test_a_misconception_has_its_hint(small_class: Lesson) -> None:
    said = words(small_class, "bob")
    assert "This result usually comes from assuming that diagonal=1 means" in said
    assert "Hint: " in said


def test_the_part_to_read_again_is_the_one_above_the_exercise(small_class: Lesson) -> None:
    text = page(small_class, "bob")
    (anchor, title), *_ = re.findall(r'Read again: <a href="#([^"]+)">([^<]+)</a>', text)
    assert re.match(r"\d \w", title)
    assert re.search(rf'<h\d id="{anchor}">{re.escape(title)}</h\d>', text)
    assert 'href="#cell-causal_mask"' in text


def test_who_was_right_and_nobody_else_reads_another_way_to_write_it(small_class: Lesson) -> None:
    assert words(small_class, "ada").count("Another way to write it") == 7
    sections = re.split('<section class="exercise ', page(small_class, "bob"))[1:]
    assert {each[:5] for each in sections if "Another way" in each} == {"right"}
    assert {each[:5] for each in sections if "Another way" not in each} == {"wrong"}
    assert "torch.nan_to_num(weights" in words(small_class, "ada")


def test_what_is_right_needs_no_reading_again(small_class: Lesson) -> None:
    assert "Read again" not in page(small_class, "ada")
    assert words(small_class, "ada").count("All lines are right") == 7


def test_only_what_counts_is_run_and_own_figures_have_words(small_class: Lesson) -> None:
    shown = r'<img src="data:image/png;[^"]*" alt="([^"]+)"'
    assert re.findall(shown, page(small_class, "bob")) == ["My own figure of the masked weights."]
    assert re.findall(shown, page(small_class, "ada")) == []
    for student in ("ada", "bob"):
        assert "The others show no output here." in words(small_class, student)


def test_the_references_code_is_not_there(small_class: Lesson) -> None:
    answers = " ".join(reference_answers(small_class).values())
    own = {line.strip() for line in answers.splitlines() if "return" in line and "(" in line}
    assert len(own) >= 5
    for student in ("zoe", "eve"):
        shown = html.unescape(re.sub(r"<[^>]+>", "", page(small_class, student)))
        assert [line for line in own if line in shown] == []
    shown = html.unescape(re.sub(r"<[^>]+>", "", page(small_class, "ada")))
    assert [line for line in own if line in shown]  # it is her answer; the search finds it


def test_a_file_that_is_no_notebook_says_so_first(small_class: Lesson) -> None:
    said = words(small_class, "eve")
    assert "0 of 13 points The file is not JSON" in said
    assert said.count("not JSON") == 1
    assert said.count("Not judged: see above.") == 7
    assert "wrong" not in said.partition("Your answer")[0]


def test_an_own_text_cell_keeps_its_words_alone(small_class: Lesson) -> None:
    text = page(small_class, "bob")
    assert "My own heading" in text
    assert "a link (https://example.org/x)" in text
    assert "<a" not in text.partition("My own heading")[2].partition("</p>")[0]
    assert text.count('id="exercises"') == 1


@pytest.fixture
def graded_by_hand(own_class: Lesson) -> Lesson:
    """bob's page after a person has looked at two of his exercises."""
    root = own_class.root
    with gradebook_of(root) as gradebook:
        gradebook.find_grade("test_causal_mask", NOTEBOOK, LESSON, "bob").manual_score = 0.75
        comment = gradebook.find_comment("causal_mask", NOTEBOOK, LESSON, "bob")
        comment.manual_comment = "Look at <b>row 0</b>."
        gradebook.find_submission_notebook(NOTEBOOK, LESSON, "bob").late_submission_penalty = 0.5
        gradebook.db.commit()
    config = course_config(root)
    config.CourseDirectory.student_id = "bob"
    config.CourseDirectory.assignment_id = LESSON
    config.GenerateFeedback.force = True
    convert(GenerateFeedback, config)
    return own_class


def test_what_was_written_by_hand_is_there(graded_by_hand: Lesson) -> None:
    said = words(graded_by_hand, "bob")
    assert "causal_mask: 0.75 of 1 point" in said
    assert "Scored by hand: 0.75 of 1 point; the rubric alone gives" in said
    assert "Comment: Look at <b>row 0</b>." in said
    assert "0.5 taken off for lateness" in said
    assert outline_of(page(graded_by_hand, "bob")).faults() == []


def notebook(*cells: NotebookNode) -> NotebookNode:
    nb = nbformat.v4.new_notebook(cells=list(cells))
    return write_record(Record(nb))


HEADINGS = {
    "# A\n## B\n### C": [2, 3, 4],
    "### A\n# B": [2, 2],
    "# A\n#### B\n# C\n## D": [2, 3, 2, 3],
    "# A\n### B\n### C\n## D": [2, 3, 3, 3],
    "###### A\n###### B\n###### C": [2, 2, 2],
}


@pytest.mark.parametrize("source", HEADINGS)
def test_headings_keep_their_order_below_the_pages_own(source: str) -> None:
    text = page_of(notebook(nbformat.v4.new_markdown_cell(source))).blocks[0].text
    assert [int(level) for level in re.findall(r"<h(\d) id", text)] == HEADINGS[source]


def code(source: str, **metadata: object) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(source)
    cell.metadata.update(metadata)  # a student's file may hold what nbformat refuses
    return cell


def test_code_that_was_not_run_is_folded() -> None:
    nb = notebook(code("1"), code("2"))
    nb.metadata["autograde"]["left_out"] = [nb.cells[1].id]
    assert [block.folded for block in page_of(nb).blocks] == [False, True]


def test_empty_cells_are_left_out_but_not_empty_answers() -> None:
    answer = code("", nbgrader={"grade_id": "f", "grade": False})
    blocks = page_of(notebook(code(" "), answer, code(""))).blocks
    assert [block.anchor for block in blocks] == ["cell-f"]


def test_a_written_answer_waits_until_it_is_graded() -> None:
    kind = {"grade": True, "solution": True, "grade_id": "why", "points": 2, "comment": "Good."}
    for score, waiting in ((None, 2.0), (1.5, 0.0)):
        cell = nbformat.v4.new_markdown_cell("Because.", metadata={"nbgrader": {**kind}})
        cell.metadata.nbgrader["score"] = score
        found = page_of(notebook(cell))
        assert found.waiting == waiting
        assert [(each.name, each.score) for each in found.graded] == [("why", score)]
        assert found.blocks[0].comment == "Good."
