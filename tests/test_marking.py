"""Marking by question: what the page shows, what it saves, and what it refuses to overwrite."""

import asyncio
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from classes import file_of, gradebook_of
from conftest import run
from jinja2 import DictLoader, Environment
from marking_class import LESSON, QUESTION, make_marking_class, put, row_of
from nbgrader.server_extensions.formgrader.handlers import template_path
from traitlets.config import Config

from autograde.course import CourseError, Lesson
from autograde.grading.gradebook import marks_of_class
from autograde.marking import page
from autograde.marking.answers import (
    Answer,
    BadMark,
    Changed,
    Mark,
    NoQuestion,
    Question,
    Seen,
    all_waiting,
    read_question,
    save,
)
from autograde.marking.page import read_seen

HOSTILE = '*words* `code` <script>window.evil = 1</script><em id="waiting" class="name">x</em>'
ANSWERS = {"ada": "Because it **moves**.", "bob": HOSTILE, "eve": "It is saved.", "zoe": ""}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    return make_marking_class(tmp_path_factory.mktemp("course"), ANSWERS)


@pytest.fixture
def lesson(made: Lesson, tmp_path: Path) -> Lesson:
    shutil.copytree(made.root, tmp_path, dirs_exist_ok=True)
    return replace(made, root=tmp_path)


def question_of(lesson: Lesson) -> Question:
    return read_question(lesson.root, LESSON, QUESTION)


def answer_of(lesson: Lesson, student: str) -> Answer:
    return next(each for each in question_of(lesson).answers if each.student == student)


def give(lesson: Lesson, answer: Answer, score: float | None, comment: str = "") -> Mark:
    seen = Seen(answer.grade, Mark(score, comment, False), answer.mark, answer.digest)
    return save(lesson.root, LESSON, QUESTION, seen)


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
    with pytest.raises(Changed) as refused:
        give(lesson, before, 0.0, "Bad.")
    assert refused.value.mark == Mark(2.0, "Good.", False)
    assert row_of(lesson, "ada") == (2.0, "Good.", False)
    seen = replace(before, mark=Mark(2.0, "Good.", False))
    assert give(lesson, seen, 0.0, "Bad.") == Mark(0.0, "Bad.", False)


@pytest.mark.parametrize(
    "before", [Mark(2.0, "Good.", True), Mark(2.0, "", False), Mark(None, "Good.", False)]
)
def test_each_part_of_a_mark_has_to_be_the_one_that_was_seen(lesson: Lesson, before: Mark) -> None:
    ada = answer_of(lesson, "ada")
    give(lesson, ada, 2.0, "Good.")
    with pytest.raises(Changed):
        give(lesson, replace(ada, mark=before), 1.0, "Other.")
    assert row_of(lesson, "ada") == (2.0, "Good.", False)


def test_of_two_who_save_at_the_same_time_one_is_refused(lesson: Lesson) -> None:
    for answer in question_of(lesson).answers:
        start = Barrier(2)

        def race(score: float, answer: Answer = answer, start: Barrier = start) -> float | None:
            start.wait()
            try:
                return give(lesson, answer, score).score
            except Changed:
                return None

        with ThreadPoolExecutor(2) as both:
            said = list(both.map(race, (1.0, 2.0)))
        (kept,) = (score for score in said if score is not None)
        assert row_of(lesson, answer.student) == (kept, None, False)


def test_a_mark_for_a_text_that_was_replaced_is_refused(lesson: Lesson) -> None:
    ada = answer_of(lesson, "ada")
    put(lesson, "ada", "Something else.")
    with pytest.raises(Changed) as refused:
        give(lesson, ada, 2.0)
    assert refused.value.mark is None
    assert row_of(lesson, "ada") == (None, None, True)


@pytest.mark.parametrize("score", [-0.5, 2.5])
def test_points_outside_the_scheme_are_refused(lesson: Lesson, score: float) -> None:
    with pytest.raises(BadMark, match="Between 0 and 2"):
        give(lesson, answer_of(lesson, "ada"), score)


def test_only_answers_to_this_question_are_marked(lesson: Lesson) -> None:
    with gradebook_of(lesson.root) as gradebook:
        notebook = gradebook.find_submission_notebook(lesson.notebook, LESSON, "ada")
        other = next(grade.id for grade in notebook.grades if grade.name != QUESTION)
    with pytest.raises(NoQuestion):
        give(lesson, replace(answer_of(lesson, "ada"), grade=other), 1.0)
    with pytest.raises(NoQuestion):
        read_question(lesson.root, LESSON, "nothing")


def test_a_broken_notebook_is_named(lesson: Lesson) -> None:
    path = file_of(lesson, "ada", "autograded")
    path.write_text("{}")
    with pytest.raises(CourseError, match=r"ada.* is not a notebook"):
        question_of(lesson)


GOOD = {
    "grade": "x",
    "digest": "y",
    "mark": {"score": 1, "comment": " words ", "waits": True},
    "before": {"score": None, "comment": "", "waits": True},
}


def test_what_the_page_sends_is_read() -> None:
    seen = read_seen(json.dumps(GOOD).encode())
    assert seen == Seen("x", Mark(1.0, "words", True), Mark(None, "", True), "y")


def mark_with(**other: object) -> dict[str, object]:
    return {**GOOD, "mark": {**GOOD["mark"], **other}}  # type: ignore[dict-item]


BAD: dict[str, object] = {
    "no object": [],
    "no grade": {name: GOOD[name] for name in ("digest", "mark", "before")},
    "a word for a score": mark_with(score="one"),
    "no number": mark_with(score=float("nan")),
    "a truth value": mark_with(score=True),
    "a list for a comment": mark_with(comment=["x"]),
}


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
def test_anything_else_is_refused(sent: object) -> None:
    with pytest.raises(BadMark):
        read_seen(json.dumps(sent).encode())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["01_self_attention"], "has no question to answer in words"),
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
    with pytest.raises(NoQuestion, match="c has no question"):
        page._first(waiting, "c")


async def _started(environment: Environment) -> None:
    settings = {
        "nbgrader_jinja2_env": environment,
        "nbgrader_formgrader": SimpleNamespace(
            config=Config(HTMLExporter={"extra_template_basedirs": [template_path]})
        ),
        "marking": Path(),
    }
    app: Any = SimpleNamespace(web_app=SimpleNamespace(settings=settings))
    await page._start_jupyter_server_extension(app)


def test_formgrader_gets_a_link() -> None:
    environment = Environment(  # noqa: S701 (nbgrader's own does not escape, either)
        loader=DictLoader({"gradebook_assignments.tpl": "{% block messages %}{% endblock %}"})
    )
    with ThreadPoolExecutor(1) as thread:  # the browser's tests have a loop in this one
        thread.submit(asyncio.run, _started(environment)).result()
    said = environment.get_template("gradebook_assignments.tpl").render(base_url="/x")
    assert '<a href="/x/marking"' in said
