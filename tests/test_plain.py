"""A plain nbgrader assignment beside lessons: nbgrader grades it, and nothing else stumbles.

The assignment is the one of docs/plain.md, which shows how it becomes a lesson.
"""

import re
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from subprocess import CompletedProcess
from textwrap import dedent

import nbformat
import pytest
from classes import LESSON, NO_WALL, hand_in, make_course, put_file, scores
from conftest import HERE, program, run
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nightly import nightly

from autograde.authoring.build import generate
from autograde.authoring.marks import students_version
from autograde.course.cells import named_cells
from autograde.course.config import CONFIG, course_config
from autograde.course.lesson_files import read_text
from autograde.course.lessons import CURRICULUM, Lesson, lessons
from autograde.grading.gradebook import marks_of_class, open_gradebook
from autograde.grading.record import METADATA_KEY
from autograde.sandbox.wall import missing

HW = "hw1"
PAGE = (HERE / "docs" / "plain.md").read_text()
RUN_NO_WALL = ["--Run.wall=False"] if missing() else []


def block(name: str, indent: str = "") -> str:
    """A piece of code in docs/plain.md, by the words after its language."""
    head = rf"^{indent}(`{{3,}})\w+ {name}\n"
    found = re.search(rf"{head}(.*?)^{indent}\1$", PAGE, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[2].rstrip("\n")


def cell(name: str, code: str, points: int = 0, **kind: bool) -> NotebookNode:
    about = {"grade": False, "solution": False, "locked": False, "task": False, **kind}
    about |= {"grade_id": name, "schema_version": 3} | ({"points": points} if points else {})
    return new_code_cell(code, metadata={"nbgrader": about})


def assignment() -> NotebookNode:
    answer, tests = block("answer"), block("tests")
    cells = [
        new_markdown_cell("# Homework 1"),
        cell("spread", answer, solution=True),
        cell("test_spread", tests, 2, grade=True, locked=True),
    ]
    about = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": about})


RIGHT = "def spread(numbers):\n    return sorted(numbers)[-1] - sorted(numbers)[0]"
VISIBLE = "def spread(numbers):\n    return numbers[-1] - numbers[0]"
"""Passes the tests that students see."""
PRIES = f"""{RIGHT}
import os
home = {str(HERE)!r}
print("reads the course" if os.path.exists(os.path.join(home, "source")) else "sees no course")"""
ANSWERS = {"ada": PRIES, "bob": VISIBLE}
OWN = """
stub = "# IHRE ANTWORT\\nraise NotImplementedError()"
c.ClearSolutions.code_stub = {"python": stub, "octave": stub}
"""
"""What the course had in its configuration before it had lessons."""


def nbgrader(root: Path, *command: str) -> CompletedProcess[str]:
    result = program("nbgrader", *command, cwd=root)
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with a lesson and hw1, both handed in; nbgrader's own commands have graded hw1."""
    root = tmp_path_factory.mktemp("plain") / "course"
    lesson = make_course(root, ())
    with (root / CONFIG).open("a") as config:
        config.write(OWN)
    source = root / "source" / HW
    source.mkdir()
    nbformat.write(assignment(), source / f"{HW}.ipynb")
    (source / "numbers.csv").write_text("3,1,4\n")
    nbgrader(root, "generate_assignment", HW)
    hand_in(lesson, "ada")
    for student, answer in ANSWERS.items():
        nb = nbformat.read(root / "notebooks" / HW / f"{HW}.ipynb", as_version=4)
        nb.cells[1].source = answer
        nb.metadata[METADATA_KEY] = {"verdicts": 7}  # nobody's but the grader's to write
        folder = root / "submitted" / student / HW
        shutil.copytree(root / "notebooks" / HW, folder)
        nbformat.write(nb, folder / f"{HW}.ipynb")
    nbgrader(root, "autograde", HW, *RUN_NO_WALL)
    nbgrader(root, "generate_feedback", HW)
    return root


def read(root: Path, *place: str) -> NotebookNode:
    return nbformat.read(root.joinpath(*place, HW, f"{HW}.ipynb"), as_version=4)


def test_students_get_neither_solution_nor_hidden_tests_and_the_files_beside_it(
    course: Path,
) -> None:
    text = str(read(course, "notebooks"))
    assert "IHRE ANTWORT" in text
    assert "assert spread([1, 2, 5]) == 4" in text
    assert "BEGIN" not in text
    assert sorted(path.name for path in (course / "notebooks" / HW).iterdir()) == [
        "hw1.ipynb",
        "numbers.csv",
    ]


def test_a_stub_of_its_own_is_for_plain_assignments_alone(course: Path, tmp_path: Path) -> None:
    """Lessons have the stub that the grader knows."""
    lesson = lessons(course)[LESSON]
    made = generate(lesson, tmp_path) / f"{lesson.notebook}.ipynb"
    students = nbformat.read(made, as_version=4)
    wanted = students_version(read_text(lesson))
    assert [cell.source for cell in students.cells] == [cell.source for cell in wanted.cells]


def test_nbgrader_scores_it_by_its_asserts_the_hidden_ones_too(course: Path) -> None:
    assert scores(course, HW) == {"ada": 2, "bob": 0}
    assert METADATA_KEY not in read(course, "autograded", "bob").metadata


def test_its_page_is_nbgraders_own(course: Path) -> None:
    page = (course / "feedback" / "bob" / HW / f"{HW}.html").read_text()
    assert "hw1 (Score: 0.0 / 2.0)" in page
    assert "HIDDEN TESTS" in page
    assert "AssertionError" in page


@pytest.mark.skipif(missing() != "", reason=missing())
def test_its_code_runs_behind_the_wall(course: Path) -> None:
    assert "sees no course" in str(read(course, "autograded", "ada"))


def test_solution_is_generated_and_run(course: Path) -> None:
    nbgrader(course, "generate_solution", HW)
    solution = read(course, "solutions")
    assert [output.output_type for cell in solution.cells[1:] for output in cell.outputs] == []
    assert solution.cells[2].execution_count


@nightly  # they start the steps of the commands above
def test_formgraders_buttons_do_the_same(course: Path) -> None:
    with chdir(course):
        config = course_config(course)
        config.Run.wall = not missing()
        api = NbGraderAPI(CourseDirectory(config=config), config=config)
        assert api.generate_assignment(HW)["success"]
        done = api.autograde(HW, "bob")
        assert done["success"], done["log"]
        done = api.generate_feedback(HW, "bob")
        assert done["success"], done["log"]
    assert scores(course, HW) == {"ada": 2, "bob": 0}
    assert "hw1 (Score: 0.0 / 2.0)" in (course / "feedback/bob" / HW / "hw1.html").read_text()


def test_grade_grades_the_lessons_and_names_what_it_leaves_to_nbgrader(course: Path) -> None:
    result = run(course, "grade", "--workers", "1", *NO_WALL)
    assert result.exit_code == 0, result.output
    assert f"{LESSON}: 1 graded" in result.output
    assert "hw1: a plain assignment, left to nbgrader: nbgrader autograde hw1" in result.output
    assert "no lesson of this course" not in result.output
    assert scores(course, HW) == {"ada": 2, "bob": 0}


@pytest.mark.parametrize("command", ["grade", "build", "report", "collect", "mark"])
def test_a_command_for_lessons_says_whose_it_is(course: Path, command: str) -> None:
    result = run(course, command, HW)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "hw1 is a plain nbgrader assignment, no lesson: it is left to nbgrader" in said


def test_reports_and_exports_do_not_stumble_over_it(course: Path) -> None:
    assert run(course, "grade", "--workers", "1", *NO_WALL).exit_code == 0
    result = run(course, "report")
    assert result.exit_code == 0, result.output
    for kind, *names in (["csv"], ["canvas"], ["moodle", HW]):
        result = run(course, "export", *names, "--format", kind, "--to", f"{kind}.csv")
        assert result.exit_code == 0, result.output
    rows = (course / "csv.csv").read_text().splitlines()
    assert sorted(row.split(",")[0].strip('"') for row in rows[1:]) == [LESSON, LESSON, HW, HW]
    result = run(course, "export", HW, "--format", "canvas", "--to", "hw1.csv")
    assert result.exit_code == 0, result.output


def test_lessons_join_a_course_as_the_page_says(tmp_path: Path) -> None:
    own = "c = get_config()\nc.CourseDirectory.course_id = 'mine'\n"
    head, rest = own.split("\n", 1)
    (tmp_path / CONFIG).write_text("\n".join([head, dedent(block("configure", "   ")), rest]))
    (tmp_path / CURRICULUM).parent.mkdir()
    (tmp_path / CURRICULUM).write_text(dedent(block("curriculum", "   ")))
    result = run(tmp_path, "new", "01_first")
    assert result.exit_code == 0, result.output
    assert list(lessons(tmp_path)) == ["01_first"]
    assert course_config(tmp_path).CourseDirectory.course_id == "mine"


@nightly
def test_it_becomes_a_lesson_step_by_step(mine: Lesson) -> None:
    """As docs/plain.md says, in a new lesson; passing the visible tests is not enough there."""
    answer, rubric = (
        f"{head}\n{block(name)}\n"
        for head, name in zip(block("heads").splitlines(), ("answer", "rubric"), strict=True)
    )
    mine.text.write_text(f"{mine.text.read_text()}\n{answer}\n{rubric}")
    (mine.folder / "variants" / "spread.md").write_text(block("variants"))
    curriculum = mine.root / CURRICULUM
    curriculum.write_text(f"{curriculum.read_text().rstrip()}\n{block('points')}\n")
    for command in ("check --measure", "build"):
        result = run(mine.root, *command.split(), mine.name)
        assert result.exit_code == 0, result.output
    lesson = lessons(mine.root)[mine.name]
    nb = nbformat.read(lesson.solution_notebook, as_version=4)
    for student, code in {"ada": RIGHT, "bob": VISIBLE}.items():
        named_cells(nb)["spread"].source = code
        put_file(lesson, student, nb)
    # in a process of its own: this one's kernels see the package of another course
    command = (sys.executable, "-m", "autograde.cli", "grade", "--workers", "1", *NO_WALL)
    graded = program(*command, cwd=mine.root)
    assert graded.returncode == 0, graded.stdout + graded.stderr
    with chdir(mine.root), open_gradebook(course_config(mine.root)) as gradebook:
        marks = marks_of_class(gradebook, lesson)
    assert marks["ada"].score("test_spread") == 2
    assert marks["bob"].total() < marks["ada"].total() - 1.5


@pytest.mark.skipif(missing() != "", reason=missing())
def test_another_language_is_refused_behind_the_wall(course: Path) -> None:
    nb = assignment()
    nb.metadata.kernelspec = {"name": "octave", "display_name": "Octave", "language": "octave"}
    for place in ("source", "submitted/ada"):
        folder = course / place / "in_octave"
        folder.mkdir()
        nbformat.write(nb, folder / "in_octave.ipynb")
    nbgrader(course, "generate_assignment", "in_octave")
    result = program("nbgrader", "autograde", "in_octave", cwd=course)
    assert result.returncode == 1
    assert "a notebook in octave cannot run behind the wall" in result.stderr


def test_the_page_has_what_is_written_when_a_text_is_saved() -> None:
    _, *written = (HERE / "jupytext.toml").read_text().splitlines()
    assert [line.strip() for line in block("jupytext", "   ").splitlines()] == written
