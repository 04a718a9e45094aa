"""The page of lessons: progress, where to continue, what is due, and how to submit."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import HERE, run
from working_copy import LESSON, make_project

from autograde.course.lessons import CourseError, lessons
from autograde.notebook.practice import _so_far
from autograde.notebook.saved_notebook import cells_in, still_to_come
from autograde.progress import PAGE, following, keep_attempt, of_course, write_page
from autograde.workspace.project import Project
from autograde.workspace.update import prepare

WRITTEN = "06_multi_head"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three lessons; this process is the kernel of the first."""
    project = make_project(tmp_path, (LESSON, "03_inf_mask", WRITTEN))
    monkeypatch.chdir(project.work / LESSON)
    return project


def page(project: Project) -> str:
    return (project.work / PAGE).read_text(encoding="utf-8")


def solve(project: Project) -> None:
    for exercise in lessons(HERE)[LESSON].exercises:
        keep_attempt(project.work / LESSON, exercise.name, exercise.points, "")
    write_page(project.work)


def test_a_new_student_begins_with_the_first_lesson(project: Project) -> None:
    assert "**Begin with** [02 The causal mask" in page(project)
    assert "due" not in page(project)


def test_a_lesson_that_is_solved_gets_a_tick(project: Project) -> None:
    assert "✓" not in page(project)
    solve(project)
    assert "| ✓ [02 The causal mask" in page(project)
    assert page(project).count("✓") == 1


def test_it_counts_what_was_solved_and_says_where_to_go_on(project: Project) -> None:
    first, second, *_ = lessons(HERE)[LESSON].exercises
    keep_attempt(project.work / LESSON, first.name, first.points, "")
    write_page(project.work)
    row = f"/causal_mask.ipynb) | 80 | 1 of 7 exercises right, {first.points:g} of 13 points |"
    assert row in page(project)
    place = f"/causal_mask.ipynb#cell-id={second.name})"
    assert f", [exercise `{second.name}`](02_causal_mask{place}." in page(project)
    assert "Run All Above Selected Cell" in page(project)


def test_the_place_to_continue_is_a_cell_of_the_notebook(project: Project) -> None:
    for path in project.released():
        lesson = lessons(HERE)[path.parent.name]
        ids = {cell.id for cell in nbformat.read(project.working(path), as_version=4).cells}
        assert {exercise.name for exercise in lesson.exercises} <= ids


def of_notebook(kind: str, source: str, name: str = "", **about: bool) -> dict[str, Any]:
    nbgrader = {"nbgrader": {"grade_id": name, **about}} if name else {}
    return {"cell_type": kind, "source": [source], "metadata": nbgrader}


def test_after_the_last_exercise_comes_what_is_left_of_the_lesson(tmp_path: Path) -> None:
    cells = [
        of_notebook("markdown", "## 1 Begin\n\ntext"),
        of_notebook("code", "@rubric('it')", "test_it", grade=True, solution=False),
        of_notebook("markdown", "## 2 Train it\n### Step by step"),
        of_notebook("code", "## not a heading"),
        of_notebook("markdown", "Your answer", "why_it", grade=True, solution=True),
    ]
    path = tmp_path / "it.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert still_to_come(cells_in(tmp_path), ["it"]) == ["the question `why_it`", "“2 Train it”"]
    assert still_to_come(cells_in(tmp_path), ["other"]) == []
    path.write_text("{")
    assert cells_in(tmp_path) == []


def test_points_for_words_are_counted_and_said_to_be_the_teachers(project: Project) -> None:
    lesson = lessons(HERE)[WRITTEN]
    by_hand = sum(each.points for each in lesson.written)
    row = (
        f"| 0 of {len(lesson.exercises)} exercises right, 0 of {lesson.points:g} points "
        f"(your teacher marks {by_hand:g} of them) |"
    )
    assert by_hand
    assert row in page(project)


def test_after_the_last_exercise_it_says_how_to_submit_and_what_is_next(project: Project) -> None:
    solve(project)
    assert f"run `autograde submit {LESSON}` in a terminal" in page(project)
    assert "**Go on with** [03 " in page(project)
    said = _so_far()
    assert "7 of 7 exercises right, 13 of 13 points" in said
    assert f"run `autograde submit {LESSON}` in a terminal" in said
    assert "Then go on with 03 " in said


def test_an_earlier_lesson_that_is_open_comes_after_the_later_ones(project: Project) -> None:
    solve(project)
    course = of_course(project.work)
    assert [each.lesson for each in following(course, WRITTEN)] == ["03_inf_mask"]


def test_what_is_due_is_shown(project: Project) -> None:
    (project.root / "due.toml").write_text(f"{LESSON} = 2026-12-01T23:59:00\n")
    prepare(project)
    assert (
        "causal_mask.ipynb), due 2026-12-01 23:59 | 80 | 0 of 7 exercises right, 0 of 13 points |"
        in page(project)
    )


@pytest.mark.parametrize("text", ["not toml", "02_causal_mask = 'soon'"])
def test_dates_that_cannot_be_read_are_named(project: Project, text: str) -> None:
    (project.root / "due.toml").write_text(text)
    with pytest.raises(CourseError, match=r"due\.toml"):
        prepare(project)


def test_newer_lessons_are_named_on_the_page(project: Project) -> None:
    released = project.released()[0]
    released.write_text(released.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert prepare(project) == [LESSON]
    assert f"There are new versions of {LESSON}." in page(project)
    run(project.root, "update")
    assert "There are new" not in page(project)
