"""What `autograde check --measure` writes, and which exercises are measured."""

import json

import pytest
from conftest import HERE, run

from autograde.course.lesson_files import read_measured
from autograde.course.lessons import Lesson, lessons

EXERCISE = "center_rows"


@pytest.mark.parametrize("name", ["", EXERCISE])
def test_what_is_named_is_measured_or_everything(mine: Lesson, name: str) -> None:
    known = json.loads(mine.tolerance_file.read_text())
    mine.tolerance_file.write_text(json.dumps(known).replace("2e-06", "1.0"))
    result = run(mine.root, "check", "--measure", *filter(None, [name]))
    assert f"{mine.name}: measured\n" in result.output
    assert result.exit_code == 0, result.output
    assert json.loads(mine.tolerance_file.read_text()) == known


def test_an_exercise_or_a_lesson_of_no_such_name_is_told(mine: Lesson) -> None:
    said = run(mine.root, "check", "row_centers").output
    assert "row_centers" in said
    assert mine.name in said


@pytest.mark.parametrize("name", lessons(HERE))
def test_every_committed_exercise_is_measured_and_nothing_else(name: str) -> None:
    lesson = lessons(HERE)[name]
    assert read_measured(lesson).keys() == {each.name for each in lesson.exercises}
