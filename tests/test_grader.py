"""A grader that has changed: what it does again, and what it says of that."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from classes import LESSON, NO_WALL, file_of, files_in, hand_in, make_course, scores
from conftest import HERE
from nightly import nightly

from autograde.course.lessons import CourseError, Lesson
from autograde.grader import GRADER, JUDGES, PARTS, RUNS, SHOWS, part_of, read_grader
from autograde.grading import workers

PACKAGE = HERE / "autograde"
PARTS_OF = (RUNS, JUDGES, SHOWS)


def copy_package(folder: Path) -> Path:
    unwanted = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, folder / "autograde", ignore=unwanted)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which only the test of single files changes something."""
    return copy_package(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("rubric/probes/draws.py", RUNS),
        ("values/packing.py", RUNS),
        ("rubric/a_new_one.py", RUNS),
        ("sandbox/control_groups.py", RUNS),
        ("course/package.py", RUNS),
        ("rubric/judge.py", JUDGES),
        ("rubric/checks.py", JUDGES),
        ("rubric/slips.py", JUDGES),
        ("grading/verdicts.py", JUDGES),
        ("grading/running/reference.py", JUDGES),
        ("grading/feedback.py", SHOWS),
        ("grading/templates/graded_notebook/index.html.j2", SHOWS),
        ("cli.py", ""),
        ("commands/for_a_class.py", ""),
        ("report/class_report.html.j2", ""),
        ("lessons/02_causal_mask/causal_mask.ipynb", ""),
        ("due.toml", ""),
        ("rubric/judge.py~", ""),
        ("rubric/__pycache__/judge.cpython-311.pyc", ""),
        ("rubric/.ipynb_checkpoints/judge-checkpoint.py", ""),
    ],
)
def test_a_file_counts_for_what_it_takes_part_in(own: Path, file: str, part: str) -> None:
    before, path = read_grader(own), own / file
    old = path.read_bytes() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((old or b"") + b"\n")
    after = read_grader(own)
    path.unlink() if old is None else path.write_bytes(old)
    changed = [each for each in PARTS_OF if getattr(after, each) != getattr(before, each)]
    assert changed == [part][: bool(part)]
    assert (after.name != before.name) == (part in (RUNS, JUDGES))


def test_a_copy_is_the_same_grader_and_every_row_names_something(tmp_path: Path) -> None:
    assert all((PACKAGE / path).exists() for path in PARTS)
    assert read_grader(copy_package(tmp_path)) == GRADER
    assert all(getattr(GRADER, part) for part in PARTS_OF)


IMPORTED = """
import sys
{imports}
print(*(m.__file__ for name, m in sys.modules.items() if name.startswith("autograde.")), sep="\\n")
"""
IN_A_KERNEL = "import autograde.notebook, autograde.sandbox.inside.warm, autograde.rubric.session"
IN_A_WORKER = "import autograde.grading.pipeline, autograde.grading.workers"
GRADES_NOTHING = {"__init__.py", "grader.py"}


@pytest.mark.parametrize("imports", [IN_A_KERNEL, IN_A_WORKER])
def test_every_module_that_grading_imports_takes_part(imports: str) -> None:
    code = IMPORTED.format(imports=imports)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    files = {Path(file).relative_to(PACKAGE).as_posix() for file in done.stdout.split()}
    assert len(files) > 20
    assert {file for file in files if not part_of(file)} <= GRADES_NOTHING


class Change(NamedTuple):
    """A change of the grader: in which file, and what is said and done after it."""

    file: str
    old: str
    new: str
    says: str
    runs: bool
    score: float


CHANGES = {
    "the judge finds every tensor infinitely far": Change(
        "rubric/judge.py",
        "    if first is None:\n        return None\n",
        "    if first is None:\n        return Failure('infinitely far')\n",
        "The grader's judge has changed since the last run: 2 submissions are judged again.",
        runs=False,
        score=0,
    ),
    "half of the points are given": Change(
        "grading/record.py",
        "automatic[name] = verdict.points",
        "automatic[name] = verdict.points / 2",
        "The grader's judge has changed since the last run: 2 submissions are judged again.",
        runs=False,
        score=6.5,
    ),
    "a probe is written in another way": Change(
        "rubric/probes/calls.py",
        '"""',
        '"""\n',
        "What the grader records has changed since the last run: "
        "2 submissions are run and judged again.",
        runs=True,
        score=13,
    ),
    "pages greet": Change(
        "grading/templates/graded_notebook/index.html.j2",
        "<h1>Feedback: ",
        "<h1>Hello, feedback: ",
        "The grader's feedback page has changed since the last run: 2 pages are made again.",
        runs=False,
        score=13,
    ),
}


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
    assert "again" not in said
    assert "2 unchanged" in grade(lesson, PACKAGE)
    return lesson


@nightly  # test_running.py asks each part for itself, with runs that take no time
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_another_grader_grades_again_what_it_would_grade_otherwise(
    graded: Lesson, tmp_path: Path, change: Change
) -> None:
    root = shutil.copytree(graded.root, tmp_path / "course")
    lesson = replace(graded, root=root)
    package = copy_package(tmp_path)
    text = (package / change.file).read_text()
    assert change.old in text
    (package / change.file).write_text(text.replace(change.old, change.new, 1))
    page = file_of(lesson, "perfect", "feedback").read_text()
    results = files_in(root / ".autograde" / "ran")
    said = grade(lesson, package)
    assert change.says in said.splitlines()
    assert "2 graded" in said
    assert scores(root) == {"perfect": change.score, "same": change.score}
    assert (files_in(root / ".autograde" / "ran") != results) == change.runs
    assert file_of(lesson, "perfect", "feedback").read_text() != page or change.runs
    hand_in(lesson, "newcomer", code="print('this is perfect')")
    said = grade(lesson, package)
    assert "1 graded, 2 unchanged" in said
    assert "again" not in said
    assert set(scores(root).values()) == {change.score}


@nightly
def test_what_an_older_package_graded_is_graded_again(graded: Lesson, tmp_path: Path) -> None:
    """Before, an entry said nothing of the grader."""
    root = shutil.copytree(graded.root, tmp_path / "course")
    lesson = replace(graded, root=root)
    for path in (root / ".autograde" / "graded" / LESSON).iterdir():
        path.write_text(re.sub(r', "grader": {[^}]*}', "", path.read_text()))
    assert "2 submissions are run and judged again." in grade(lesson, PACKAGE)


def test_a_worker_with_other_files_is_refused() -> None:
    workers.require_same(str(GRADER), wall=False, package="")
    for part in PARTS_OF:
        other = str(replace(GRADER, **{part: "another"}))
        with pytest.raises(CourseError, match="other files of the grader or"):
            workers.require_same(other, wall=False, package="")


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
