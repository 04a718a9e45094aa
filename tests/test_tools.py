"""The tools around the lessons: environment files, nbval, Validate, stock nbgrader."""

import copy
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import nbformat
import pytest
import yaml
from click.testing import CliRunner
from conftest import HERE, program
from faults import FAULTS
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment
from nightly import nightly
from traitlets.config import Config

from autograde.authoring.sources import source_notebook
from autograde.authoring.variants import read_variants
from autograde.cli import GROUPS, main
from autograde.commands import terminal
from autograde.course.cells import grade_id
from autograde.course.config import convert
from autograde.course.lessons import Lesson, lessons
from autograde.course.package import NEEDED
from autograde.grading.batch import How
from autograde.grading.limits import LIMITS
from autograde.grading.submission import Place
from autograde.student_text import INTERRUPTED
from autograde.workspace.lab import SETTINGS
from autograde.workspace.validate import ask_for_table


def locked() -> dict[str, str]:
    lines = (HERE / "requirements.lock").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def bare(name: str) -> str:
    return re.split(r"[<>=\[; ]", name)[0].lower().replace("_", "-")


def test_environment_for_conda_pins_what_the_lock_pins() -> None:
    environment = yaml.safe_load((HERE / "environment.yml").read_text())
    pins = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    lock = locked()
    for pin in pins:
        name, version = pin.split("==")
        assert lock[name] == version
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    packages = ("autograde", "attention_course")
    lines = [line for p in packages for line in (HERE / p / NEEDED).read_text().splitlines()]
    direct = [line for line in lines if not line.startswith("#")]
    direct += project["optional-dependencies"]["dev"]
    assert {bare(pin) for pin in pins} == {bare(name) for name in direct}


def test_binder_does_what_conda_users_are_told() -> None:
    told = (HERE / "environment.yml").read_text().splitlines()
    commands = [line.removeprefix("#   ") for line in told if line.startswith("#   ")]
    script = HERE / "postBuild"
    assert script.read_text().splitlines()[-2:] == commands[-2:]
    assert os.access(script, os.X_OK)


def nbval(path: Path) -> subprocess.CompletedProcess[str]:
    return program(
        sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-n", "0",
        "--rootdir", str(path.parent), "-c", os.devnull, path.name, cwd=path.parent,
    )  # fmt: skip


@nightly
def test_nbval_notices_one_changed_digit(lesson: Lesson, tmp_path: Path) -> None:
    folder = tmp_path / lesson.name
    shutil.copytree(lesson.solution_notebook.parent, folder)
    path = folder / lesson.solution_notebook.name
    nb = nbformat.read(path, as_version=4)
    changed = next(cell for cell in nb.cells if "0.9995" in str(cell.get("outputs")))
    # of the other cells it needs what is defined in the first and in answers
    answers = ["setup", *(exercise.name for exercise in lesson.exercises)]
    nb.cells = [cell for cell in nb.cells if grade_id(cell) in answers or cell is changed]
    wrong = copy.deepcopy(changed)
    wrong.id = "wrong"
    wrong.outputs[0].text = changed.outputs[0].text.replace("0.9995", "0.9996")
    nb.cells.append(wrong)
    nbformat.write(nb, path)
    result = nbval(path)
    assert result.returncode == 1
    assert f"1 failed, {len(nb.cells) - 1} passed" in result.stdout


def test_stored_outputs_are_compared_at_all(lesson: Lesson) -> None:
    nb = nbformat.read(lesson.solution_notebook, as_version=4)
    assert all(cell.execution_count for cell in nb.cells if cell.cell_type == "code")


def shortened(notebook: Path, folder: Path) -> Path:
    """A copy of a lesson's folder in which the notebook has no cells that only show something."""
    shutil.copytree(notebook.parent, folder)
    nb = nbformat.read(notebook, as_version=4)
    nb.cells = [cell for cell in nb.cells if grade_id(cell)]
    nbformat.write(nb, folder / notebook.name)
    return folder / notebook.name


