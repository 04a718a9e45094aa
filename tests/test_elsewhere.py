"""A class run on a Dask cluster, and a gradebook in PostgreSQL."""

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from classes import LESSON, contents, grade_all, make_course, scores
from nightly import nightly

from autograde.authoring.build import adopt
from autograde.course.lessons import CourseError, lessons
from autograde.grading import feedback, pipeline, workers
from autograde.grading.batch import How
from autograde.grading.running.job import Job, Ran
from autograde.grading.running.run import Look
from autograde.grading.submission import FAILED, UNCHANGED, Done, submissions
from autograde.sandbox.wall import missing

STUDENTS = ("perfect", "process_ended", "not_json")
WALL = not missing()

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask (distributed) is not installed"
)
needs_postgres = pytest.mark.skipif(
    not shutil.which("initdb") or importlib.util.find_spec("psycopg") is None,
    reason="a PostgreSQL server (initdb, postgres) or psycopg is not installed",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("elsewhere") / "course"
    make_course(root, STUDENTS)
    return root


@pytest.fixture
def course(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class whose pages say nothing; they are made in this process."""
    monkeypatch.setattr(workers, "Worker", lambda *_: ThreadPoolExecutor(1))
    monkeypatch.setattr(feedback, "page", lambda notebook, marks: b"a page")
    shutil.copytree(made, tmp_path / "course")
    return tmp_path / "course"


def run(root: Path, **how: Any) -> list[Done]:
    found = submissions(root, [lessons(root)[LESSON]], None)
    return grade_all(found, How(1, wall=WALL, **how))


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, which have no course."""
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    process = subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


@needs_dask
@nightly
def test_a_cluster_gives_the_scores_that_processes_give(course: Path, scheduler: str) -> None:
    assert [g.problem for g in run(course, scheduler=scheduler) if g.outcome == FAILED] == []
    assert scores(course) == {"perfect": 13, "process_ended": 11, "not_json": 0}


@needs_dask
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("somewhere", "no Dask scheduler answers at somewhere"),
        ("spaceship://x", "no Dask scheduler answers at spaceship://x"),
    ],
)
def test_a_cluster_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, address: str, message: str
) -> None:
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    # a client that failed closes itself when it is collected; while the next one starts, both wait
    gc.collect()
    with (
        pytest.raises(CourseError, match=message),
        workers.on_cluster(address, wall=WALL, package=""),
    ):
        pass


@needs_dask
def test_nobody_is_graded_without_the_cluster_that_was_named(course: Path) -> None:
    with pytest.raises(CourseError, match="no Dask scheduler answers at spaceship://x"):
        run(course, scheduler="spaceship://x")
    assert scores(course) == {}


def test_without_dask_it_says_what_to_install(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CourseError, match=r"pip install distributed"):
        run(course, scheduler="tcp://127.0.0.1:9")


@pytest.fixture
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of this test's own, reached through a socket."""
    with TemporaryDirectory(prefix="pg-") as folder:
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        command = user if os.getuid() == 0 else []
        data, quiet = f"{folder}/data", {"stdout": subprocess.DEVNULL, "check": True}
        if command:
            shutil.chown(folder, "nobody")
        subprocess.run([*command, "initdb", "-D", data, "-A", "trust", "-U", "grader", "-N"],
                       cwd=folder, **quiet)  # type: ignore[call-overload] # fmt: skip
        server = subprocess.Popen(
            [*command, "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-F"],
            cwd=folder, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stderr is not None
        for line in server.stderr:
            if "ready to accept" in line:
                break
        yield f"postgresql+psycopg://grader@/postgres?host={folder}"
        server.terminate()
        server.communicate()


@needs_postgres
def test_a_gradebook_in_postgresql_holds_the_same(
    course: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run_job(job: Job, look: Look, *, alone: bool) -> Ran:
        ran.append(job.key)
        nothing = {"outputs": [], "execution_count": 1}
        return Ran(job.key, [nothing] * len(job.cells), None, {}, 0.1)

    monkeypatch.setattr(pipeline, "run_job", run_job)
    run(course)
    expected = contents(course)
    with (course / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.CourseDirectory.db_url = {postgres!r}\n")
    (course / "gradebook.db").unlink()
    adopt(lessons(course)[LESSON])
    result = run(course)
    assert [g.problem for g in result if g.outcome == FAILED] == []
    assert contents(course, postgres) == expected
    assert not (course / "gradebook.db").exists()
    assert {g.outcome for g in run(course)} == {UNCHANGED}
    assert len(ran) == 2
