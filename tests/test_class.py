"""The sample class, graded once: scores, messages about broken files, nbgrader's own commands."""

import csv
import html
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from classes import (
    NO_WALL,
    file_of,
    fill,
    gradebook_of,
    make_course,
    put_file,
    reference_answers,
    scores,
)
from conftest import HERE, program, run
from nbgrader.converters import Autograde
from nightly import few
from traitlets.config import Config

from autograde.course.config import convert, course_config
from autograde.course.lessons import CourseError, lessons
from autograde.grading.limits import LIMITS
from autograde.grading.record import read_record
from autograde.grading.running.outputs import reduced
from autograde.grading.state import one_run
from autograde.grading.submission import Place, graded_notebook
from autograde.sandbox import wall
from autograde.sandbox.wall import missing

sys.path.insert(0, str(HERE / "examples"))
from make_class import CHANGES, FILES, make_class

UNWALLED = ["--Run.wall=False"] if missing() else []

LESSON, NOTEBOOK = "01_self_attention", "self_attention"

SCORES = {
    "perfect_reference": 18, "perfect_1": 18, "perfect_2": 18,
    "unfinished_untouched": 0, "unfinished_half": 9, "unfinished_nearly": 15,
    "deleted_rubric": 18, "doubled_rubric": 18, "edited_rubric": 18, "answer_as_markdown": 18,
    "syntax_error": 15, "endless_loop": 15, "process_ended": 15, "out_of_memory": 15,
    "megabytes_of_output": 15,
    "not_json": 0, "not_a_notebook": 0, "empty_file": 0, "wrong_name": 18, "no_notebook": 0,
}  # fmt: skip

WORDS = {
    "unfinished_untouched": "Not written yet",
    "syntax_error": "The answer cell raised SyntaxError: expected ':' (line 1)",
    "endless_loop": "did not end (in line 2: while True:).",
    "process_ended": "The kernel died in the cell that begins 'import os'",
    "out_of_memory": "The kernel died in the cell that begins 'import os, signal'",
    "megabytes_of_output": "[cut off]",
    "not_json": "The file is not JSON, so it is not a notebook",
    "not_a_notebook": "The file is JSON, but not a notebook.",
    "empty_file": "The file is empty.",
    "no_notebook": "self_attention.ipynb was not handed in (found: no notebook, only",
}


ENDLESS = {"transplant": "def transplant(*args):\n    while True:\n        pass"}
"""It takes as long as a cell may run, so the sample class, for people who try it, is without it."""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with the sample class and an endless loop, graded by `autograde grade`."""
    root = tmp_path_factory.mktemp("course")
    lesson = make_course(root, (), LESSON)
    make_class(lesson, root)
    put_file(lesson, "endless_loop", fill(lesson, reference_answers(lesson) | ENDLESS))
    command = (sys.executable, str(HERE / "tests" / "small_limits.py"), "grade", LESSON, *NO_WALL)
    result = program(*command, cwd=root)
    assert result.returncode == 0, result.stdout + result.stderr
    return root


def feedback(root: Path, student: str) -> str:
    page = (root / "feedback" / student / LESSON / f"{NOTEBOOK}.html").read_text()
    return html.unescape(page)


def test_every_student_has_a_score(graded: Path) -> None:
    found = scores(graded, LESSON)
    assert len(found) == 24
    assert {name: found[name] for name in SCORES} == pytest.approx(SCORES)
    for n in range(1, 5):
        assert 0 < found[f"partly_{n}"] < 18


def errors(notebook: Path) -> list[tuple[str, str]]:
    """Each error output of a notebook: how its cell begins, and the error's name."""
    return [
        (cell.source[:40], output.ename)
        for cell in nbformat.read(notebook, as_version=4).cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    ]


def test_the_lesson_runs_while_it_is_graded_as_it_did_when_built(graded: Path) -> None:
    name = f"{NOTEBOOK}.ipynb"
    built = errors(HERE / "solutions" / LESSON / name)
    assert errors(graded / "autograded" / "perfect_reference" / LESSON / name) == built


@pytest.mark.parametrize("student", WORDS)
def test_feedback_says_what_happened(graded: Path, student: str) -> None:
    assert WORDS[student] in feedback(graded, student)


@pytest.mark.parametrize(
    ("student", "note"),
    [
        ("deleted_rubric", "the cell is missing; the original is used"),
        ("doubled_rubric", "the cell is there twice; the last one is used"),
        ("edited_rubric", "the cell was changed; the original is used"),
    ],
)
def test_what_was_restored_is_noted(graded: Path, student: str, note: str) -> None:
    path = graded / "autograded" / student / LESSON / f"{NOTEBOOK}.ipynb"
    notes = nbformat.read(path, as_version=4).metadata["autograde"]["notes"]
    assert notes == {"test_transplant": [note]}


