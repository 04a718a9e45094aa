"""Solutions never travel, whatever nbgrader is told to ignore; a lesson's data files do."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from classes import NO_WALL, fill, put_file, reference_answers, scores
from conftest import program, run
from nightly import few

from autograde.authoring.measure import measure
from autograde.course.config import CONFIG
from autograde.course.data_files import data_files, misplaced
from autograde.course.lessons import Lesson, lessons

NAME = "07_my_lesson"
FEW = range(1000, 1002)
"""Seeds for a measurement of which only that it happens is looked at."""

TRAVEL = {
    "data.csv": "1,2\n",
    "images/map.svg": "<svg/>",
    "helpers.py": "def twice(x): return 2 * x\n",
}
"""Plain files that a teacher puts beside the lesson."""

STAY = (
    "my_lesson.py", "tolerances.json", "variants/center_rows.md", "variants/old/center_rows.md",
    ".ipynb_checkpoints/my_lesson-checkpoint.py", ".ipynb_checkpoints/data-checkpoint.csv",
    "__pycache__/helpers.cpython-311.pyc", "images/.ipynb_checkpoints/map-checkpoint.svg",
    "old/solution.ipynb",
)  # fmt: skip
"""The author's own files, and what editors leave behind."""

IGNORED: dict[str, str] = {
    "nothing is ignored": "c.CourseDirectory.ignore = []\n",
    "the line is not there": "",
}


@pytest.fixture(params=few(IGNORED, "nothing is ignored"))
def furnished(mine: Lesson, request: pytest.FixtureRequest) -> Lesson:
    """The new lesson with files beside it, in a course that ignores this or that."""
    for name in STAY:
        path = mine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("a secret")
    for name, text in TRAVEL.items():
        path = mine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    config = mine.root / CONFIG
    text = config.read_text()
    assert "CourseDirectory.ignore" not in text
    config.write_text(text + request.param)
    return mine


def beside(folder: Path, ending: str = ".ipynb") -> set[str]:
    """The files in a folder, apart from what is made of the notebook."""
    made = {f"my_lesson{ending}", "practice.safetensors.gz", "timestamp.txt"}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert f"my_lesson{ending}" in found
    return found - made


def finish(lesson: Lesson) -> None:
    texts = (lesson.text, *lesson.folder.glob("variants/*.md"))
    for path in (lesson.root / "source" / "curriculum.toml", *texts):
        path.write_text(path.read_text().replace("REPLACE", "About"))


def hand_in(lesson: Lesson) -> None:
    nb = fill(lesson, reference_answers(lesson))
    listed = "from pathlib import Path\nprint(sorted(map(str, Path('.').rglob('*.*'))))"
    nb.cells.append(nbformat.v4.new_code_cell(listed))
    path = put_file(lesson, "ada", nb)
    (path.parent / "my_notes.txt").write_text("mine")


def by_autograde(lesson: Lesson) -> None:
    for command in (["build", NAME], ["release", str(lesson.root / "out")]):
        result = run(lesson.root, *command)
        assert result.exit_code == 0, result.output
    assert beside(lesson.root / "out" / "notebooks" / NAME) == {*TRAVEL}
    hand_in(lesson)
    result = run(lesson.root, "grade", NAME, *NO_WALL)
    assert result.exit_code == 0, result.output


def by_nbgrader(lesson: Lesson) -> None:
    def nbgrader(*command: str) -> None:
        done: subprocess.CompletedProcess[str] = program("nbgrader", *command, cwd=lesson.root)
        assert done.returncode == 0, done.stderr

    shutil.rmtree(lesson.root / "notebooks")
    shutil.rmtree(lesson.root / "solutions")
    (lesson.root / "exchange").mkdir(mode=0o777)
    nbgrader("generate_assignment", NAME)
    nbgrader("generate_solution", NAME)
    exchange = f"--Exchange.root={lesson.root / 'exchange'}"
    nbgrader("release_assignment", NAME, exchange)
    assert beside(lesson.root / "exchange" / "attention" / "outbound" / NAME) == {*TRAVEL}
    hand_in(lesson)
    nbgrader("autograde", NAME, "--create", *(["--Run.wall=False"] if NO_WALL else []))
    nbgrader("generate_feedback", NAME)


@pytest.mark.parametrize(
    "way",
    few({"by_autograde": by_autograde, "by_nbgrader": by_nbgrader}, "by_autograde"),
)
def test_only_data_files_travel_and_reach_students_code(
    furnished: Lesson, way: Callable[[Lesson], None]
) -> None:
    finish(furnished)
    way(furnished)
    root = furnished.root
    assert beside(root / "notebooks" / NAME) == {*TRAVEL}
    assert beside(root / "solutions" / NAME) == {*TRAVEL}
    assert beside(root / "autograded" / "ada" / NAME) == {*TRAVEL, "my_notes.txt"}
    assert beside(root / "feedback" / "ada" / NAME, ".html") == set()  # the page alone
    graded = nbformat.read(root / "autograded" / "ada" / NAME / "my_lesson.ipynb", as_version=4)
    (found,) = graded.cells[-1].outputs  # by the code of a student
    assert [name for name in TRAVEL if name not in found.text] == []
    assert [name for name in STAY if name in found.text] == []
    assert {name for name in STAY if (furnished.folder / name).is_file()} == {*STAY}


