"""A course on another subject, from `autograde init` to exported grades and a student's wheel.

Every program here is started as if torch were not installed.
"""

import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import nbformat
import pytest
from classes import scores
from conftest import HERE, program
from nightly import nightly

from autograde.authoring import dist as building
from autograde.course.cells import named_cells
from autograde.course.lessons import CURRICULUM, CourseError, lessons

EXAMPLE = HERE / "examples" / "rain"
LESSON = "01_a_wet_week"


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"
"""Python runs this first, as sitecustomize.py; `import torch` fails after it."""


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No Python that is started here has torch."""
    folder = tmp_path_factory.mktemp("without")
    folder.joinpath("sitecustomize.py").write_text(WITHOUT_TORCH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        yield


def autograde(folder: Path, *arguments: str) -> str:
    done = program(sys.executable, "-m", "autograde.cli", *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rain(tmp_path_factory: pytest.TempPathFactory, without_torch: None) -> Path:
    """The example's lesson and package in a course that `autograde init` has made, and built."""
    asked = program(sys.executable, "-c", "import torch", cwd=HERE)
    assert "ModuleNotFoundError" in asked.stderr
    root = tmp_path_factory.mktemp("second") / "rain"
    autograde(root.parent, "init", "rain")
    shutil.rmtree(root / "source")
    shutil.copytree(EXAMPLE / "source", root / "source", ignore=shutil.ignore_patterns("*.ipynb"))
    shutil.copytree(EXAMPLE / "rain", root / "rain", dirs_exist_ok=True)
    autograde(root, "build")
    return root


@nightly  # test_any_course.py builds what `autograde new` writes, which is the same lesson
def test_what_init_writes_builds_and_has_no_fault_as_it_is(
    tmp_path: Path, without_torch: None
) -> None:
    autograde(tmp_path, "init", "wind")
    autograde(tmp_path / "wind", "build")
    autograde(tmp_path / "wind", "check")


@nightly  # a build refuses the same faults on the practice inputs
def test_the_example_has_no_fault(rain: Path) -> None:
    autograde(rain, "check")


def test_what_init_writes_is_what_the_example_has(rain: Path) -> None:
    for name in ("nbgrader_config.py", "jupytext.toml", "pyproject.toml"):
        assert (EXAMPLE / name).read_text() == (rain / name).read_text()


def test_a_class_is_graded_reported_and_exported(rain: Path) -> None:
    (lesson,) = lessons(rain).values()
    wrong = nbformat.read(lesson.solution_notebook, as_version=4)
    named_cells(wrong)[
        "summary"
    ].source = (
        "def summary(days):\n    return {'dry': sum(mm == 0 for mm in days), 'total': sum(days)}"
    )
    for student, notebook in (("ada", nbformat.read(lesson.solution_notebook, 4)), ("bob", wrong)):
        place = rain / "submitted" / student / LESSON / f"{lesson.notebook}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(notebook, place)
    assert "2 graded" in autograde(rain, "grade", "--no-wall", "--workers", "1")
    found = scores(rain, LESSON)
    assert found["ada"] == 6
    assert 4 <= found["bob"] < 5
    autograde(rain, "report")
    assert "A wet week" in (rain / "report" / f"{LESSON}.html").read_text()
    autograde(rain, "export", "--format", "csv", "--to", "grades.csv")
    assert "ada" in (rain / "grades.csv").read_text()


def test_its_author_can_grade_a_notebook_as_a_student_does(rain: Path) -> None:
    (lesson,) = lessons(rain).values()
    here = rain / "notebooks"  # Python itself finds what lies in the folder it starts in
    said = autograde(here, "self", "--no-open", str(lesson.released_notebook))
    assert said.count("0 of 2 points") == 3
    shutil.rmtree(rain / "work")


def test_what_students_get_is_the_courses_own(rain: Path, tmp_path: Path) -> None:
    said = autograde(rain, "release", str(tmp_path / "released"))
    assert "It does not hold the grader" in said
    assert (tmp_path / "released" / "README.md").read_text().startswith("# Rain: start")
    autograde(rain, "site")
    page = (rain / "build" / "site" / "index.html").read_text()
    assert "<title>Rain" in page
    assert "ttention" not in page


