"""Marking by question: what the page shows, what it saves, and what it refuses to overwrite."""

import asyncio
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from classes import file_of, gradebook_of
from conftest import run
from jinja2 import DictLoader, Environment
from marking_class import LESSON, QUESTION, make_marking_class, put, row_of
from nbgrader.server_extensions.formgrader.handlers import template_path
from traitlets.config import Config

from autograde.course.lessons import CourseError, Lesson
from autograde.grading.gradebook import marks_of_class
from autograde.grading.record import METADATA_KEY
from autograde.marking import answers, page
from autograde.marking.answers import (
    Mark,
    Refused,
    Sent,
    WrittenAnswer,
    WrittenQuestion,
    all_waiting,
    read_question,
    save,
)
from autograde.marking.page import read_sent

HOSTILE = '*words* `code` <script>window.evil = 1</script><em id="waiting" class="name">x</em>'
ANSWERS = {"ada": "Because it **moves**.", "bob": HOSTILE, "eve": "It is saved.", "zoe": ""}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return make_marking_class(tmp_path_factory.mktemp("course"), ANSWERS)


@pytest.fixture
def lesson(made: Lesson, tmp_path: Path) -> Lesson:
    shutil.copytree(made.root, tmp_path, dirs_exist_ok=True)
    return replace(made, root=tmp_path)


def question_of(lesson: Lesson) -> WrittenQuestion:
    return read_question(lesson.root, LESSON, QUESTION)


def answer_of(lesson: Lesson, student: str) -> WrittenAnswer:
    return next(each for each in question_of(lesson).answers if each.student == student)


def give(lesson: Lesson, answer: WrittenAnswer, score: float | None, comment: str = "") -> Mark:
    mark, _ = save(lesson.root, LESSON, QUESTION, Sent(answer.grade, answer.seen, score, comment))
    return mark


def test_a_question_has_its_scheme_and_every_answer(lesson: Lesson) -> None:
    found = question_of(lesson)
    assert {answer.student for answer in found.answers} == {"ada", "bob", "eve"}
    assert (found.waiting, found.empty) == (3, 1)
    assert "Two halves, one point each" in found.scheme
    assert "Two halves, one point each" not in found.html
    assert "MARK SCHEME" not in found.html + found.scheme
    assert QUESTION in found.html
    assert all_waiting(lesson.root) == {
        (LESSON, QUESTION): 3,
        ("06_multi_head", "heads_written"): 0,
    }


def test_an_answer_that_may_stand_elsewhere_is_said_to(lesson: Lesson) -> None:
    put(lesson, "ada", "")  # as when its cell was deleted and put back: it waits, and is empty
    assert "Look for an answer in the whole notebook" in answer_of(lesson, "ada").html


def test_a_students_text_is_harmless(lesson: Lesson) -> None:
    assert "<strong>moves</strong>" in answer_of(lesson, "ada").html
    html = answer_of(lesson, "bob").html
    for text in ("script", "evil", "id=", "class="):
        assert text not in html
    assert "<em>words</em>" in html
    # a notebook that was put there by something else than our grader
    path = file_of(lesson, "bob", "autograded")
    path.write_text(path.read_text().replace("words", "<img src=x onerror=evil()>"))
    assert "onerror" not in answer_of(lesson, "bob").html


def test_a_mark_is_in_the_gradebook_as_formgrader_would_put_it(lesson: Lesson) -> None:
    ada = answer_of(lesson, "ada")
    assert give(lesson, ada, 1.5, "Good.") == Mark(1.5, "Good.", False)
    assert row_of(lesson, "ada") == (1.5, "Good.", False)
    with gradebook_of(lesson.root) as gradebook:
        assert gradebook.find_submission(LESSON, "ada").score == 1.5
        assert not gradebook.find_submission(LESSON, "ada").needs_manual_grade
        marks = marks_of_class(gradebook, lesson, "ada")["ada"]
    assert (marks.score(QUESTION), marks.comment(QUESTION)) == (1.5, "Good.")
    assert question_of(lesson).waiting == 2
    assert question_of(lesson).comments == ["Good."]
    # taken back, it waits again
    assert give(lesson, answer_of(lesson, "ada"), None) == Mark(None, "", True)
    assert row_of(lesson, "ada") == (None, None, True)


def test_a_mark_that_nobody_saw_is_not_overwritten(lesson: Lesson) -> None:
    before = answer_of(lesson, "ada")
    give(lesson, before, 2.0, "Good.")
    with pytest.raises(Refused, match="somebody has marked this"):
        give(lesson, before, 0.0, "Bad.")
    assert row_of(lesson, "ada") == (2.0, "Good.", False)
    assert give(lesson, answer_of(lesson, "ada"), 0.0, "Bad.") == Mark(0.0, "Bad.", False)