@nightly
def test_validate_tells_untouched_from_right(new_lesson: Lesson, tmp_path: Path) -> None:
    untouched = shortened(new_lesson.released_notebook, tmp_path / "released")
    solution = shortened(new_lesson.solution_notebook, tmp_path / "solution")
    said = program("nbgrader", "validate", str(untouched), str(solution), cwd=new_lesson.root)
    of_untouched, right, rest = said.stdout.partition("Success! Your notebook passes all the tests")
    assert "VALIDATION FAILED ON 1 CELL(S)" in of_untouched
    assert of_untouched.count("not written yet") == len(new_lesson.exercises)
    assert right
    assert rest.strip(" .\n") == ""


def test_stock_nbgrader_gives_a_right_notebook_nothing(new_lesson: Lesson, tmp_path: Path) -> None:
    source = tmp_path / "source" / new_lesson.name
    source.mkdir(parents=True)
    nbformat.write(source_notebook(new_lesson), source / f"{new_lesson.notebook}.ipynb")
    shortened(new_lesson.solution_notebook, tmp_path / "submitted" / "alice" / new_lesson.name)
    stock = Config(CourseDirectory={"root": str(tmp_path), "assignment_id": new_lesson.name})
    convert(GenerateAssignment, stock)
    convert(Autograde, stock)
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        submission = gradebook.find_submission(new_lesson.name, "alice")
        assert submission.max_score == new_lesson.points
        assert submission.score == 0
        (notebook,) = submission.notebooks
        assert [grade.auto_score for grade in notebook.grades] == [0] * len(new_lesson.exercises)


ANSWERED = ("causal_mask", "apply_mask")
VALIDATED = """\
    exercise             points     first wrong line
    losses_in_one_pass   0 of 2     not judged; its answer or rubric failed, or is gone
    causal_mask          1 of 1
    apply_mask           0.06 of 1  hidden weights become 0, visible ones stay
    renormalise          0 of 2     not judged; its answer or rubric failed, or is gone
    tril_causal_weights  0 of 2     not judged; its answer or rubric failed, or is gone
"""


def test_validate_says_all_of_it_in_one_table(tmp_path: Path) -> None:
    """A right answer that warns, a wrong one, a deleted rubric, and one that Python cannot read."""
    lesson = lessons(HERE)["02_causal_mask"]
    right, wrong = (read_variants(lesson, lesson.exercise(name)) for name in ANSWERED)
    warns = "\n    import warnings; warnings.warn('of no account')\n    return"
    answers = {
        "causal_mask": right.right[0].code.replace("\n    return", warns),
        "apply_mask": wrong.wrong[0].code,
        "tril_causal_weights": "def tril_causal_weights(:",
    }
    folder = tmp_path / lesson.name
    shutil.copytree(lesson.released_notebook.parent, folder)
    nb = nbformat.read(lesson.released_notebook, as_version=4)
    kept = {"setup", *answers, *(f"test_{name}" for name in answers)}
    nb.cells = [cell for cell in nb.cells if cell.id in kept]
    for cell in nb.cells:
        cell.source = answers.get(cell.id, cell.source)
    saved = folder / lesson.released_notebook.name
    nbformat.write(nb, saved)
    before = saved.read_bytes()
    said = program(
        "nbgrader", "validate", saved.name, cwd=folder, JUPYTER_CONFIG_PATH=str(SETTINGS)
    )
    assert "VALIDATION FAILED ON 1 CELL(S)" in said.stdout
    assert VALIDATED in said.stdout
    assert saved.read_bytes() == before


