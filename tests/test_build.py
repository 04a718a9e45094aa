"""Building: repeatable, checked, and refused when a lesson has faults."""

import codecs
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jupytext
import nbformat
import pytest
from classes import files_in, gradebook_of
from conftest import HERE, program, run
from nbformat import NotebookNode
from nightly import few

from autograde.authoring import build as building
from autograde.authoring import lint, marks
from autograde.authoring.build import UNSTEADY, Identify
from autograde.authoring.check import check_once, review
from autograde.authoring.expected import practice_keys
from autograde.authoring.release import ENVIRONMENT, GUIDE, PACKAGE, files_for_students, release
from autograde.authoring.site import lesson_page
from autograde.authoring.sources import source_notebook, sync
from autograde.course.cells import named_cells
from autograde.course.config import course_config
from autograde.course.lesson_files import parse_text, read_measured, read_text
from autograde.course.lessons import CURRICULUM, CourseError, Exercise, Lesson, Written, lessons
from autograde.course.versions import require_built, source_of, versions
from autograde.grading.running.reference import load, practice_of, right_key
from autograde.notebook.saved_notebook import MAY_RAISE
from autograde.rubric.judge import judge
from autograde.rubric.key import unpack_keys
from autograde.rubric.kinds import KINDS
from autograde.rubric.session import PRACTICE_SEED
from autograde.workspace.project import find_project
from autograde.workspace.update import prepare

LESSON = "01_self_attention"


def test_building_twice_gives_the_same_bytes(mine: Lesson) -> None:
    first = {name: files_in(mine.root / name) for name in ("notebooks", "solutions")}
    building.build(mine)
    assert {name: files_in(mine.root / name) for name in ("notebooks", "solutions")} == first
    with gradebook_of(mine.root) as gradebook:
        assert gradebook.find_assignment(mine.name).max_score == mine.points


def test_nbgrader_generates_the_same_bytes(mine: Lesson) -> None:
    course = mine.root
    built = files_in(course / "notebooks" / mine.name)
    shutil.rmtree(course / "notebooks")
    (course / "gradebook.db").unlink()
    mine.source_notebook.unlink()  # as in a fresh clone; `autograde instructor` begins with it:
    assert program("autograde", "instructor", "--version", cwd=course).returncode == 0
    assert any((course / ".autograde" / "workspaces").iterdir())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["nbgrader", "generate_assignment", mine.name]
    subprocess.run(command, cwd=course, env={**os.environ, "PATH": path}, check=True)
    assert files_in(course / "notebooks" / mine.name) == built
    with gradebook_of(course) as gradebook:
        assert gradebook.find_assignment(mine.name).max_score == mine.points


def test_the_mark_that_some_editors_write_first_is_no_part_of_a_text(mine: Lesson) -> None:
    def cells(nb: NotebookNode) -> list[str]:
        return [cell.source for cell in nb.cells]

    plain = cells(read_text(mine))
    for path in (mine.text, mine.root / CURRICULUM):
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    lesson = lessons(mine.root)[mine.name]
    assert cells(read_text(lesson)) == plain
    now, *_ = versions(lesson)
    assert cells(source_of(now)) == plain


def test_loading_the_configuration_writes_no_file(mine: Lesson) -> None:
    mine.source_notebook.unlink()
    before = files_in(mine.root)
    course_config(mine.root)
    assert files_in(mine.root) == before


@pytest.mark.parametrize("name", lessons(HERE))
def test_what_is_committed_is_up_to_date(name: str) -> None:
    assert building.out_of_date(lessons(HERE)[name]) == ""


@pytest.mark.parametrize("name", few(lessons(HERE).keys(), "02_causal_mask"))
def test_committed_practice_data_judge_as_those_that_are_made_here(name: str) -> None:
    """Processors and PyTorch differ in the last bits; a changed grader must not differ in more."""
    lesson = lessons(HERE)[name]
    committed = unpack_keys(lesson.practice_file.read_bytes())
    for exercise, key in practice_keys(lesson).items():
        known = committed[exercise]
        verdicts = judge(key.expected, known, trusted=True).lines
        # a key leaves out what is checked rather than compared
        compared = [KINDS[line.kind].tolerance is None for line in key.expected.lines]
        assert all(each.passed for each, is_so in zip(verdicts, compared, strict=True) if is_so)
        assert [m.name for m in key.mistakes] == [m.name for m in known.mistakes]
        for mistake, same in zip(key.mistakes, known.mistakes, strict=True):
            assert mistake.failed.keys() == same.failed.keys()
            for line, outcomes in mistake.failed.items():
                alike, tolerance = KINDS[key.expected.lines[line].kind].alike, key.tolerances[line]
                both = zip(outcomes, same.failed[line], strict=True)
                assert all(alike(got, wanted, tolerance) for got, wanted in both)


