"""A lesson built again while students hold the earlier version: by which rubric each is graded."""

import os
import re
import shutil
import sys
from pathlib import Path

import classes
import nbformat
import pytest
from classes import LESSON, fill, grade_one, reference_answers
from conftest import HERE, run
from nbgrader.converters import GenerateAssignment

from autograde.course.cells import grade_id, named_cells
from autograde.course.config import convert, course_config
from autograde.course.lessons import CURRICULUM, CourseError, Lesson, lessons
from autograde.course.versions import (
    Version,
    checksums,
    notebook_of,
    version_of,
    versions,
)
from autograde.grading.nbgrader_steps import Restore
from autograde.grading.state import read_ran
from autograde.grading.submission import FAILED, GRADED, UNCHANGED, Place
from autograde.report.class_report import render
from autograde.report.classdata import WRONG, Row, read_class

TEXT = (classes.HERE / "source" / classes.LESSON / "causal_mask.py").read_text()
(HIDDEN,) = re.findall(r'^    r\.each\("one mask for a batch.*\n', TEXT, re.M)


def build_again(lesson: Lesson, file: Path, old: str, new: str) -> Lesson:
    """Change a file of the course, and build the lesson's notebook without the slow steps."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    config = course_config(lesson.root)
    config.CourseDirectory.assignment_id = lesson.name
    config.GenerateAssignment.force = True
    slow = ("LintSource", "LintStudent", "AddPracticeData")
    config.GenerateAssignment.preprocessors = [
        name for name in config.GenerateAssignment.preprocessors if not name.endswith(slow)
    ]
    convert(GenerateAssignment, config)
    return lessons(lesson.root)[lesson.name]


def without_a_line(lesson: Lesson) -> Lesson:
    return build_again(lesson, lesson.text, HIDDEN, "")


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    # nbgrader starts `alembic` by name
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    made = classes.make_course(tmp_path / "course", ())
    monkeypatch.chdir(made.root)
    return made


def rows_of(lesson: Lesson, student: str) -> list[Row]:
    """What a student has on the lines of `apply_mask`."""
    rows = read_class(lesson).rows
    return [row for row in rows if (row.student, row.exercise) == (student, "apply_mask")]


def lines_of(lesson: Lesson, student: str) -> set[str]:
    return {row.line for row in rows_of(lesson, student)}


def test_each_is_graded_by_the_rubric_of_its_version(lesson: Lesson) -> None:
    classes.hand_in(lesson, "early")
    lesson = without_a_line(lesson)
    classes.hand_in(lesson, "later")
    assert [grade_one(lesson, student).problem for student in ("early", "later")] == ["", ""]
    assert "one mask for a batch, or for a batch of heads" in lines_of(lesson, "early")
    assert lines_of(lesson, "early") - lines_of(lesson, "later") == {
        "one mask for a batch, or for a batch of heads"
    }
    assert classes.scores(lesson.root) == {"early": 13, "later": 13}
    assert "1 of 2 were made from an earlier version of the lesson" in render(read_class(lesson))

    # what is graded stays so, and a build that changes nothing asks for nothing
    build_again(lesson, lesson.text, "hidden weights become 0", "hidden weights become 0")
    done = [grade_one(lesson, who) for who in ("early", "later")]
    assert [(each.outcome, each.earlier) for each in done] == [
        (UNCHANGED, True),
        (UNCHANGED, False),
    ]
    said = run(lesson.root, "grade", LESSON, *classes.NO_WALL).output
    assert "2 unchanged, 1 by the rubrics of an earlier version, " in said

    # nbgrader's own commands put the newest cells in, so they refuse the earlier version
    nb = nbformat.read(classes.file_of(lesson, "early"), as_version=4)
    about = {"nbgrader": {"assignment": LESSON}, "problem": None, "remarks": []}
    with pytest.raises(CourseError, match=r"rubric of apply_mask .*with `autograde grade`"):
        Restore().preprocess(nb, about)


LINE = "one mask for a batch, or for a batch of heads"
NOT_FOR_HEADS = """\
def apply_mask(weights, mask):
    return weights if weights.dim() == 4 else weights.masked_fill(mask == 0, 0.0)
