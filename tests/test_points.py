"""Points belong to the teacher: changed in the curriculum, built, graded, done."""

import os
import shutil
import sys
from pathlib import Path

import classes
import nbformat
import pytest
from classes import LESSON, NO_WALL, gradebook_of, hand_in, scores, wrong_answer
from conftest import run
from nbgrader.converters import Autograde, GenerateAssignment
from nightly import nightly

from autograde.authoring import build as building
from autograde.authoring.sources import changes, source_notebook, text_with_points
from autograde.course.cells import named_cells
from autograde.course.config import convert, course_config
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from autograde.grading.gradebook import maxima, open_gradebook
from autograde.report.classdata import read_class
from autograde.sandbox.wall import missing

STUDENTS = ("right", "half")
FAST = {f"{building.__name__}.{step}" for step in ("LintSource", "LintStudent", "AddPracticeData")}


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Lesson 02, graded: one student has all of it, the other a part of `apply_mask`."""
    made = classes.make_course(tmp_path_factory.mktemp("points") / "course", ("right",))
    answers = classes.reference_answers(made)
    wrong = wrong_answer(made, "apply_mask", "float32_returned").code
    classes.put_file(made, "half", classes.fill(made, {**answers, "apply_mask": wrong}))
    graded(made)
    return made


@pytest.fixture
def lesson(graded_once: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    """A copy of it to change."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    root = shutil.copytree(graded_once.root, tmp_path / "course")
    monkeypatch.chdir(root)
    return lessons(root)[LESSON]


def graded(lesson: Lesson) -> str:
    result = run(lesson.root, "grade", LESSON, "--workers", "1", *NO_WALL)
    assert result.exit_code == 0, result.output
    return result.output


def built(lesson: Lesson) -> Lesson:
    """Build without the slow steps, as Formgrader's Generate does."""
    config = course_config(lesson.root)
    config.CourseDirectory.assignment_id = lesson.name
    config.GenerateAssignment.force = True
    steps = config.GenerateAssignment
    steps.preprocessors = [name for name in steps.preprocessors if name not in FAST]
    convert(GenerateAssignment, config)
    return lessons(lesson.root)[lesson.name]


def worth(lesson: Lesson, **points: float) -> Lesson:
    path = lesson.root / CURRICULUM
    text = path.read_text()
    for name, value in points.items():
        old = f"{name} = {lesson.worth[name]:g}\n"
        assert old in text
        text = text.replace(old, f"{name} = {value:g}\n")
    path.write_text(text)
    return lessons(lesson.root)[lesson.name]


def points_everywhere(lesson: Lesson, cell: str) -> list[float]:
    """What each place says: gradebook, student's notebook, text, nbgrader's copy of it."""
    nbs = [
        nbformat.read(path, as_version=4)
        for path in (lesson.released_notebook, lesson.source_notebook)
    ]
    nbs.append(source_notebook(lesson))
    with gradebook_of(lesson.root) as gradebook:
        known = maxima(gradebook, lesson)[cell]
    return [known, *(named_cells(nb)[cell].metadata["nbgrader"]["points"] for nb in nbs)]


def test_points_that_change_after_students_have_submitted(lesson: Lesson) -> None:
    before, ran = scores(lesson.root), ran_files(lesson)
    part = score_of(lesson, "half", "test_apply_mask")
    assert before["right"] == 13
    assert 0 < part < 1
    lesson = worth(lesson, apply_mask=5, break_tril=1)
    assert points_everywhere(built(lesson), "test_apply_mask") == [5] * 4
    text = lesson.text.read_text()
    assert "`apply_mask` (5 points)" in text
    assert "`break_tril` (1 point" in text
    assert "2 graded, mean" in graded(lesson)
    assert score_of(lesson, "half", "test_apply_mask") == pytest.approx(part * 5)
    assert scores(lesson.root) == {
        "right": 13 + 4 - 1,
        "half": pytest.approx(before["half"] + part * 4 - 1),
    }
    assert ran_files(lesson) == ran
    assert read_class(lesson).lesson.points == 16
    assert not any(each.earlier for each in read_class(lesson).students)
    assert "2 unchanged" in graded(lesson)


def score_of(lesson: Lesson, student: str, cell: str) -> float:
    with gradebook_of(lesson.root) as gradebook:
        return float(gradebook.find_grade(cell, lesson.notebook, LESSON, student).auto_score)


def ran_files(lesson: Lesson) -> dict[str, bytes]:
    return classes.files_in(lesson.root / ".autograde" / "ran")


@nightly
def test_nbgraders_own_command_gives_the_same_points(lesson: Lesson) -> None:
    lesson = built(worth(lesson, apply_mask=5))
    graded(lesson)
    ours = classes.contents(lesson.root)
    config = course_config(lesson.root)
    config.CourseDirectory.assignment_id = LESSON
    config.Run.wall = not missing()
    config.Autograde.force = True
    convert(Autograde, config)
    assert classes.contents(lesson.root) == ours
    assert scores(lesson.root)["right"] == 17