def edited(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    nb.cells[0].source += " "
    nbformat.write(nb, path)


def locked(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    named_cells(nb)["center_rows"].metadata["nbgrader"]["locked"] = True
    nbformat.write(nb, path)


def shown_otherwise(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    next(cell for cell in nb.cells if cell.get("outputs")).outputs = []
    nbformat.write(nb, path)


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def with_returns(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


TEXT, MADE, RUN = (f"{place}/07_my_lesson" for place in ("source", "notebooks", "solutions"))
AUTHORS = "07_my_lesson was changed since it was built"
CHANGES: list[tuple[str, Callable[[Path], None], str]] = [
    (f"{MADE}/my_lesson.ipynb", edited, f"{MADE} was changed since it was built"),
    (f"{MADE}/my_lesson.ipynb", locked, f"{MADE} was changed since it was built"),
    (f"{MADE}/my_lesson.ipynb", halved, "cannot be read"),
    (f"{MADE}/practice.safetensors.gz", halved, f"{MADE} was changed since it was built"),
    (f"{MADE}/practice.safetensors.gz", Path.unlink, f"{MADE} was changed since it was built"),
    (f"{RUN}/my_lesson.ipynb", edited, f"{RUN} was changed since it was built"),
    (f"{RUN}/my_lesson.ipynb", shown_otherwise, f"{RUN} was changed since it was built"),
    (f"{RUN}/my_lesson.ipynb", Path.unlink, "07_my_lesson is not built here"),
    (f"{TEXT}/data.csv", Path.touch, AUTHORS),
    (f"{TEXT}/my_lesson.py", longer, AUTHORS),
    (f"{TEXT}/tolerances.json", longer, AUTHORS),
    (f"{TEXT}/variants/center_rows.md", longer, AUTHORS),
    (f"{TEXT}/variants/center_rows.md", with_returns, ""),
    ("source/curriculum.toml", longer, ""),
]


@pytest.mark.parametrize(("file", "change", "said"), CHANGES)
def test_check_says_what_is_out_of_date(
    mine: Lesson, file: str, change: Callable[[Path], None], said: str
) -> None:
    change(mine.root / file)
    result = run(mine.root, "build", "--check")
    assert result.exit_code == bool(said)
    assert said in result.output


@pytest.mark.usefixtures("run_before")
def test_what_is_unchanged_is_not_built_again_unless_it_is_named(mine: Lesson) -> None:
    shutil.rmtree(mine.root / ".autograde")
    (mine.root / "gradebook.db").unlink()
    before = mine.solution_notebook.stat().st_mtime_ns
    assert run(mine.root, "build").output == f"{mine.name}: unchanged\n"
    assert mine.solution_notebook.stat().st_mtime_ns == before
    with gradebook_of(mine.root) as gradebook:  # as after a build
        assert gradebook.find_assignment(mine.name).max_score == mine.points
    assert versions(mine)[0].ways
    assert run(mine.root, "build", mine.name).output == f"{mine.name}: built\n"
    assert mine.solution_notebook.stat().st_mtime_ns > before


def test_a_lesson_is_built_again_for_another_package(
    mine: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograde.course.built.digest_of", lambda package: "another")
    assert "was not built since" in building.out_of_date(mine)
    require_built(mine)  # grading runs with what there is
    monkeypatch.setattr("autograde.authoring.release.TO_WRITE", "written:")
    with pytest.raises(CourseError, match="was not built since"):  # practice data may be old
        files_for_students(mine)


def test_a_filter_that_would_drop_the_names_of_cells_is_named(mine: Lesson) -> None:
    path = mine.root / "jupytext.toml"
    path.write_text('cell_metadata_filter = "nbgrader,tags,-all"\n')
    (said,) = lint.lint_source(mine, source_notebook(mine))
    assert said.endswith('Write cell_metadata_filter = "grade_id,nbgrader,tags,-all"')


def test_a_failed_build_changes_nothing(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    before = files_in(course / "notebooks")
    text = lesson.text.read_text().replace("(3 points)", "(4 points)", 1)
    lesson.text.write_text(text.replace('grade_id="test_attention_scores"', "", 1))
    with pytest.raises(CourseError, match=r"the cell test_attention_scores is missing"):
        building.build(lesson)
    assert files_in(course / "notebooks") == before
    assert "(4 points)" in lesson.text.read_text()
    assert not list(course.glob(".build-*"))


def test_a_build_whose_reference_fails_changes_nothing_that_is_kept(mine: Lesson) -> None:
    mine.text.write_text(mine.text.read_text() + "\n# %%\n1 / 0\n")
    curriculum = mine.root / CURRICULUM
    curriculum.write_text(curriculum.read_text().replace("center_rows = 2", "center_rows = 7"))
    lesson, before = lessons(mine.root)[mine.name], files_in(mine.root)
    with pytest.raises(CourseError, match="ZeroDivisionError"):
        building.build(lesson)
    changed = files_in(mine.root).items() - before.items()
    assert {Path(path).name for path, _ in changed} == {"my_lesson.ipynb", "nbgrader.log"}
    with gradebook_of(mine.root) as gradebook:
        assert gradebook.find_assignment(mine.name).max_score == 2


def test_the_reason_of_nbgraders_failure_is_told(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = lessons(course)[LESSON]

    def fail(*_: object) -> None:
        raise RuntimeError("some odd thing")

    monkeypatch.setattr(Identify, "preprocess", fail)
    with pytest.raises(
        CourseError,
        match=r"RuntimeError: some odd thing \(all of it: .*nbgrader.log",
    ):
        building.generate(lesson, tmp_path / "made")
    assert "RuntimeError: some odd" in (course / ".autograde" / "nbgrader.log").read_text()


def test_jupyter_can_edit_the_text(lesson: Lesson, tmp_path: Path) -> None:
    nb = jupytext.read(lesson.text)
    copy = tmp_path / lesson.text.name
    jupytext.write(nb, copy, fmt="py:percent")
    back = jupytext.read(copy)
    assert [cell.source for cell in back.cells] == [cell.source for cell in nb.cells]
    assert [cell.metadata for cell in back.cells] == [cell.metadata for cell in nb.cells]


FULL_HEAD = (
    'nbgrader={"grade": false, "grade_id": "NAME", "locked": false, "points": 9, '
    '"schema_version": 2, "solution": true, "task": false}'
)
"""As nbgrader's panel writes one; here most of it is wrong."""
KNOWN = {
    "context_vectors": {"grade": False, "solution": True, "locked": False},
    "test_context_vectors": {"grade": True, "solution": False, "locked": True, "points": 2},
    "question_why": {"grade": False, "solution": False, "locked": True},
    "why": {"grade": True, "solution": True, "locked": False, "points": 1.5},
    "drawn": {"grade": True, "solution": True, "locked": False, "points": 3},
    "setup": {"grade": False, "solution": False, "locked": True},
}
"""What nbgrader gets to know of a cell by its name; `why` is in words and `drawn` in code."""


@pytest.mark.parametrize("head", ['grade_id="NAME"', FULL_HEAD, f'grade_id="NAME" {FULL_HEAD}'])
@pytest.mark.parametrize("name", KNOWN)
def test_the_name_of_a_cell_says_what_it_is(lesson: Lesson, name: str, head: str) -> None:
    exercises = (Exercise("context_vectors", 2.0),)
    written = (Written("why", 1.5), Written("drawn", 3.0))
    kind = " [markdown]" if name.endswith("why") else ""
    text = f"# %%{kind} {head.replace('NAME', name)}\n# x\n"
    (cell,) = parse_text(replace(lesson, exercises=exercises, written=written), text).cells
    known = {**KNOWN[name], "grade_id": name, "schema_version": 3, "task": False}
    may_raise = name in ("test_context_vectors", "drawn")
    folded = name == "test_context_vectors"
    assert cell.metadata == {
        "nbgrader": known,
        **({"tags": [MAY_RAISE]} if may_raise else {}),
        **({"jupyter": {"source_hidden": True}} if folded else {}),
    }


def test_newer_changes_in_the_notebook_are_not_overwritten(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    sync(lesson)
    nb = nbformat.read(lesson.source_notebook, as_version=4)
    nb.cells[0].source = "# Mine"
    nbformat.write(nb, lesson.source_notebook)
    with pytest.raises(CourseError, match=r"has changes that self_attention\.py lacks"):
        sync(lesson)
    assert nbformat.read(lesson.source_notebook, as_version=4).cells[0].source == "# Mine"


def test_a_notebook_that_nobody_changed_follows_the_text_whatever_its_time(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    sync(lesson)
    lesson.text.write_text(lesson.text.read_text() + "\n# %% [markdown]\n# The end\n")
    later = lesson.text.stat().st_mtime + 60
    os.utime(lesson.source_notebook, (later, later))
    sync(lesson)
    assert nbformat.read(lesson.source_notebook, as_version=4).cells[-1].source == "The end"


def test_a_lesson_without_its_text_is_named(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    lesson.text.unlink()
    with pytest.raises(CourseError, match=r"01_self_attention has no text: .*Put it back, or take"):
        building.build(lesson)


GIVEN = """### BEGIN SOLUTION
def f(x):
    return 2 * x
### END SOLUTION
### BEGIN GIVEN
# def f(x)
#     # twice
#
#     return 3 * x
### END GIVEN"""


def test_given_code_takes_the_place_of_the_stub() -> None:
    assert marks.without_solution(GIVEN) == "def f(x)\n    # twice\n\n    return 3 * x"
    apart = GIVEN.replace("### BEGIN GIVEN", "\n### BEGIN GIVEN")
    assert marks.without_solution(apart) == marks.without_solution(GIVEN)
    assert marks.give("### BEGIN SOLUTION") == "### BEGIN SOLUTION"


def test_nothing_runs_of_given_code_with_a_syntax_error(lesson: Lesson) -> None:
    reference, exercise = load(lesson), lesson.exercise("context_vectors")
    broken = reference.with_answer("def context_vectors(weights, values)\n    return 1\n")
    assert broken.answered is not None
    assert "context_vectors" not in broken.answered
    assert "context_vectors" in reference.names
    measured = read_measured(lesson)[exercise.name]
    verdict = judge(
        broken.record(exercise.name, PRACTICE_SEED),
        right_key(reference, exercise, PRACTICE_SEED, measured),
    )
    assert verdict.points == 0
    assert "`context_vectors` is not defined" in verdict.note


def test_output_that_differs_from_run_to_run_is_not_kept() -> None:
    built = [
        nbformat.read(lesson.solution_notebook, as_version=4) for lesson in lessons(HERE).values()
    ]
    unsteady = [
        cell for nb in built for cell in nb.cells if UNSTEADY in cell.metadata.get("tags", [])
    ]
    assert unsteady
    assert all(cell.execution_count and not cell.outputs for cell in unsteady)


def test_nbval_sees_a_reference_that_raises() -> None:
    cells = [
        cell
        for lesson in lessons(HERE).values()
        for cell in nbformat.read(lesson.solution_notebook, as_version=4).cells
    ]
    assert not [cell for cell in cells if MAY_RAISE in cell.metadata.get("tags", [])]


def test_linter_refuses_variants(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    lesson = replace(lesson, exercises=(lesson.exercise("context_vectors"),))
    path = lesson.folder / "variants" / "context_vectors.md"
    text = path.read_text()
    assert list(lint.lint_variants(lesson)) == []
    parts = re.split(r"(?=^## )", text, flags=re.M)
    right = [part for part in parts if part.startswith("## right")]
    wrong = [part for part in parts if part.startswith("## wrong")][:2]
    wrong[0] = re.sub(r"^>.*\n", "", wrong[0], flags=re.M)
    path.write_text("# context_vectors\n\n1. One.\n\n" + "".join(right + wrong))
    faults = "\n".join(lint.lint_variants(lesson))
    assert (
        "context_vectors has 1 numbered hints at the top of variants/context_vectors.md" in faults
    )
    assert "lacks a misconception, in lines that begin with >" in faults
    assert "no wrong variant fails the line" in faults


def test_missing_tolerances_and_variants_are_told_together(course: Path) -> None:
    lesson = lessons(course)[LESSON]
    (lesson.folder / "variants" / "transplant.md").unlink()
    (lesson.folder / "tolerances.json").unlink()
    _, faults = review(lesson, source_notebook(lesson), check_once)
    assert any("transplant has no variants" in fault for fault in faults)
    assert any("no tolerance was measured for attention_scores" in fault for fault in faults)


def test_release_writes_what_students_may_have_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out"
    wanted = list(lessons(HERE).values())
    release(HERE, wanted, target)
    names = set(files_in(target))
    lessons_released = {name for name in names if name.startswith("notebooks/")}
    assert lessons_released == {
        f"notebooks/{lesson.name}/{name}"
        for lesson in wanted
        for name in (f"{lesson.notebook}.ipynb", "practice.safetensors.gz", "card.toml")
    }
    packages = ("autograde/", "attention_course/")
    assert "attention_course/explorer/explorer.js" in names
    others = {name for name in names - lessons_released if not name.startswith(packages)}
    assert others == {*ENVIRONMENT, "README.md"}
    everything = b"".join(files_in(target / "notebooks").values())
    assert b"BEGIN SOLUTION" not in everything
    with pytest.raises(CourseError, match="is not empty"):
        release(HERE, wanted, target)


def test_a_released_folder_is_ready_to_work_in(lesson: Lesson, tmp_path: Path) -> None:
    release(HERE, [lesson], tmp_path)
    readme = (tmp_path / "README.md").read_text()
    for command in ("lab", "update", "self", "submit"):
        assert f"autograde {command}" in readme
    project = find_project(tmp_path / "notebooks")
    assert prepare(project) == []
    working, released = project.work / lesson.name, tmp_path / "notebooks" / lesson.name
    assert files_in(working).keys() == files_in(released).keys()
    name = f"{lesson.notebook}.ipynb"
    assert nbformat.read(working / name, 4).cells == nbformat.read(released / name, 4).cells


def test_release_refuses_a_notebook_that_somebody_tried(course: Path, tmp_path: Path) -> None:
    lesson = lessons(course)[LESSON]
    (course / "docs").mkdir()
    for name in (*ENVIRONMENT, GUIDE, PACKAGE):
        (course / name).symlink_to(HERE / name)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    kept = (
        lesson.released_notebook.parent / ".ipynb_checkpoints" / "self_attention-checkpoint.ipynb"
    )
    kept.parent.mkdir()
    nbformat.write(nb, kept)
    release(course, [lesson], tmp_path / "out")
    assert not list((tmp_path / "out" / "notebooks").rglob("*checkpoint*"))
    named_cells(nb)["context_vectors"].source = "def context_vectors(w, v):\n    return w @ v"
    nbformat.write(nb, lesson.released_notebook)
    with pytest.raises(CourseError, match=r"was changed since it was built.*01_self_attention"):
        release(course, [lesson], tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("run_before")
def test_what_a_merge_has_damaged_is_named_and_built_again(mine: Lesson) -> None:
    path, before = mine.released_notebook, mine.released_notebook.read_bytes()
    path.write_bytes(before.replace(b'"cells": [', b'<<<<<<< HEAD\n"cells": ['))
    for use in (files_for_students, lesson_page, versions):
        with pytest.raises(CourseError, match=f"{path.name} cannot be read.*build {mine.name}"):
            use(mine)
    assert run(mine.root, "build").output == f"{mine.name}: built\n"
    assert path.read_bytes() == before
    mine.practice_file.write_bytes(mine.practice_file.read_bytes()[:100])
    with pytest.raises(CourseError, match=r"gz cannot be read\. Run: autograde build"):
        practice_of(versions(mine)[0])
    assert "was changed since it was built" in building.out_of_date(mine)


def test_release_needs_a_built_lesson(course: Path, tmp_path: Path) -> None:
    shutil.rmtree(course / "notebooks")
    with pytest.raises(CourseError, match="01_self_attention is not built"):
        release(course, list(lessons(course).values()), tmp_path / "out")