"""


def withdraw(lesson: Lesson, line: str) -> Lesson:
    """Enter a line of `apply_mask` as withdrawn into the curriculum."""
    curriculum = lesson.root / CURRICULUM
    before, points, after = curriculum.read_text().partition("break_tril = 2\n")
    added = f'\n[lesson.withdrawn]\napply_mask = ["{line}"]\n'
    curriculum.write_text(before + points + added + after)
    return lessons(lesson.root)[lesson.name]


def test_a_withdrawn_line_counts_as_right_in_every_version(lesson: Lesson) -> None:
    answers = reference_answers(lesson) | {"apply_mask": NOT_FOR_HEADS}
    classes.put_file(lesson, "early", fill(lesson, answers))
    classes.hand_in(lesson, "untouched")
    students = ("early", "untouched")
    for student in students:
        grade_one(lesson, student)
    assert [row.line for row in rows_of(lesson, "early") if row.state == WRONG] == [LINE]
    lesson = withdraw(without_a_line(lesson), LINE)
    ran = read_ran(Place("early", lesson))
    assert [grade_one(lesson, student).outcome for student in students] == [GRADED, GRADED]
    assert read_ran(Place("early", lesson)) == ran  # its times too: nothing ran again
    assert sum(row.points for row in rows_of(lesson, "early")) == pytest.approx(1)
    assert sum(row.points for row in rows_of(lesson, "untouched")) == pytest.approx(0)
    pages = [classes.file_of(lesson, student, "feedback").read_text() for student in students]
    assert ["has withdrawn a line of apply_mask" in page for page in pages] == [True, False]


def test_a_withdrawn_line_that_no_version_has_is_named(lesson: Lesson) -> None:
    classes.hand_in(lesson, "early")
    done = grade_one(withdraw(lesson, "one mask"), "early")
    assert done.outcome == FAILED
    assert "withdrawn: apply_mask has no line “one mask”; there are: " in done.problem
    assert LINE in done.problem


def forgotten(lesson: Lesson) -> Lesson:
    """As if the earlier version had been built elsewhere."""
    shutil.rmtree(lesson.root / ".autograde" / "released")
    return without_a_line(lesson)


def test_what_cannot_be_graded_by_its_own_rubric_is_refused_by_name(lesson: Lesson) -> None:
    classes.hand_in(lesson, "early")
    graded = grade_one(forgotten(lesson), "early")
    assert graded.outcome == FAILED
    assert "rubric of apply_mask was changed. It can be graded in a course that" in graded.problem
    assert "`autograde grade`" not in graded.problem  # which has just refused it
    assert classes.scores(lesson.root) == {}


def test_a_notebook_whose_cells_lost_their_names_is_graded_by_its_version(lesson: Lesson) -> None:
    path = classes.hand_in(lesson, "early")
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        cell.metadata = {}
    nbformat.write(nb, path)
    grade_one(without_a_line(lesson), "early")
    assert classes.scores(lesson.root) == {"early": 13}


def test_lost_names_and_other_points_make_no_earlier_version(lesson: Lesson) -> None:
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    for cell in nb.cells:
        cell.metadata = {}
    later = build_again(lesson, lesson.root / CURRICULUM, "apply_mask = 1", "apply_mask = 2")
    assert [each.kept for each in versions(later)] == [False, True]
    assert not version_of(nb, versions(later)).kept


def test_a_cell_that_no_version_has_says_nothing_of_the_version(lesson: Lesson) -> None:
    path = classes.hand_in(lesson, "early")
    nb = nbformat.read(path, as_version=4)
    mark = {"grade_id": "test_x", "grade": True, "solution": False, "checksum": "1" * 32}
    nb.cells.append(nbformat.v4.new_code_cell("", metadata={"nbgrader": mark}))
    nbformat.write(nb, path)
    grade_one(without_a_line(lesson), "early")
    assert classes.scores(lesson.root) == {"early": 13}


def test_another_lessons_notebook_is_named_so(lesson: Lesson) -> None:
    other = nbformat.read(lessons(HERE)["03_inf_mask"].released_notebook, as_version=4)
    with pytest.raises(CourseError, match=r"not the notebook of 02_causal_mask: .* mask_scores"):
        version_of(other, versions(lesson))


def test_the_newest_of_builds_with_the_same_rubric_counts(lesson: Lesson) -> None:
    """A tolerance that is put right is put right for everybody."""
    tolerances = lesson.folder / "tolerances.json"
    tolerances.write_text(tolerances.read_text() + "\n")
    build_again(lesson, lesson.text, "hidden weights become 0", "hidden weights become 0")
    (kept,) = (lesson.root / ".autograde" / "released" / LESSON).iterdir()
    assert (kept / "source" / LESSON / "tolerances.json").read_text().endswith("\n\n")
    assert [each.kept for each in versions(lesson)] == [False]
    tolerances.write_text("<<<<<<< HEAD\n")
    with pytest.raises(CourseError, match=f"autograde check --measure {LESSON}"):
        versions(lesson)


def test_earlier_versions_come_in_the_order_of_their_builds(lesson: Lesson) -> None:
    curriculum, old = lesson.root / CURRICULUM, "apply_mask = 1"
    for points in (5, 3, 6, 4):
        new = f"apply_mask = {points}"
        lesson, old = build_again(lesson, curriculum, f"\n{old}\n", f"\n{new}\n"), new
    kept = lesson.root / ".autograde" / "released" / LESSON
    for number, path in enumerate(sorted(kept.rglob("*"), reverse=True)):
        os.utime(path, (number, number))  # as after a copy
    built = [nbformat.reads(each.released.decode(), 4) for each in versions(lesson)]
    worth = [named_cells(nb)["test_apply_mask"].metadata["nbgrader"]["points"] for nb in built]
    assert worth == [4, 6, 3, 5, 1]


def test_versions_that_1_0_kept_are_older_and_in_the_order_of_their_files(lesson: Lesson) -> None:
    curriculum, old = lesson.root / CURRICULUM, "apply_mask = 1"
    for points in (5, 3):
        new = f"apply_mask = {points}"
        lesson, old = build_again(lesson, curriculum, f"\n{old}\n", f"\n{new}\n"), new
    earlier = [each.lesson.root for each in versions(lesson)[1:]]
    for time, each in zip((2e9, 3e9), earlier, strict=True):
        (each / "built.txt").unlink()
        os.utime(each / CURRICULUM, (time, time))
    lesson = build_again(lesson, curriculum, f"\n{old}\n", "\napply_mask = 6\n")
    assert [each.lesson.root for each in versions(lesson)[2:]] == earlier[::-1]


def test_a_version_is_kept_without_what_is_not_needed(lesson: Lesson) -> None:
    before = checksums(nbformat.read(lesson.released_notebook, as_version=4))
    lesson = without_a_line(lesson)
    now, earlier = versions(lesson)
    assert now.lesson == lesson
    assert checksums(notebook_of(earlier)) == before != checksums(notebook_of(now))
    assert earlier.kept
    assert HIDDEN in earlier.text.decode()
    names = {path.name for path in earlier.lesson.root.rglob("*") if path.is_file()}
    assert names == {
        "curriculum.toml",
        "causal_mask.py",
        "tolerances.json",
        "causal_mask.ipynb",
        "practice.safetensors.gz",
        "other_ways.json",
        "built.txt",
    }


def test_a_rubric_that_was_changed_without_a_build_is_named(lesson: Lesson) -> None:
    classes.hand_in(lesson, "early")
    text = lesson.text.read_text()
    lesson.text.write_text(text.replace(HIDDEN, ""))
    graded = grade_one(lesson, "early")
    assert graded.outcome == FAILED
    assert "was not built since the rubric of apply_mask was changed in causal_mask.py." in (
        graded.problem
    )
    lesson.text.write_text(text + "\n# %% [markdown]\n# one more word\n")
    assert grade_one(lesson, "early").problem == ""


def test_a_rubric_cell_that_was_deleted_says_nothing_of_the_version(lesson: Lesson) -> None:
    lesson = without_a_line(lesson)
    found: tuple[Version, ...] = versions(lesson)
    now, earlier = found
    nb = nbformat.from_dict(notebook_of(earlier))
    nb.cells = [cell for cell in nb.cells if grade_id(cell) != "test_apply_mask"]
    assert version_of(nb, found) is now
    assert version_of(notebook_of(earlier), found) is earlier