def test_answer_that_became_markdown_is_noted(graded: Path) -> None:
    path = graded / "autograded" / "answer_as_markdown" / LESSON / f"{NOTEBOOK}.ipynb"
    notes = nbformat.read(path, as_version=4).metadata["autograde"]["notes"]
    assert "treated as code" in notes["transplant"][0]


def test_partly_wrong_answers_get_partial_credit(graded: Path) -> None:
    assert any(round(score % 1, 3) for score in scores(graded, LESSON).values())


def test_known_mistakes_get_a_name(graded: Path) -> None:
    pages = "".join(feedback(graded, f"partly_{n}") for n in range(1, 5))
    assert "This result usually comes from assuming that" in pages
    assert "Hint:" in pages


def test_feedback_works_offline(graded: Path) -> None:
    for path in (graded / "feedback").rglob("*.html"):
        page = path.read_text()
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", page), path
        assert "<script" not in page


def test_originals_are_left_alone(graded: Path) -> None:
    submitted = graded / "submitted"
    assert (submitted / "wrong_name" / LESSON / "homework (1).ipynb").is_file()
    assert (submitted / "not_json" / LESSON / f"{NOTEBOOK}.ipynb").read_bytes() == FILES["not_json"]


def test_no_lesson_text_travels(graded: Path) -> None:
    for folder in ("notebooks", "autograded", "feedback"):
        for path in (graded / folder).rglob("*"):
            assert path.suffix != ".py", path
            assert path.name not in ("variants", "tolerances.json"), path


SAME = {"partly_2", "edited_rubric", "not_json"}


WAYS = {
    "nbgrader": ("nbgrader", "autograde", LESSON, "--force", *UNWALLED),
    "no wall": ("autograde", "grade", LESSON, "--no-wall"),
}


@pytest.mark.parametrize("command", few(WAYS, "nbgrader"))
def test_other_ways_of_grading_give_the_same_scores(
    command: tuple[str, ...], graded: Path, tmp_path: Path
) -> None:
    before = scores(graded, LESSON)
    root = tmp_path / "course"
    shutil.copytree(graded, root)
    for folder in (root / "submitted").iterdir():
        if folder.name not in SAME:
            shutil.rmtree(folder)
    with gradebook_of(root) as gradebook:
        for student in SAME:
            for notebook in gradebook.find_submission(LESSON, student).notebooks:
                for grade in notebook.grades:
                    grade.auto_score = -1
        gradebook.db.commit()
    lesson = lessons(root)[LESSON]
    nb = nbformat.read(file_of(lesson, "partly_2"), as_version=4)
    nb.cells.append(nbformat.v4.new_markdown_cell("long " * LIMITS.text_cell_chars))
    copied = put_file(lesson, "partly_2", nb)
    copied.rename(copied.with_stem(f"{NOTEBOOK}-Copy1"))
    put_file(lesson, "partly_2", lesson.released_notebook.read_bytes())
    result = program(*command, cwd=root)
    assert result.returncode == 0, result.stderr
    assert scores(root, LESSON) == pytest.approx(before)
    with graded_notebook(Place("partly_2", lesson)) as notebook:
        chosen, long = read_record(notebook).remarks
    assert f"'{NOTEBOOK}-Copy1.ipynb' was graded, because it has the most answers" in chosen
    assert long == "A long text was cut off."
    assert ("NO WALL: students' code ran as you" in result.stdout) == ("--no-wall" in command)