def test_marks_by_hand_stay_when_points_change(lesson: Lesson) -> None:
    place = ("causal_mask", LESSON, "right")
    with gradebook_of(lesson.root) as gradebook:
        gradebook.find_grade("test_apply_mask", *place).manual_score = 1.5
        gradebook.db.commit()
    lesson = built(worth(lesson, apply_mask=5))
    assert "1 to be looked at again in Formgrader (right)" in graded(lesson)
    with gradebook_of(lesson.root) as gradebook:
        grade = gradebook.find_grade("test_apply_mask", *place)
        assert (grade.manual_score, grade.auto_score, grade.max_score) == (1.5, 5, 5)


def test_points_and_a_rubric_line_that_change_together(lesson: Lesson) -> None:
    """The earlier version's rubric judges, the points of today count."""
    text = lesson.text.read_text()
    line = '"one mask for a batch, or for a batch of heads"'
    assert line in text
    lesson.text.write_text(text.replace(line, '"the same in other words"'))
    tolerances = lesson.tolerance_file.read_text()
    lesson.tolerance_file.write_text(tolerances.replace(line, '"the same in other words"'))
    lesson = built(worth(lesson, apply_mask=5))
    graded(lesson)
    assert scores(lesson.root)["right"] == 17
    data = read_class(lesson)
    assert all(each.earlier for each in data.students)
    of_mask = [row for row in data.rows if row.exercise == "apply_mask"]
    assert sum(row.worth for row in of_mask) == pytest.approx(len(data.students) * 5)
    hand_in(lesson, "later")
    graded(lesson)
    assert scores(lesson.root)["later"] == 17


def test_a_version_whose_points_alone_were_others_need_not_be_kept(lesson: Lesson) -> None:
    lesson = built(worth(lesson, apply_mask=5))
    kept = lesson.root / ".autograde" / "released" / LESSON
    for folder in kept.iterdir():
        if "apply_mask = 1" in (folder / CURRICULUM).read_text():
            folder.rename(lesson.root / "lost")
    graded(lesson)
    assert scores(lesson.root)["right"] == 17


def test_points_changed_without_a_build_are_not_half_applied(lesson: Lesson) -> None:
    before = classes.contents(lesson.root)
    lesson = worth(lesson, apply_mask=5)
    result = run(lesson.root, "grade", LESSON, "--workers", "1", *NO_WALL)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert f"{LESSON} was changed since it was built. Run: autograde build {LESSON}" in said
    assert "of 13" in said
    assert classes.contents(lesson.root) == before
    assert read_class(lesson).lesson.points == 13


IN_PANEL = (
    '# %% nbgrader={"grade": true, "grade_id": "test_apply_mask", "locked": true, '
    '"points": POINTS, "schema_version": 3, "solution": false, "task": false}'
)
"""The head of a cell whose type and points somebody chose in nbgrader's panel."""


@pytest.mark.parametrize("typed", ["1", "4", "5"])
def test_what_changed_is_said(lesson: Lesson, typed: str) -> None:
    text, head = lesson.text.read_text(), '# %% grade_id="test_apply_mask"'
    assert head in text
    lesson.text.write_text(text.replace(head, IN_PANEL.replace("POINTS", typed)))
    lesson = worth(lesson, apply_mask=5)
    cell = named_cells(source_notebook(lesson))["test_apply_mask"]
    assert cell.metadata["nbgrader"]["points"] == 5
    with open_gradebook(course_config(lesson.root)) as gradebook:
        first, *more = changes(lesson, maxima(gradebook, lesson))
    assert first == "apply_mask is worth 5 points instead of 1"
    assert more == [
        "apply_mask is worth 5 points, as source/curriculum.toml says; "
        f"the {typed} of its cell count for nothing: delete them there"
    ] * (typed != "5")


@pytest.mark.parametrize("wrong", ["1 point", "0.5 points"])
def test_the_curriculums_points_are_written_and_nothing_else(
    new_lesson: Lesson, wrong: str
) -> None:
    text, right = new_lesson.text.read_text(), "`center_rows` (2 points"
    assert text_with_points(new_lesson, text) == text
    assert right in text
    assert text_with_points(new_lesson, text.replace(right, f"`center_rows` ({wrong}")) == text


def test_a_heading_gets_the_points_in_a_cell_between_quotes_too(new_lesson: Lesson) -> None:
    cell = '# %% [markdown]\n"""\n### Exercise: `center_rows` ({})\n"""\n'
    assert text_with_points(new_lesson, cell.format("1 point")) == cell.format("2 points")


@nightly
def test_build_says_what_is_worth_other_points_and_check_that_it_is_to_be_built(
    mine: Lesson,
) -> None:
    lesson = worth(mine, center_rows=0.5)
    assert f"{mine.name} was changed since" in run(mine.root, "build", "--check").output
    result = run(mine.root, "build")
    assert result.exit_code == 0, result.output
    assert f"{mine.name}: center_rows is worth 0.5 points instead of 2" in result.output
    assert "`center_rows` (0.5 points" in lesson.text.read_text()
    assert run(mine.root, "build", "--check").output == ""
    assert run(mine.root, "build").output == f"{mine.name}: unchanged\n"
