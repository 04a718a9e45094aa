"""`autograde submit`: looked at first, then one zip that `autograde collect` reads."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import classes
import nbformat
import pytest
from click.testing import Result
from conftest import HERE, run
from downloads import collect_zipped
from nbclient import NotebookClient
from nbformat import NotebookNode
from working_copy import LESSON, NOTEBOOK, answer_all, change, make_project, mine

from autograde import progress
from autograde.course.lessons import lessons
from autograde.workspace.project import Project

Cells = dict[str, NotebookNode]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A student who has answered everything and run it."""
    project = make_project(tmp_path / "student", (LESSON, "03_inf_mask"))
    answer_all(mine(project))
    for name, answer in classes.reference_answers(lessons(HERE)[LESSON]).items():
        progress.keep_attempt(project.work / LESSON, name, 0, answer)
    return project


def submit(project: Project, *arguments: str, **options: str) -> Result:
    return run(project.work, "submit", *arguments, **options)


def without(name: str) -> Callable[[Path], None]:
    def remove(path: Path) -> None:
        nb = nbformat.read(path, as_version=4)
        nb.cells = [cell for cell in nb.cells if cell.id != name]
        nbformat.write(nb, path)

    return remove


def twice(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    again = nbformat.from_dict(next(cell for cell in nb.cells if cell.id == "apply_mask"))
    nb.cells.append({**again, "id": "again"})
    nbformat.write(nbformat.from_dict(nb), path)


def ran_later(path: Path) -> None:
    """The rubric ran ten minutes after the notebook was saved."""
    note_rubric(path, "")
    os.utime(path, (time.time() - 600,) * 2)


def changed_since(path: Path) -> None:
    """The rubric ran on another answer than the one in the file, which was saved later."""
    note_rubric(path, "def apply_mask(w, m):\n    return 1")


def note_rubric(path: Path, answer: str) -> None:
    progress.keep_attempt(path.parent, "apply_mask", 2.0, answer)


def forget(path: Path) -> None:
    (path.parent.parent / progress.STATE / "progress" / LESSON / "apply_mask.json").unlink()


def of_cells(how: Callable[[Cells], None]) -> Callable[[Path], None]:
    return lambda path: change(path, how)


def half(cells: Cells) -> None:
    cells["apply_mask"].source = "def apply_mask(w, m):\n    raise NotImplementedError()"


def renamed(cells: Cells) -> None:
    """Under another name than the exercise's, a rubric finds nothing to judge."""
    cells["apply_mask"].source = "def masked(w, m):\n    return w * m"


WARNED: dict[str, tuple[Callable[[Path], object], str]] = {
    "half an answer": (of_cells(half), "apply_mask: not finished"),
    "another name": (of_cells(renamed), "apply_mask: no cell defines it under this name"),
    "rubric never run": (forget, "apply_mask: its rubric has not been run"),
    "changed rubric": (
        of_cells(lambda cells: cells["test_apply_mask"].update(source="1")),
        "test_apply_mask: the cell was changed; the original is used",
    ),
    "missing rubric": (
        without("test_apply_mask"), "test_apply_mask: the cell is missing; the original is used"
    ),
    "missing answer": (
        without("apply_mask"), "apply_mask: the cell is missing; an answer in another cell counts"
    ),
    "an answer twice": (twice, "apply_mask: the cell is there twice; the last one is used"),
    "not saved": (ran_later, "apply_mask: not saved since its rubric ran"),
    "changed since": (changed_since, "apply_mask: changed after its rubric ran"),
    "a copy beside it": (
        lambda path: shutil.copy(path, path.with_stem("copy")),
        f"not submitted, only {NOTEBOOK}.ipynb is: 'copy.ipynb'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WARNED)
def test_what_it_names_before_it_packs(kind: str, project: Project) -> None:
    spoil, said = WARNED[kind]
    spoil(mine(project))
    result = submit(project, LESSON, input="n\n")
    assert said in result.output
    assert "nothing was submitted" in result.output
    assert result.exit_code == 1
    assert not (project.work / "hand_in").exists()
    assert submit(project, LESSON, input="y\n").exit_code == 0
    assert submit(project, LESSON, "--yes").exit_code == 0


def test_a_finished_lesson_is_packed_without_a_question(project: Project) -> None:
    result = submit(project)
    assert result.exit_code == 0, result.output
    assert "Hand in" not in result.output
    assert "03_inf_mask" not in result.output  # it was not begun
    with zipfile.ZipFile(project.work / "hand_in" / f"{LESSON}.zip") as archive:
        (info,) = archive.infolist()
        assert info.filename == f"{LESSON}/{NOTEBOOK}.ipynb"
        assert archive.read(info) == mine(project).read_bytes()


def test_what_a_kernel_notes_is_held_against_the_file(project: Project) -> None:
    nb = nbformat.read(mine(project), as_version=4)
    wanted = ("setup", "apply_mask", "test_apply_mask")
    nb.cells = [cell for cell in nb.cells if cell.id in wanted]
    for _ in range(2):  # as after Restart and Run All
        NotebookClient(nb, resources={"metadata": {"path": str(mine(project).parent)}}).execute()
    os.utime(mine(project))
    said = run(project.root, "progress").output
    assert "1 of 7 exercises right, 1 of 13 points" in said
    assert "apply_mask" not in submit(project, LESSON).output
    change(mine(project), lambda cells: cells["apply_mask"].update(source="def apply_mask(): ..."))
    said = submit(project, LESSON, input="n\n").output
    assert "apply_mask: changed after its rubric ran" in said


def test_what_was_not_begun_is_said_when_it_is_asked_for(project: Project) -> None:
    result = submit(project, "03_inf_mask", "--yes")
    assert "  future_mask: not begun" in result.output.splitlines()


def test_work_that_was_never_saved_is_named(project: Project) -> None:
    path = mine(project)
    path.write_bytes((project.handed_out(LESSON) / path.name).read_bytes())
    ran_later(path)
    said = submit(project, LESSON, input="n\n").output
    assert "apply_mask: not begun" in said
    assert "apply_mask: not saved since its rubric ran" in said


def other_rubric(cells: Cells) -> None:
    cells["test_apply_mask"].metadata["nbgrader"]["checksum"] = "another"


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no notebook": (lambda path: path.write_bytes(b"no"), "The file is not JSON"),
    "empty": (lambda path: path.write_bytes(b""), "The file is empty"),
    "missing": (lambda path: path.unlink(), "The notebook was not handed in"),
    "renamed": (lambda path: path.rename(path.with_stem("mine")), "is: 'mine.ipynb'"),
    "another version": (of_cells(other_rubric), "Run: autograde update"),
    "another lesson's": (
        lambda path: shutil.copy(path.parent.parent / "03_inf_mask" / "inf_mask.ipynb", path),
        "another version of the lesson",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_not_be_graded_is_refused(kind: str, project: Project) -> None:
    spoil, said = REFUSED[kind]
    spoil(mine(project))
    result = submit(project, LESSON, "--yes")
    assert result.exit_code == 1
    assert said in result.output
    assert f"not submitted: {LESSON} could not be graded" in result.output
    assert not (project.work / "hand_in").exists()


def test_an_unknown_lesson_is_an_error(project: Project) -> None:
    result = submit(project, "07_nothing")
    assert result.exit_code == 1
    assert f"there are: {LESSON}, 03_inf_mask" in result.output


def test_a_lesson_named_twice_or_as_a_folder_is_packed_once(project: Project) -> None:
    result = submit(project, LESSON, f"{LESSON}/")
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(project.work / "hand_in" / f"{LESSON}.zip") as archive:
        assert archive.namelist() == [f"{LESSON}/{NOTEBOOK}.ipynb"]


def test_nothing_begun_is_an_error(tmp_path: Path) -> None:
    result = submit(make_project(tmp_path))
    assert result.exit_code == 1
    assert "nothing to submit" in result.output


DOWNLOADS = {
    "canvas": "doejane_123_4567_{}",
    "moodle": "c/Jane Doe_123_assignsubmission_file/{}",
}
"""Where the systems put a student's file in the download of a class."""


@pytest.mark.parametrize("system", DOWNLOADS)
@pytest.mark.parametrize("names", [(LESSON,), (LESSON, "03_inf_mask")])
def test_collect_reads_what_was_packed(
    system: str, names: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    assert submit(project, *names, "--yes").exit_code == 0
    (packed,) = (project.work / "hand_in").iterdir()
    lesson = classes.make_course(tmp_path / "course", ())
    with classes.gradebook_of(lesson.root) as gradebook:
        gradebook.update_or_create_student("123", first_name="Jane", last_name="Doe")
    collect_zipped(lesson, {DOWNLOADS[system].format(packed.name): packed.read_bytes()})
    collected = lesson.root / "submitted" / "123" / LESSON / f"{NOTEBOOK}.ipynb"
    assert collected.read_bytes() == mine(project).read_bytes()


def test_nbgraders_exchange_takes_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, home = tmp_path / "exchange", tmp_path / "home"
    (exchange / "attention" / "inbound").mkdir(parents=True)
    (exchange / "attention" / "outbound").mkdir()
    shutil.copytree(
        project.root / "notebooks" / LESSON, exchange / "attention" / "outbound" / LESSON
    )
    home.mkdir()
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(home))
    (home / "nbgrader_config.py").write_text(
        "c = get_config()\n"
        "c.CourseDirectory.course_id = 'attention'\n"
        f"c.Exchange.root = {str(exchange)!r}\n"
        f"c.Exchange.cache = {str(tmp_path / 'cache')!r}\n"
    )
    command = [sys.executable, "-m", "autograde.cli", "submit", LESSON, "--exchange"]
    result = subprocess.run(command, cwd=project.work, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (taken,) = (exchange / "attention" / "inbound").glob(f"*/{NOTEBOOK}.ipynb")
    assert taken.read_bytes() == mine(project).read_bytes()
    shutil.rmtree(exchange / "attention" / "outbound" / LESSON)
    result = subprocess.run(command, cwd=project.work, capture_output=True, text=True)
    assert result.returncode == 1
    assert f"nbgrader did not take {LESSON}; see above" in result.stderr
