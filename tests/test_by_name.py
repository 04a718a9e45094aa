"""The walled kernel as other tools start it: by the name of its kernelspec."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import HERE
from nightly import nightly

from autograde.sandbox import provisioner
from autograde.sandbox.wall import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NAME = "autograde-walled"
CELL = "import os\nprint(os.environ['USER'], sorted(n for n in os.listdir() if n[0] != '.'))"


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook in a folder of its own, which prints who and where it is."""
    path = tmp_path / "notebook.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)]), path)
    return path


def python(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def execute(notebook: Path) -> str:
    """What the cell prints, executed by the command of docs/wall.md."""
    text = (HERE / "docs" / "wall.md").read_text()
    (options,) = re.findall(r"^    jupyter nbconvert (.*) notebook\.ipynb$", text, re.MULTILINE)
    result = python("nbconvert", *options.split(), str(notebook))
    assert result.returncode == 0, result.stderr
    (output,) = nbformat.read(notebook, as_version=4).cells[0].outputs
    return str(output.text)


@nightly
def test_nbconvert_and_nbval_start_it(notebook: Path) -> None:
    assert execute(notebook) == "student ['notebook.ipynb']\n"
    nb = nbformat.read(notebook, as_version=4)
    wrong = nbformat.from_dict({**nb.cells[0], "id": "wrong"})
    wrong.outputs[0].text = "teacher ['notebook.ipynb']\n"
    nb.cells.append(wrong)
    nbformat.write(nb, notebook)
    pytest_of_it = ("-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(notebook.parent))
    nbval = ("--nbval", f"--nbval-kernel-name={NAME}", str(notebook))
    assert "1 failed, 1 passed" in python("pytest", *pytest_of_it, *nbval).stdout


def test_of_a_course_it_gets_nothing(notebook: Path) -> None:
    (notebook.parent / "gradebook.db").mkdir()
    assert execute(notebook) == "student []\n"


@pytest.mark.parametrize("mark", ["gradebook.db", "nbgrader_config.py", "source"])
def test_a_course_is_known_by_each_of_its_files(tmp_path: Path, mark: str) -> None:
    assert not provisioner._is_course(tmp_path)
    (tmp_path / mark).touch()
    assert provisioner._is_course(tmp_path)


@nightly
def test_papermill_starts_it(notebook: Path) -> None:
    folder = notebook.parent
    executed = folder / "executed.ipynb"
    options = ("--kernel", NAME, "--cwd", str(folder))
    result = python("papermill", *options, str(notebook), str(executed))
    assert result.returncode == 0, result.stderr
    (output,) = nbformat.read(executed, as_version=4).cells[0].outputs
    assert output.text == "student ['executed.ipynb', 'notebook.ipynb']\n"
