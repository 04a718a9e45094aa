"""The wheel that a student installs, and the student's part where modules of Linux are missing."""

import asyncio
import json
import os
import re
import runpy
import site
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path

import nbformat
import pytest
from classes import reference_answers
from click.testing import CliRunner
from conftest import HERE, run
from working_copy import LESSON, NOTEBOOK

import autograde
from autograde.authoring.dist import dist
from autograde.cards import CARD_FILE
from autograde.cli import main
from autograde.course.lessons import lessons
from autograde.grading.running.run import run_in_a_loop
from autograde.installed import MANUAL
from autograde.progress import PAGE, PRACTICE_FILE
from autograde.sandbox.provisioner import open_manager
from autograde.sandbox.wall import missing
from autograde.workspace.lab import SETTINGS

EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(nb, resources={"metadata": {"path": sys.argv[1].rpartition("/")[0]}}).execute()
nbformat.write(nb, sys.argv[1])
"""
OF_LINUX = ("fcntl", "resource", "pwd", "grp", "termios")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make dist` builds, in another folder."""
    (found,) = dist(HERE, [*lessons(HERE).values()], tmp_path_factory.mktemp("dist"), apart=False)
    return found


@pytest.fixture(scope="module")
def laptop(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; only its dependencies are borrowed from this one."""
    folder = tmp_path_factory.mktemp("laptop")
    (folder / "home").mkdir()
    venv.create(folder / "env", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env" / "bin" / "python")]
    install = [*pip, "install", "-qq", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, env=of_laptop(folder), check=True)
    (packages,) = (folder / "env").glob("lib/*/site-packages")
    packages.joinpath("borrowed.pth").write_text("\n".join(site.getsitepackages()))
    return folder


def of_laptop(folder: Path) -> dict[str, str]:
    """Its environment variables: of this checkout nothing is left."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**ours, "HOME": str(folder / "home"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}


def on(folder: Path, *command: str) -> str:
    """What a command of the laptop's environment says."""
    done = subprocess.run(
        [folder / "env" / "bin" / command[0], *command[1:]],
        cwd=folder / "home", env=of_laptop(folder), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_version_that_feedback_pages_name(wheel: Path) -> None:
    assert wheel.name.split("-")[1] == autograde.__version__


@pytest.mark.parametrize("page", ["README.md", "docs/student.md"])
def test_pages_name_the_wheel_in_full(wheel: Path, page: str) -> None:
    assert f"pip install {wheel.name}" in (HERE / page).read_text()


def test_the_wheel_holds_the_lessons_and_no_answers(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name for name in archive.namelist() if name.startswith("attention_course/lessons/")
        }
        texts = {name: archive.read(name).decode() for name in found if name.endswith(".ipynb")}
        named = "\n".join(archive.namelist())
    wanted = set()
    for lesson in lessons(HERE).values():
        names = (f"{lesson.notebook}.ipynb", PRACTICE_FILE, CARD_FILE)
        wanted |= {f"{lesson.name}/{name}" for name in names}
    assert found == {f"attention_course/lessons/{name}" for name in wanted}
    for name, text in texts.items():
        assert "raise NotImplementedError()" in text, name
        assert "BEGIN SOLUTION" not in text, name
    assert {
        "autograde/workspace/jupyter/nbgrader_config.py",
        "autograde/workspace/jupyter/labextensions/autograde-page/package.json",
        "autograde/workspace/jupyter/labextensions/autograde-page/static/page.js",
        "autograde/workspace/jupyter/labextensions/autograde-page/static/page.css",
        "attention_course/explorer/explorer.js",
        "attention_course/explorer/explorer.css",
        "attention_course/model/heads_4.safetensors",
    } <= set(named.splitlines())
    assert "card.md" not in named  # the models come without what trains and describes them
    no_answers = ("solutions", "other_ways", "source/", "curriculum.toml\n", "variants/0", "secret")
    for hidden in no_answers:
        assert hidden not in named


def test_the_licence_goes_where_the_code_goes(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for folder in (f"autograde/{MANUAL}", "attention_course"):
            assert archive.read(f"{folder}/LICENSE") == (HERE / "LICENSE").read_bytes()


def test_the_graders_own_wheel_says_what_an_index_shows(tmp_path: Path) -> None:
    grader, course = dist(HERE, [], tmp_path, apart=True)
    with zipfile.ZipFile(grader) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(about).decode().splitlines()
    assert {
        "Name: autograde-notebooks",
        f"Version: {autograde.__version__}",
        "Requires-Python: >=3.11",
        "License-Expression: BSD-3-Clause",
    } <= {*lines}
    with zipfile.ZipFile(course) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(about).decode()
    assert f"Requires-Dist: autograde-notebooks=={autograde.__version__}" in text
    assert "torch" in text
    assert "torch" not in "".join(lines)


def test_a_clone_that_pip_installs_brings_the_lessons_and_the_documentation(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=HERE, check=True, capture_output=True)
    assert (tmp_path / "attention_course/lessons" / LESSON / f"{NOTEBOOK}.ipynb").is_file()
    assert (tmp_path / "autograde" / MANUAL / "authoring.md").is_file()


LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def test_every_link_of_the_manual_leads_to_a_file_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
        pages = [
            name for name in names if name.startswith("autograde/docs/") and name[-3:] == ".md"
        ]
        links = [
            (page, os.path.normpath(f"autograde/docs/{link}"))
            for page in pages
            for link in LINK.findall(archive.read(page).decode())
        ]
    assert ("autograde/docs/rubric.md", "autograde/rubric/probes/lines.py") in links
    assert [(page, to) for page, to in links if to not in names] == []


FOUND = """
from jupyter_core.paths import jupyter_path
from jupyterlab_server.config import get_federated_extensions
found = get_federated_extensions(jupyter_path("labextensions"))["autograde-page"]
print(found["ext_path"], found["jupyterlab"]["_build"]["load"])
"""


def test_any_jupyterlab_beside_the_wheel_finds_the_pages_extension(laptop: Path) -> None:
    path, load = on(laptop, "python", "-c", FOUND).split()
    load, _, _ = load.partition("?")
    assert path.startswith(str(laptop / "env" / "share"))
    assert Path(path, load).is_file()
    assert Path(path, load).with_name("page.css").is_file()


def test_a_browser_asks_for_a_changed_page_anew() -> None:
    """JupyterLab's server lets browsers keep its files for a year, by their addresses."""
    extension = HERE / "autograde/workspace/jupyter/labextensions/autograde-page"
    files = ("static/page.js", "static/page.css")
    now = sha256(b"".join((extension / file).read_bytes() for file in files)).hexdigest()[:12]
    about = json.loads((extension / "package.json").read_text())
    assert about["jupyterlab"]["_build"]["load"] == f"./static/page.js?v={now}"


def test_a_student_with_nothing_but_the_wheel_solves_an_exercise(laptop: Path) -> None:
    where = on(laptop, "python", "-c", "import autograde; print(autograde.__file__)")
    assert where.startswith(str(laptop / "env"))
    where = on(laptop, "python", "-c", "import attention_course.explorer.live as l; print(l.HERE)")
    assert where.startswith(str(laptop / "env"))
    on(laptop, "autograde", "lab", "--version")  # makes the working copy and starts no server
    work = laptop / "home" / "attention-notebooks" / "work"
    row = f"]({LESSON}/{NOTEBOOK}.ipynb) | 80 | 0 of 7 exercises right, 0 of 13 points |"
    assert row in (work / PAGE).read_text()
    notebook = work / LESSON / f"{NOTEBOOK}.ipynb"
    nb = nbformat.read(notebook, as_version=4)
    wanted = ("setup", "apply_mask", "test_apply_mask")
    nb.cells = [cell for cell in nb.cells if cell.id in wanted]
    nb.cells[1].source = reference_answers(lessons(HERE)[LESSON])["apply_mask"]
    nb.cells.append(nbformat.v4.new_code_cell("import autograde; autograde.__file__"))
    nbformat.write(nb, notebook)
    on(laptop, "python", "-c", EXECUTE, str(notebook))
    nb = nbformat.read(notebook, as_version=4)
    panel = nb.cells[2].outputs[0].data["text/plain"]
    assert panel.startswith("apply_mask: 1 of 1 point")
    assert str(laptop / "env") in nb.cells[3].outputs[0].data["text/plain"]
    said = on(laptop, "autograde", "progress")
    assert f"{LESSON}: 1 of 7 exercises right, 1 of 13 points" in said
    assert "**Continue where you left off:** [02 The" in (work / PAGE).read_text()


def without_modules_of_linux(code: str, *arguments: str) -> str:
    """What Python code says where these modules cannot be imported."""
    modules = "; ".join(f"sys.modules[{name!r}] = None" for name in OF_LINUX)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {modules}; {code}", *arguments],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_students_part_imports_on_every_system() -> None:
    rooms = ("workspace", "notebook", "rubric")
    files = [path for room in rooms for path in (HERE / "autograde" / room).rglob("[!_]*.py")]
    modules = [path for path in files if path.parent != SETTINGS]
    modules += (HERE / "attention_course").rglob("[!_]*.py")
    names = [".".join(path.relative_to(HERE).with_suffix("").parts) for path in modules]
    assert {"autograde.workspace.grade_self", "attention_course.explorer.live"} <= set(names)
    without_modules_of_linux(f"import autograde.cli, {', '.join(names)}")


@pytest.mark.parametrize("command", [["grade"], ["grade", "--no-wall"]])
def test_grading_a_class_says_in_a_sentence_that_it_needs_linux(
    command: list[str], course: Path
) -> None:
    code = (
        "import os; os.chdir(sys.argv.pop(1))\n"
        "from click.testing import CliRunner; from autograde.cli import main\n"
        "import autograde.commands.terminal, sysconfig; sysconfig.get_config_vars()\n"
        "sys.platform = 'win32'\n"
        "done = CliRunner().invoke(main, sys.argv[1:]); print(done.exit_code, done.output)"
    )
    (course / "submitted" / "ada" / LESSON).mkdir(parents=True)
    said = without_modules_of_linux(code, str(course), *command)
    assert said.startswith("1 ")
    assert said.strip().endswith("Error: Grading a class needs Linux. On Windows, use WSL.")
    assert "--no-wall" not in said


def test_where_there_are_no_sockets_in_files_a_kernel_listens_on_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert open_manager(tmp_path).transport == "ipc"
    monkeypatch.delattr(socket, "AF_UNIX")
    assert open_manager(tmp_path).transport == "tcp"


def test_a_run_has_a_loop_on_which_zmq_works_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class OfWindows(asyncio.SelectorEventLoop):
        """The loop that asyncio makes by default there."""

    loops = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())

    monkeypatch.setattr(asyncio.events, "new_event_loop", OfWindows)
    run_in_a_loop(work, Future())
    assert [type(loop) for loop in loops] == [asyncio.SelectorEventLoop]


def test_programs_are_found_that_do_not_lie_beside_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", {"scripts": "/python/scripts"}.get)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    run(tmp_path, "progress")
    assert os.environ["PATH"].split(os.pathsep)[0] == "/python/scripts"


def test_what_a_file_cannot_hold_stops_no_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    done = CliRunner(charset="cp1252").invoke(main, ["init", "kurs_für_Łukasz"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("kurs_für_?ukasz holds the course")


def test_the_way_that_macos_and_windows_are_to_take_ends_with_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The parts of `.ci/student.py` that Linux alone does not take."""
    program = runpy.run_path(str(HERE / ".ci" / "student.py"))
    globals_of = program["grading_is_refused"].__globals__

    def autograde(*arguments: str, succeeds: bool = True) -> str:
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code == 0) == succeeds, done.output
        return done.output

    monkeypatch.setitem(globals_of, "autograde", autograde)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    program["make_class"](tmp_path / "course")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("autograde.grading.batch.missing", missing.__wrapped__)
    assert "walled off on Linux only" in program["grading_is_refused"]()


def test_a_program_is_found_where_pip_puts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = runpy.run_path(str(HERE / ".ci" / "student.py"))["found"]
    program = tmp_path / "autograde"
    program.touch(0o755)
    monkeypatch.setattr(sysconfig, "get_path", {"scripts": str(tmp_path)}.get)
    assert find("autograde") == str(program)