def test_of_two_marks_in_the_same_moment_the_first_stays(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = answer_of(lesson, "ada")

    def meanwhile(*asked: Any) -> Any:  # the second has read the answer, and not yet saved its mark
        monkeypatch.undo()
        give(lesson, ada, 2.0, "Good.")
        return given(*asked)

    given = answers._given
    monkeypatch.setattr(answers, "_given", meanwhile)
    with pytest.raises(Refused, match="somebody has marked this"):
        give(lesson, ada, 0.0, "Bad.")
    assert row_of(lesson, "ada") == (2.0, "Good.", False)


def test_who_marks_again_has_seen_what_was_saved(lesson: Lesson) -> None:
    ada = answer_of(lesson, "ada")
    for score in (2.0, 1.0, None):
        sent = Sent(ada.grade, ada.seen, score, "")
        mark, seen = save(lesson.root, LESSON, QUESTION, sent)
        assert mark == Mark(score, "", score is None)
        ada = replace(ada, seen=seen)


def test_a_mark_for_a_text_that_was_replaced_is_refused(lesson: Lesson) -> None:
    ada = answer_of(lesson, "ada")
    put(lesson, "ada", "Something else.")
    with pytest.raises(Refused, match="it was graded again"):
        give(lesson, ada, 2.0)
    assert row_of(lesson, "ada") == (None, None, True)


@pytest.mark.parametrize("score", [-0.5, 2.5, float("nan"), float("inf")])
def test_points_outside_the_scheme_are_refused(lesson: Lesson, score: float) -> None:
    with pytest.raises(Refused, match="Between 0 and 2"):
        give(lesson, answer_of(lesson, "ada"), score)


def test_only_answers_to_this_question_are_marked(lesson: Lesson) -> None:
    with gradebook_of(lesson.root) as gradebook:
        notebook = gradebook.find_submission_notebook(lesson.notebook, LESSON, "ada")
        other = next(grade.id for grade in notebook.grades if grade.name != QUESTION)
    with pytest.raises(Refused):
        give(lesson, replace(answer_of(lesson, "ada"), grade=other), 1.0)
    with pytest.raises(Refused):
        read_question(lesson.root, LESSON, "nothing")


def test_a_broken_notebook_is_named(lesson: Lesson) -> None:
    path = file_of(lesson, "ada", "autograded")
    path.write_text("{}")
    with pytest.raises(CourseError, match=r"ada.* is not a notebook"):
        question_of(lesson)


GOOD = {"grade": "x", "seen": "y", "score": 1, "comment": " words "}


def test_what_the_page_sends_is_read() -> None:
    assert read_sent(json.dumps(GOOD).encode()) == Sent("x", "y", 1.0, "words")


BAD: dict[str, object] = {
    "no object": [],
    "no grade": {name: GOOD[name] for name in ("seen", "score", "comment")},
    "a word for a score": {**GOOD, "score": "one"},
    "a list for a comment": {**GOOD, "comment": ["x"]},
}


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
def test_anything_else_is_refused(sent: object) -> None:
    with pytest.raises(Refused):
        read_sent(json.dumps(sent).encode())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["01_self_attention"], "has no question to mark by hand"),
        (["01"], "there is no lesson '01'"),
    ],
)
def test_the_command_wants_a_lesson_with_questions(
    lesson: Lesson, arguments: list[str], said: str
) -> None:
    result = run(lesson.root, "mark", *arguments)
    assert (result.exit_code, said in result.output) == (1, True), result.output


def test_the_first_question_that_waits_comes_first() -> None:
    waiting = {("a", "x"): 0, ("a", "y"): 2, ("b", "z"): 1}
    assert page._first(waiting, None) == ("a", "y")
    assert page._first(waiting, "b") == ("b", "z")
    assert page._first({("a", "x"): 0}, "a") == ("a", "x")
    with pytest.raises(Refused, match="c has no question"):
        page._first(waiting, "c")


async def _started(environment: Environment) -> Any:
    settings = {
        "nbgrader_jinja2_env": environment,
        "nbgrader_formgrader": SimpleNamespace(
            config=Config(HTMLExporter={"extra_template_basedirs": [template_path]})
        ),
        "marking": Path(),
    }
    app: Any = SimpleNamespace(web_app=SimpleNamespace(settings=settings))
    await page._start_jupyter_server_extension(app)
    return settings["nbgrader_exporter"]


def test_formgraders_page_folds_rubrics_and_code_that_was_not_run() -> None:
    with ThreadPoolExecutor(1) as thread:
        exporter = thread.submit(asyncio.run, _started(Environment())).result()  # noqa: S701
    cells = [nbformat.v4.new_code_cell(text) for text in ("answer", "left_out", "rubric")]
    cells[2].metadata.nbgrader = {"grade": True, "solution": False, "grade_id": "f", "points": 1}
    nb = nbformat.v4.new_notebook(cells=cells, metadata={METADATA_KEY: {"left_out": [cells[1].id]}})
    html, _ = exporter.from_notebook_node(nb, resources={"index": 0, "total": 1})
    folded = dict(re.findall(r"<summary>(.*?)</summary>.*?<span></span><.*?>(.*?)<", html, re.S))
    assert folded == {"The code of this cell": "left_out", "The rubric": "rubric"}


def test_formgrader_gets_a_link() -> None:
    environment = Environment(  # noqa: S701 (nbgrader's own does not escape, either)
        loader=DictLoader({"gradebook_assignments.tpl": "{% block messages %}{% endblock %}"})
    )
    with ThreadPoolExecutor(1) as thread:  # the browser's tests have a loop in this one
        thread.submit(asyncio.run, _started(environment)).result()
    said = environment.get_template("gradebook_assignments.tpl").render(base_url="/x")
    assert '<a href="/x/marking"' in said
