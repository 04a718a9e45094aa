"""Take a student's way on this system, with the wheel installed and nothing else of the course.

JupyterLab serves, a lesson runs, a rubric judges a right answer, the lesson is packed. A teacher's
new course is built, and grading it is refused in a sentence where there is no Linux. Run it in the
wheel's environment:

    python .ci/student.py
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"
EXERCISE, ANSWER = "causal_mask", "def causal_mask(n):\n    return torch.tril(torch.ones(n, n))"
PORT, TOKEN, SECONDS = 8899, "student", 120


def autograde(*arguments: str, succeeds: bool = True) -> str:
    """Run a command; return what it says."""
    command = [found("autograde"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    said = done.stdout + done.stderr
    if (done.returncode == 0) != succeeds or "Traceback" in said:
        sys.exit(f"autograde {' '.join(arguments)} ended with {done.returncode}:\n{said}")
    return said


def found(program: str) -> str:
    """Return the path of a program of this environment."""
    folder = sysconfig.get_path("scripts")  # on Windows not that of the interpreter
    return shutil.which(program, path=folder) or sys.exit(f"there is no {program} in {folder}")


def lab_serves() -> None:
    """Start JupyterLab on the lessons, and ask it for its page."""
    address = f"http://127.0.0.1:{PORT}/lab?token={TOKEN}"
    options = ["--no-browser", f"--port={PORT}", f"--IdentityProvider.token={TOKEN}"]
    with subprocess.Popen([found("autograde"), "lab", *options]) as server:
        try:
            for _ in range(SECONDS):
                try:
                    with urllib.request.urlopen(address, timeout=10) as answer:
                        assert b"JupyterLab" in answer.read()
                    return
                except OSError:  # nothing listens yet, or it is not ready to answer
                    time.sleep(1)
            sys.exit(f"JupyterLab did not answer within {SECONDS} s")
        finally:
            server.terminate()


def lesson_runs(path: Path) -> None:
    """Fill in one exercise, run the whole lesson, and read the panel of the rubric."""
    nb = nbformat.read(path, as_version=4)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in nb.cells}
    cells[EXERCISE].source = ANSWER
    NotebookClient(nb, allow_errors=True, resources={"metadata": {"path": path.parent}}).execute()
    nbformat.write(nb, path)
    panel = cells[f"test_{EXERCISE}"].outputs[0].data["text/plain"]
    assert panel.startswith(f"{EXERCISE}: 1 of 1 point"), panel


def make_class(folder: Path) -> None:
    """Make a course in which one student has handed in a folder, and go there."""
    autograde("init", str(folder))
    Path(folder, "submitted", "ada", "01_first_lesson").mkdir(parents=True)
    os.chdir(folder)


def grading_is_refused() -> str:
    """Return what the command that grades a class says where there is no Linux."""
    said = autograde("grade", succeeds=False).strip()
    assert "Linux" in said, said
    return said


def main() -> None:
    """Take the steps one after the other; the first that fails ends the program."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ |= {"HOME": home, "USERPROFILE": home, "PYTHONIOENCODING": "utf-8"}
        os.chdir(home)
        autograde("lab", "--version")  # makes the working copy and starts no server
        print("the working copy is there")
        lab_serves()
        print("JupyterLab serves")
        project = Path(home, "attention-notebooks")
        lesson_runs(project / "work" / LESSON / f"{NOTEBOOK}.ipynb")
        print("a lesson runs, and its rubric judges")
        assert "1 of 13 points" in autograde("progress")
        print(autograde("submit", LESSON, "--yes").strip())
        make_class(Path(home, "course"))
        print(autograde("build").strip())
        if sys.platform != "linux":
            print(grading_is_refused())
        os.chdir(Path(sys.executable).anchor)


if __name__ == "__main__":
    main()
