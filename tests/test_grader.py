"""A grader that has changed: what it does again, and what else it refuses."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from classes import LESSON, NO_WALL, file_of, files_in, hand_in, make_course, scores
from conftest import HERE
from nightly import nightly

from autograde.course.lessons import CourseError, Lesson
from autograde.grader import GRADER, grader_of, read_grader
from autograde.grading import workers

PACKAGE = HERE / "autograde"


def copy_package(folder: Path) -> Path:
    unwanted = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, folder / "autograde", ignore=unwanted)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which only the test of single files changes something."""
    return copy_package(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("rubric/probes/draws.py", True),
        ("rubric/a_new_one.py", True),
        ("grading/feedback.html.j2", True),
        ("docs/grading.md", False),
        ("rubric/judge.py~", False),
        ("rubric/__pycache__/judge.cpython-311.pyc", False),
        ("rubric/.ipynb_checkpoints/judge-checkpoint.py", False),
        (".mypy_cache/3.11/judge.meta.json", False),
    ],
)
def test_code_and_templates_make_the_grader(own: Path, file: str, counts: bool) -> None:
    path = own / file
    old = path.read_bytes() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((old or b"") + b"\n")
    assert (read_grader(own) != GRADER) == counts
    path.unlink() if old is None else path.write_bytes(old)
    assert read_grader(own) == GRADER


CHANGES = {
    "the judge finds every tensor infinitely far": (
        "rubric/judge.py",
        "    if first is None:\n        return None\n",
        "    if first is None:\n        return Failure('infinitely far')\n",
        0,
    ),
    "half of the points are given": (
        "grading/record.py",
        "automatic[name] = verdict.points",
        "automatic[name] = verdict.points / 2",
        6.5,
    ),
    "pages greet": (
        "grading/feedback.html.j2",
        "<h1>Feedback: ",
        "<h1>Hello, feedback: ",
        13,
    ),
}
"""A change of the grader: in which file, and the score after it."""


def grade(lesson: Lesson, package: Path) -> str:
    command = [sys.executable, "-m", "autograde.cli", "grade", LESSON, *NO_WALL, "--workers", "1"]
    done = subprocess.run(
        command, cwd=lesson.root, env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Two students' work, graded by this package."""
    lesson = make_course(tmp_path_factory.mktemp("graded") / "course", ("perfect", "same"))
    said = grade(lesson, PACKAGE)
    assert "2 graded" in said
    assert "2 unchanged" in grade(lesson, PACKAGE)
    return lesson


@nightly
@pytest.mark.parametrize(("file", "old", "new", "score"), CHANGES.values(), ids=CHANGES)
def test_another_grader_runs_all_again(
    graded: Lesson, tmp_path: Path, file: str, old: str, new: str, score: float
) -> None:
    root = shutil.copytree(graded.root, tmp_path / "course")
    lesson = replace(graded, root=root)
    package = copy_package(tmp_path)
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new, 1))
    page = file_of(lesson, "perfect", "feedback").read_text()
    results = files_in(root / ".autograde" / "ran")
    assert "2 graded" in grade(lesson, package)
    assert scores(root) == {"perfect": score, "same": score}
    assert files_in(root / ".autograde" / "ran") != results
    assert file_of(lesson, "perfect", "feedback").read_text() != page
    hand_in(lesson, "newcomer", code="print('this is perfect')")
    assert "1 graded, 2 unchanged" in grade(lesson, package)
    assert set(scores(root).values()) == {score}


def test_a_worker_with_other_files_is_refused() -> None:
    workers.require_same(grader_of(""), wall=False, package="")
    with pytest.raises(CourseError, match="other files of the grader or"):
        workers.require_same("1.0.0+another", wall=False, package="")


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A Dask scheduler whose worker has a package with another judge."""
    judge = copy_package(tmp_path) / "rubric" / "judge.py"
    judge.write_text(judge.read_text() + "# another\n")
    (tmp_path / "cluster.py").write_text(CLUSTER)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "cluster.py"], cwd=tmp_path, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask (distributed) is not installed"
)
def test_a_cluster_with_other_files_is_refused(scheduler: str) -> None:
    refused = pytest.raises(CourseError, match="other files of the grader or")
    with refused, workers.on_cluster(scheduler, wall=False, package=""):
        pass