def test_validate_still_names_a_changed_rubric_and_a_question_without_an_answer() -> None:
    nb = nbformat.read(lessons(HERE)["05_causal_attention"].released_notebook, as_version=4)
    cells = {cell.id: cell for cell in nb.cells}
    nb.cells.append(nbformat.v4.new_code_cell(cells["test_peeks"].source))  # a student's copy
    cells["test_peeks"].source += "\n1"
    ask_for_table(nb)
    graded = {cell.id for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade")}
    assert graded == {"test_peeks", "why_buffer", nb.cells[-1].id}


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "tests/README.md",
    *(f"docs/{page.name}" for page in HERE.glob("docs/*.md")),
]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub calls them in links."""
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(), flags=re.M | re.S)
    heads = (head.lower().replace(" ", "-") for head in re.findall(r"^#+ (.+)$", text, re.M))
    return {re.sub(r"[^\w-]", "", head) for head in heads}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_links_between_pages_lead_somewhere(name: str) -> None:
    page = HERE / name
    for link in re.findall(r"\]\((?!https?:)([^)]+)", page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{name} links to {link}"


KERNEL = LIMITS.kernel
LIMITS_ON_PAGES = {
    "docs/wall.md": (
        f"{LIMITS.cell_seconds} s for a cell, {LIMITS.notebook_seconds} s for the notebook;",
        f"{KERNEL.cell_cpu_seconds} s for a cell, {KERNEL.cpu_seconds} s for the notebook, count",
        f"{KERNEL.memory_bytes >> 30} GB for all its processes",
        f"a cell that fills {KERNEL.cell_memory_bytes / 2**30} GB is interrupted",
        f"{KERNEL.address_bytes_a_process >> 30} GB of address space",
        f"{KERNEL.processes} processes, {KERNEL.files_a_process} files in each",
        f"{KERNEL.scratch_bytes >> 20} MB and",
    ),
    "docs/wall_inside.md": (
        f"{LIMITS.grace_seconds} s after the notebook's limit",
        f"has taken {LIMITS.hung_seconds} s, {LIMITS.hung_seconds + LIMITS.more_seconds} s on Dask",
    ),
    "docs/scores.md": (
        f"longer than {LIMITS.cell_seconds} s, uses more than {KERNEL.cell_cpu_seconds} s of",
        f"fills {KERNEL.cell_memory_bytes / 2**30} GB of memory",
        f"longer than {LIMITS.notebook_seconds} s |",
        f"uses more than {KERNEL.cpu_seconds} s of processor time",
        f"by more than {KERNEL.memory_bytes >> 30} GB of memory",
        f"more than {LIMITS.file_bytes // 10**6} MB |",
        f"more than {LIMITS.coloured_chars:,} characters",
    ),
}


@pytest.mark.parametrize("name", LIMITS_ON_PAGES)
def test_a_page_names_the_limits_that_the_code_has(name: str) -> None:
    page = " ".join((HERE / name).read_text().split())
    assert [said for said in LIMITS_ON_PAGES[name] if said not in page] == []


def test_help_lines_of_commands_are_short() -> None:
    lines = {name: command.get_short_help_str(limit=200) for name, command in main.commands.items()}
    assert {name: line for name, line in lines.items() if len(line) > 50} == {}


def test_the_help_lists_every_command_once_in_its_group() -> None:
    assert sorted(name for group in GROUPS for name in group.commands) == sorted(main.commands)
    said = CliRunner().invoke(main, ["--help"]).output
    assert "  lab         Open JupyterLab" in said.partition("For students:")[2]


@pytest.mark.parametrize("asked", [True, False])
def test_ctrl_c_ends_any_command_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    def stop() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            if asked:  # as a question of click does
                raise click.Abort from None
            raise

    monkeypatch.setattr(main.commands["progress"], "callback", stop)
    result = CliRunner().invoke(main, ["progress"])
    assert result.exit_code == INTERRUPTED
    assert result.output.endswith("Stopped.\n")


def test_ctrl_c_before_anything_is_graded_ends_without_a_summary(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "grade_class", break_off)
    monkeypatch.delattr(terminal, "_summary")  # an import of it that was broken off fails again
    how = How(1, wall=False, regrade=True)
    assert terminal.grade_and_show([Place("ada", lesson)], how) == INTERRUPTED
    assert "stopped: 0 of 1 are done. Run autograde grade again" in capsys.readouterr().out


def test_every_fault_of_the_list_has_its_place() -> None:
    """A fault replaces a text in a file, and a test must fail then: both have to be there."""
    names = " ".join(lessons(HERE))  # those of cases
    for fault in FAULTS:
        assert (HERE / fault.file).read_text(encoding="utf-8").count(fault.old) == 1, fault.name
        file, *which = re.split("::| -k ", fault.test)
        words = {*re.findall(r"\w+", " ".join(which))} - {"and", "or", "not"}
        tests = (HERE / file).read_text(encoding="utf-8") + names
        assert [word for word in words if word not in tests] == [], fault.name
