"""The working copy: made, opened in JupyterLab, and brought to a new version of the lessons."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from classes import files_in
from conftest import HERE, run
from jupyterlab.labapp import LabApp
from nbformat import NotebookNode
from working_copy import LESSON, answer_all, change, make_project, mine, released

from autograde import server
from autograde.course.lessons import CourseError, lessons
from autograde.progress import PAGE, PRACTICE_FILE, of_course
from autograde.workspace import lab, update
from autograde.workspace.project import Project, find_project
from autograde.workspace.update import given

STUB = "# YOUR CODE HERE"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def new_version(project: Project) -> None:
    """The lesson gets another first rubric cell, another text, and other practice data."""
    change(released(project), lambda cells: cells["test_causal_mask"].update(source="new = 1"))
    nb = nbformat.read(released(project), as_version=4)
    nb.cells[0].source = nb.cells[0].source.replace("# The causal mask", "# The mask")
    nbformat.write(nb, released(project))
    (released(project).parent / PRACTICE_FILE).write_bytes(b"new practice data")


def test_a_working_copy_holds_the_lessons_as_they_are_and_no_more(project: Project) -> None:
    given = files_in(project.root / "notebooks" / LESSON)
    assert files_in(project.handed_out(LESSON)) == given
    copy = files_in(project.work / LESSON)
    notebook, here = (json.loads(each.pop(mine(project).name)) for each in (given, copy))
    assert copy == given
    assert here["metadata"].pop("language_info")["version"] == sys.version.split()[0]
    assert notebook["metadata"].pop("language_info") == {"name": "python"}
    assert here == notebook


def test_exercises_and_points_are_those_of_the_course(tmp_path: Path) -> None:
    """The working copy reads them from notebooks, the course from its curriculum."""
    course = lessons(HERE)
    project = make_project(tmp_path, tuple(course))
    for lesson, said in zip(course.values(), of_course(project.work), strict=True):
        assert said.worth == {each.name: each.points for each in lesson.exercises}
        assert said.written == {each.name: each.points for each in lesson.written}
        assert said.in_words().startswith(
            f"0 of {len(lesson.exercises)} exercises right, 0 of {lesson.points:g} points"
        )


def test_opening_again_overwrites_nothing(project: Project) -> None:
    answer_all(mine(project))
    before = mine(project).read_bytes()
    shutil.copytree(HERE / "notebooks" / "03_inf_mask", project.root / "notebooks" / "03_inf_mask")
    assert update.prepare(project) == []
    assert mine(project).read_bytes() == before
    assert (project.work / "03_inf_mask" / "inf_mask.ipynb").is_file()  # new, so it was added


def test_opening_names_what_is_newer_and_leaves_it(project: Project) -> None:
    new_version(project)
    before = files_in(project.work / LESSON)
    assert update.prepare(project) == [LESSON]
    assert files_in(project.work / LESSON) == before


def test_the_project_is_found_from_any_folder_in_it(project: Project, tmp_path: Path) -> None:
    for folder in (project.root, project.work, project.work / LESSON):
        assert find_project(folder) == project
    with pytest.raises(CourseError, match="is in no folder with lessons"):
        find_project(tmp_path.parent / "elsewhere")


def test_jupyterlab_opens_on_the_table_and_keeps_its_tabs_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[list[str]] = []
    monkeypatch.setattr(LabApp, "launch_instance", launched.append)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    monkeypatch.setenv("PYTHONSTARTUP", "mine.py")
    monkeypatch.chdir(project.root)
    for root in (False, True):
        monkeypatch.setattr(server, "is_root", lambda root=root: root)
        lab.open_lab(project, ("--no-browser",))
        arguments = launched.pop()
        assert f"--ServerApp.root_dir={project.work}" in arguments
        assert "--LabApp.default_url=/lab/tree/Lessons.md" in arguments
        assert arguments[-1] == "--no-browser"
        assert ("--allow-root" in arguments) == root
    assert Path.cwd() == project.work


def test_the_command_makes_the_working_copy_and_says_what_matters(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, ...]] = []
    monkeypatch.setattr(lab, "open_lab", lambda project, options: opened.append(options))
    monkeypatch.setattr(server, "is_root", lambda: True)
    shutil.rmtree(project.work)
    result = run(project.root, "lab", "--no-browser", "--port=1")
    assert (result.exit_code, opened) == (0, [("--no-browser", "--port=1")])
    assert f"your copy of the lessons: {project.work}" in result.output
    assert "you are root" in result.output
    assert (project.work / PAGE).is_file()
    with (released(project)).open("a") as file:
        file.write("\n")
    monkeypatch.setattr(server, "is_root", lambda: False)
    said = run(project.work, "lab").output
    assert f"new versions of {LESSON} are available; run: autograde update" in said
    assert "you are root" not in said


def test_an_update_brings_the_new_version_and_keeps_the_answers(project: Project) -> None:
    answer_all(mine(project))
    change(mine(project), lambda cells: cells["test_causal_mask"].update(source="mine = 1"))
    before = mine(project).read_bytes()
    new_version(project)
    result = run(project.work, "update")
    assert result.exit_code == 0, result.output
    text = mine(project).read_text()
    assert STUB not in text
    assert "# The mask" in text
    assert "new = 1" in text
    assert (project.work / LESSON / PRACTICE_FILE).read_bytes() == b"new practice data"
    (copy,) = (project.work / update.BEFORE / LESSON).iterdir()
    assert copy.read_bytes() == before
    assert str(copy) in result.output


@pytest.mark.parametrize("text", ["new = 1", None], ids=["another text", "other points alone"])
def test_a_backup_put_back_gets_the_new_rubrics(project: Project, text: str | None) -> None:
    def new_rubric(cells: dict[str, NotebookNode]) -> None:
        cells["test_causal_mask"].source = text or cells["test_causal_mask"].source
        cells["test_causal_mask"].metadata["nbgrader"]["checksum"] = "1" * 32

    answer_all(mine(project))
    change(released(project), new_rubric)
    assert run(project.work, "update").exit_code == 0
    (copy,) = (project.work / update.BEFORE / LESSON).iterdir()
    mine(project).write_bytes(copy.read_bytes())
    assert "another version of the lesson" in run(project.work, "submit", LESSON, "--yes").output
    result = run(project.work, "update")
    assert f"{LESSON}: new version; your causal_mask.ipynb as it was: " in result.output
    written = mine(project).read_text()
    assert STUB not in written
    assert (text or "") in written
    assert "another version" not in run(project.work, "submit", LESSON, "--yes").output
    assert run(project.work, "update").output == "nothing new\n"


def test_updating_twice_changes_nothing(project: Project) -> None:
    answer_all(mine(project))
    new_version(project)
    assert run(project.work, "update").exit_code == 0
    before = files_in(project.work)
    result = run(project.work, "update")
    assert (result.exit_code, result.output) == (0, "nothing new\n")
    assert files_in(project.work) == before


def test_an_update_that_was_killed_is_finished_by_the_next(project: Project) -> None:
    """What was handed out is noted last."""
    answer_all(mine(project))
    new_version(project)
    shutil.copytree(project.handed_out(LESSON), project.root / "before")
    update.update(project)
    once = mine(project).read_bytes()
    shutil.rmtree(project.handed_out(LESSON))
    shutil.move(project.root / "before", project.handed_out(LESSON))
    assert [change.failed for change in update.update(project)] == [False]
    assert mine(project).read_bytes() == once
    assert update.update(project) == []


def unreadable(project: Project) -> None:
    mine(project).write_bytes(b"{ this is no notebook")


LEFT_ALONE: dict[str, tuple[Callable[[Project], None], str]] = {
    "unreadable": (unreadable, "The file is not JSON"),
    "empty": (lambda project: mine(project).write_bytes(b"") and None, "The file is empty"),
}


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_a_notebook_that_cannot_be_read_is_left_alone_and_named(
    kind: str, project: Project
) -> None:
    break_it, reason = LEFT_ALONE[kind]
    break_it(project)
    before = files_in(project.work / LESSON)
    new_version(project)
    result = run(project.work, "update")
    assert result.exit_code == 1
    assert f"{LESSON}: left as it is: {mine(project)}: {reason}" in result.output
    assert files_in(project.work / LESSON) == before


def test_a_notebook_of_unknown_version_keeps_its_answers(project: Project) -> None:
    answer_all(mine(project))
    shutil.rmtree(project.handed_out(LESSON))
    new_version(project)
    assert run(project.work, "update").exit_code == 0
    assert STUB not in mine(project).read_text()


def test_a_deleted_notebook_comes_back(project: Project) -> None:
    mine(project).unlink()
    assert run(project.work, "update").output == f"{LESSON}: new\n"
    assert mine(project).read_bytes() == given(released(project))


def test_deleted_practice_data_come_back(project: Project) -> None:
    before = files_in(project.work / LESSON)
    (project.work / LESSON / PRACTICE_FILE).unlink()
    run(project.work, "update")
    assert files_in(project.work / LESSON) == before


def test_damaged_practice_data_are_the_lessons_again(project: Project) -> None:
    data = project.work / LESSON / PRACTICE_FILE
    before = data.read_bytes()
    data.write_bytes(b"damaged")
    assert f"{LESSON}: your {PRACTICE_FILE} as it was: " in run(project.work, "update").output
    assert data.read_bytes() == before


def test_own_files_beside_a_lesson_are_not_touched(project: Project) -> None:
    own = mine(project).with_name("notes.txt")
    own.write_text("mine")
    new_version(project)
    (released(project).parent / "notes.txt").write_text("the lesson's, by the same name")
    assert run(project.work, "update").exit_code == 0
    assert own.read_text() == "the lesson's, by the same name"
    kept = files_in(project.work / update.BEFORE)
    assert b"mine" in kept.values()


def test_files_of_a_lesson_that_lie_in_a_folder_come_along(project: Project) -> None:
    for name in ("data/rain.csv", "data/.hidden", "__pycache__/helpers.pyc"):
        path = released(project).parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("the lesson's")
    before = {*files_in(project.work / LESSON)}
    assert update.prepare(project) == [LESSON]
    assert run(project.work, "update").output == f"{LESSON}: new version\n"
    copy = project.work / LESSON / "data" / "rain.csv"
    assert {*files_in(project.work / LESSON)} == before | {"data/rain.csv"}
    assert copy.read_text() == "the lesson's"
    copy.write_text("mine")
    assert "your data/rain.csv as it was: " in run(project.work, "update").output
    (kept,) = (project.work / update.BEFORE / LESSON / "data").iterdir()
    assert kept.read_text() == "mine"
    assert copy.read_text() == "the lesson's"


@pytest.mark.parametrize("begun", [True, False])
def test_a_lesson_that_cannot_be_read_is_named(project: Project, begun: bool) -> None:
    released(project).write_bytes(b"broken")
    if not begun:
        mine(project).unlink()
    result = run(project.work, "update")
    assert result.exit_code == 1
    assert "Get the lesson again" in result.output


def test_progress_in_the_terminal(project: Project) -> None:
    said = run(project.work, "progress").output
    assert said == f"{LESSON}: 0 of 7 exercises right, 0 of 13 points\n"