def test_without_a_wall_it_refuses_and_says_how_to_get_one(graded: Path) -> None:
    nowhere = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    command = [sys.executable, "-m", "autograde.cli", "grade", LESSON, "--regrade"]
    result = subprocess.run(
        command, cwd=graded, env=nowhere, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    for words in ("bubblewrap is not installed", "apt-get install bubblewrap", "--no-wall"):
        assert words in result.stderr


def test_where_ubuntu_forbids_namespaces_it_says_that_and_not_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: no' >&2; exit 1")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "restricts").write_text("1\n")
    monkeypatch.setattr(wall, "RESTRICTED", tmp_path / "restricts")
    monkeypatch.setattr(wall, "root_may_mount", lambda: True)  # or it would become another user
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    said = missing.__wrapped__()
    assert "Ubuntu" in said
    assert "wall.md" in said
    assert "setting up uid map" in said
    assert "apt-get" not in said


def test_nbgrader_feedback_and_export(graded: Path, tmp_path: Path) -> None:
    result = program(
        "nbgrader", "generate_feedback", LESSON, "--student", "partly_1", "--force", cwd=graded
    )
    assert result.returncode == 0, result.stderr
    assert "wrong" in feedback(graded, "partly_1")
    target = tmp_path / "grades.csv"
    assert program("nbgrader", "export", "--to", str(target), cwd=graded).returncode == 0
    table = {row["student_id"]: row for row in csv.DictReader(target.read_text().splitlines())}
    assert {who: float(row["score"]) for who, row in table.items()} == pytest.approx(
        scores(graded, LESSON)
    )


def copy_for_nbgrader(graded: Path, root: Path) -> Config:
    """Copy the graded class; return the configuration of nbgrader's command on one submission."""
    shutil.copytree(graded, root)
    config = course_config(root)
    config.CourseDirectory.update(assignment_id=LESSON, student_id="perfect_2")
    config.Autograde.force = True
    config.Run.wall = not missing()
    return config


def test_nbgrader_does_not_keep_the_time_of_the_submission_before(
    graded: Path, tmp_path: Path
) -> None:
    root = tmp_path / "course"
    config = copy_for_nbgrader(graded, root)
    with gradebook_of(root) as gradebook:
        late = datetime(2026, 3, 1)
        gradebook.update_or_create_submission(LESSON, "perfect_2", timestamp=late)
    convert(Autograde, config)
    with gradebook_of(root) as gradebook:
        assert gradebook.find_submission(LESSON, "perfect_2").timestamp is None


def test_nbgrader_refuses_to_grade_beside_a_run(graded: Path, tmp_path: Path) -> None:
    root = tmp_path / "course"
    config = copy_for_nbgrader(graded, root)
    with one_run(root), pytest.raises(CourseError, match="is being graded already"):
        convert(Autograde, config)
    assert scores(root, LESSON) == scores(graded, LESSON)


def test_manual_score_survives_and_wants_no_second_look(graded: Path) -> None:
    name = "test_attention_scores"
    with gradebook_of(graded) as gradebook:
        grade = gradebook.find_grade(name, NOTEBOOK, LESSON, "unfinished_half")
        grade.manual_score = 1.5
        gradebook.db.commit()
    student = ("--student", "unfinished_half")
    result = run(graded, "grade", LESSON, "--workers", "1", *NO_WALL, *student)
    assert result.exit_code == 0, result.output
    with gradebook_of(graded) as gradebook:
        grade = gradebook.find_grade(name, NOTEBOOK, LESSON, "unfinished_half")
        assert grade.manual_score == 1.5
        assert not grade.needs_manual_grade
        grade.manual_score = None
        gradebook.db.commit()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grade", "07_no_such_lesson"], "there is no lesson '07_no_such_lesson'"),
        (["grade", LESSON, "--student", "nobody"], "no student 'nobody'"),
        (["build", "nothing"], "there is no lesson 'nothing'"),
        (["check", "nothing"], "there is no lesson or exercise 'nothing'"),
    ],
)
def test_unknown_names_are_errors(graded: Path, arguments: list[str], message: str) -> None:
    result = run(graded, *arguments)
    assert result.exit_code == 1
    assert message in result.output


def test_outside_a_course_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path, "grade")
    assert result.exit_code == 1
    assert "is not in a course" in result.output


def test_the_class_has_every_kind() -> None:
    assert set(CHANGES) | set(FILES) < set(SCORES)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"alt": "a", "width": 600, "height": 2, "class": "b"}, {"alt": "a", "width": 600}),
        ({"alt": "a", "width": 5000}, {"alt": "a", "width": 840}),
        ({"alt": 1, "width": '1" onload="1'}, None),
        ({"width": True}, None),
        ({"width": 1.5}, None),
        ({"width": -1}, None),
        ([], None),
    ],
)
def test_a_picture_keeps_its_words_and_a_width_that_fits(given: object, kept: object) -> None:
    picture = {"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "text/plain": ""}
    output = reduced("display_data", {"data": picture, "metadata": {"image/png": given}})
    assert output.metadata.get("image/png") == kept


def test_outputs_are_reduced_to_text_and_pictures() -> None:
    hostile = {
        "text/html": "<script>1</script>", "image/svg+xml": "<svg/>",
        "application/javascript": "1", "text/plain": "text", "image/png": 'x" onerror="1',
    }  # fmt: skip
    output = reduced("execute_result", {"data": hostile, "metadata": {"a": "<b>"}})
    assert json.loads(json.dumps(output)) == {
        "output_type": "display_data", "data": {"text/plain": "text"}, "metadata": {},
    }  # fmt: skip