MISPLACED = {
    "solution.ipynb": ("{}", "is a second notebook, which nbgrader would hand out"),
    "my_lesson-Copy1.py": ("### BEGIN SOLUTION\n", "holds a solution or a marking scheme"),
    "my_lesson.html": ("<p>BEGIN MARK SCHEME</p>", "holds a solution or a marking scheme"),
    "old/my_lesson.txt": ("### BEGIN SOLUTION\n", "holds a solution or a marking scheme"),
}


def misplace(lesson: Lesson, name: str) -> str:
    """Put one of these files beside a lesson; return how it is refused."""
    content, words = MISPLACED[name]
    path = lesson.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return f"{path} {words}"


@pytest.mark.parametrize("name", MISPLACED)
def test_a_file_that_would_give_answers_away_is_refused_by_name(mine: Lesson, name: str) -> None:
    assert [*misplaced(mine)] == []
    said = misplace(mine, name)
    (refused,) = misplaced(mine)
    assert refused.startswith(said)
    assert name not in data_files(mine)


def test_every_command_refuses_files_that_would_give_answers_away(mine: Lesson) -> None:
    said = [misplace(mine, name) for name in MISPLACED]
    for command in ("build", "check"):
        result = run(mine.root, command, NAME)
        assert result.exit_code == 1
        assert [each for each in said if each not in result.output] == []
    done = program("nbgrader", "generate_assignment", "--force", NAME, cwd=mine.root)
    assert done.returncode == 1
    assert [each for each in said if each not in done.stderr] == []
    assert not (mine.root / "notebooks" / NAME).exists()


def test_what_somebody_tried_or_a_teacher_ignores_is_not_released(mine: Lesson) -> None:
    finish(mine)
    lesson = lessons(mine.root)[NAME]
    for name in ("data.csv", "private.txt"):
        (mine.folder / name).write_text("1")
    with (mine.root / CONFIG).open("a") as config:
        config.write("c.CourseDirectory.ignore.append('private*')\n")
    assert run(mine.root, "build", NAME).exit_code == 0
    assert run(mine.root, "build", "--check").exit_code == 0
    (mine.root / "exchange").mkdir(mode=0o777)
    command = ["release_assignment", NAME, f"--Exchange.root={mine.root / 'exchange'}"]
    released = mine.root / "exchange" / "attention" / "outbound" / NAME
    assert program("nbgrader", *command, cwd=mine.root).returncode == 0
    assert beside(released) == {"data.csv"}
    nb = fill(lesson, reference_answers(lesson))
    nbformat.write(nb, lesson.released_notebook)
    done = program("nbgrader", *command, "--force", cwd=mine.root)
    assert done.returncode == 1
    assert f"was changed since it was built. Run: autograde build {NAME}" in done.stderr
    assert beside(released) == {"data.csv"}  # what students can fetch is still there


def reads_a_file(lesson: Lesson) -> None:
    """Have the lesson read a file beside it, when it starts and in its answer."""
    text = lesson.text.read_text()
    text = text.replace(
        "import matplotlib.pyplot",
        'from pathlib import Path\n\nlimit = float(Path("data/limit.txt").read_text())\n'
        "import matplotlib.pyplot",
    )
    text = text.replace(
        "### BEGIN SOLUTION",
        '### BEGIN SOLUTION\n    assert limit == float(Path("data/limit.txt").read_text())',
    )
    lesson.text.write_text(text)
    (lesson.folder / "data").mkdir()
    (lesson.folder / "data" / "limit.txt").write_text("0.5")
    finish(lesson)


def test_a_lessons_own_code_reads_a_file_beside_it(mine: Lesson) -> None:
    reads_a_file(mine)
    (lesson,) = lessons(mine.root).values()
    for limit in ("0.5", "0.25"):  # another file may lead to other results
        (lesson.folder / "data" / "limit.txt").write_text(limit)
        for command in ("check", "build"):
            result = run(mine.root, command, NAME)
            assert result.exit_code == 0, result.output
        put_file(lesson, "ada", fill(lesson, reference_answers(lesson)))
        result = run(mine.root, "grade", NAME, *NO_WALL)
        assert result.exit_code == 0, result.output
        assert f"{NAME}: 1 graded" in result.output
        assert scores(mine.root, NAME) == {"ada": lesson.points}


def test_what_answers_write_and_print_stays_out_of_the_course(
    mine: Lesson, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = mine.text.read_text()
    line = "    return x - x.mean("
    deeds = "    open('left.txt', 'w').close()\n    print('printed by an answer')\n"
    mine.text.write_text(text.replace(line, deeds + line))
    monkeypatch.chdir(mine.root)
    measure(mine, seeds=FEW)
    assert "printed by an answer" not in capfd.readouterr().out
    assert not (mine.root / "left.txt").exists()
