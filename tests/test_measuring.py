"""What is measured again, and what stays."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import HERE, run

from autograde.authoring import measure
from autograde.authoring.measure import MEASURED_FROM
from autograde.course.lesson_files import read_measured
from autograde.course.lessons import CURRICULUM, Lesson, lessons

EXERCISE = "center_rows"
TEXT, VARIANTS = "my_lesson.py", f"variants/{EXERCISE}.md"

TWO = '    r.call("two", center_rows, r.normal(2, 3))\n'


SEEDS = range(1000, 1002)


@pytest.fixture(scope="session")
def on_two_seeds(new_lesson: Lesson, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose lesson was measured on two seeds."""
    root = tmp_path_factory.mktemp("measured") / "course"
    shutil.copytree(new_lesson.root, root)
    measure.measure(lessons(root)[new_lesson.name], seeds=SEEDS)
    return root


def measured(lesson: Lesson) -> bool:
    _, (_, lines, again) = measure._measure(lesson, lesson.exercise(EXERCISE), SEEDS, always=False)
    assert list(lines) == [
        line.name for line in measure.load(lesson).record(EXERCISE, measure.PRACTICE_SEED).lines
    ]
    return again


@pytest.mark.parametrize(
    ("file", "old", "new", "again"),
    [
        (TEXT, '"one row"', '"a single row"', False),
        (TEXT, '@rubric("center_rows")  # the', '@rubric("center_rows")  # The', False),
        (TEXT, "### Exercise: `center_rows`", "### The exercise: `center_rows`", False),
        (TEXT, '"""', '"""In other words: ', False),
        (TEXT, '"points": 2', '"points": 3', False),
        (VARIANTS, "## right: sum_over_count\n", "## right: sum_over_count\nBy hand. ", False),
        (VARIANTS, "x.mean()", "x.sum()", False),
        (TEXT, "    return x - x.mean(", "    x = x + 0\n    return x - x.mean(", True),
        (TEXT, "r.normal(1, 8)", "r.normal(1, 9)", True),
        (TEXT, "    r.conventions(", f"{TWO}    r.conventions(", True),
        (VARIANTS, "x.sum(dim=-1, keepdim=True)", "x.sum(-1, keepdim=True)", True),
        (TEXT, "import os\n", "import os\nimport sys\n", True),
    ],
)  # fmt: skip
def test_an_exercise_is_measured_again_where_code_has_changed(
    on_two_seeds: Path, tmp_path: Path, file: str, old: str, new: str, again: bool
) -> None:
    shutil.copytree(on_two_seeds, tmp_path / "course")
    (mine,) = lessons(tmp_path / "course").values()
    path = mine.folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert measured(mine) == again


def test_a_reworded_line_keeps_its_tolerance_and_the_file_its_time(mine: Lesson) -> None:
    before, when = read_measured(mine), mine.tolerance_file.stat().st_mtime_ns
    assert measure.measure(mine) == []
    assert mine.tolerance_file.stat().st_mtime_ns == when
    mine.text.write_text(mine.text.read_text().replace('"one row"', '"a single row"'))
    path = mine.root / CURRICULUM
    path.write_text(path.read_text().replace(f"{EXERCISE} = 2", f"{EXERCISE} = 3"))
    result = run(mine.root, "check", "--measure")
    assert result.exit_code == 0, result.output
    assert f"{mine.name}: measured nothing: no code of it has changed" in result.output
    after = read_measured(mine)
    assert [*after[EXERCISE].values()] == [*before[EXERCISE].values()]
    assert "a single row" in after[EXERCISE]


def test_an_exercise_that_is_named_is_measured(mine: Lesson) -> None:
    known = json.loads(mine.tolerance_file.read_text())
    mine.tolerance_file.write_text(json.dumps(known).replace("2e-06", "1.0"))
    result = run(mine.root, "check", "--measure", EXERCISE)
    assert f"{mine.name}: measured {EXERCISE}\n" in result.output
    assert result.exit_code == 0, result.output
    assert json.loads(mine.tolerance_file.read_text()) == known
    said = run(mine.root, "check", "row_centers").output
    assert "row_centers" in said
    assert mine.name in said


@pytest.mark.parametrize("name", lessons(HERE))
def test_every_committed_exercise_says_what_it_was_measured_from(name: str) -> None:
    lesson = lessons(HERE)[name]
    names, measured = {each.name for each in lesson.exercises}, read_measured(lesson)
    assert measured.pop(MEASURED_FROM).keys() == names
    assert measured.keys() == names