def test_a_site_without_sphinx_is_refused_in_a_sentence(rain: Path, tmp_path: Path) -> None:
    tmp_path.joinpath("sitecustomize.py").write_text("import sys; sys.modules['furo'] = None")
    command = (sys.executable, "-m", "autograde.cli", "site")
    done = program(*command, cwd=rain, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "Error: autograde site needs more packages: pip install furo\n"


@pytest.mark.parametrize(("installed", "here"), [("65.5.0", False), ("77.0.1", True), ("", False)])
def test_pip_gets_a_newer_setuptools_only_where_it_is_needed(
    installed: str, here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(name: str) -> str:
        if installed and name == "setuptools":
            return installed
        raise PackageNotFoundError(name)

    commands: list[list[str]] = []

    def noted(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "not built")

    monkeypatch.setattr(building, "version", asked)
    monkeypatch.setattr(subprocess, "run", noted)
    with pytest.raises(CourseError, match="pip built no wheel: not built"):
        building.dist(HERE, [*lessons(HERE).values()], tmp_path / "dist", apart=False)
    assert ("--no-build-isolation" in commands[0]) == here


RUN = """
import nbformat, sys
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], as_version=4)
wanted = ("setup", "summary", "test_summary")
nb.cells = [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") in wanted]
nb.cells[1].source = sys.argv[2]
done = NotebookClient(nb, resources={"metadata": {"path": sys.argv[1].rpartition("/")[0]}})
print(done.execute().cells[2].outputs[0].data["text/plain"])
"""
RIGHT = """
def summary(days):
    runs = "".join("d" if mm == 0 else " " for mm in days).split()
    return {"dry": max(map(len, runs), default=0), "total": sum(days)}
"""


def laptop(folder: Path, wheels: list[Path]) -> Path:
    """A fresh environment with these wheels; only their dependencies are borrowed."""
    venv.create(folder / "env", with_pip=False)
    (packages,) = (folder / "env").glob("lib/*/site-packages")
    packages.joinpath("borrowed.pth").write_text("\n".join(site.getsitepackages()))
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps"]
    subprocess.run([*pip, "--no-index", *map(str, wheels)], check=True)
    (folder / "home").mkdir()
    return folder / "env" / "bin"


def on(programs: Path, *command: str) -> subprocess.CompletedProcess[str]:
    home = programs.parent.parent / "home"
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    return subprocess.run(
        [programs / command[0], *command[1:]], cwd=home, env=env, capture_output=True, text=True
    )


LATER = """
[[lesson]]
name = "02_later"
notebook = "later"
title = "Later"
about = "not written yet"
minutes = 60

[lesson.points]
later = 1
"""


@nightly  # make test installs this course's own wheel, which is made in the same way
def test_one_wheel_is_all_a_student_installs(rain: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(rain, course)
    with open(course / CURRICULUM, "a", encoding="utf-8") as file:
        file.write(LATER)
    refused = program(sys.executable, "-m", "autograde.cli", "dist", cwd=course)
    assert (refused.returncode, refused.stderr[:29]) == (1, "Error: 02_later is not built ")
    autograde(course, "dist", LESSON)
    programs = laptop(tmp_path, [*(course / "dist").glob("*.whl")])
    (packages,) = (tmp_path / "env").glob("lib/*/site-packages")
    packages.joinpath("without_torch.pth").write_text(WITHOUT_TORCH)  # Debian has a sitecustomize
    assert "ModuleNotFoundError" in on(programs, "python", "-c", "import torch").stderr
    assert on(programs, "autograde", "lab", "--version").returncode == 0
    work = tmp_path / "home" / "rain" / "work" / LESSON / "a_wet_week.ipynb"
    done = on(programs, "python", "-c", RUN, str(work), RIGHT)
    assert done.stdout.startswith("summary: 2 of 2 points"), done.stderr
    assert (
        f"{LESSON}: 1 of 3 exercises right, 2 of 6 points"
        in on(programs, "autograde", "progress").stdout
    )
    said = on(programs, "autograde", "init", "my-course").stdout
    manual = Path(said.strip().rpartition("How to write a lesson: ")[2])
    assert manual.is_relative_to(tmp_path)
    assert manual.is_file()
    assert str(manual.parent) in on(programs, "autograde", "--help").stdout


@nightly
def test_two_courses_are_installed_side_by_side(rain: Path, tmp_path: Path) -> None:
    autograde(rain, "dist", "--apart")
    _, ours = building.dist(HERE, [*lessons(HERE).values()], tmp_path / "dist", apart=True)
    programs = laptop(tmp_path, [*(rain / "dist" / "apart").glob("*.whl"), ours])
    asked = on(programs, "autograde", "lab", "--version")
    assert asked.returncode == 1
    assert "these courses are installed: attention-notebooks, rain. Say which one" in asked.stderr
    for name in ("attention-notebooks", "rain"):
        assert on(programs, "autograde", "--course", name, "lab", "--version").returncode == 0
    homes = {path.name for path in (tmp_path / "home").iterdir()}
    assert {"attention-notebooks", "rain"} <= homes
