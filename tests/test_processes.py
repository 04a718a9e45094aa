"""Worker processes: one that dies harms nobody else, and none outlives its coordinator."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
import worker_jobs as jobs

from autograde.grading import workers
from autograde.grading.limits import Limits
from autograde.grading.workers import Worker, WorkerDied

COORDINATOR = """
import sys
sys.path.insert(0, {here!r})
import worker_jobs as jobs
from autograde.grading.workers import Worker
if __name__ == "__main__":
    future = Worker().submit(jobs.note_and_wait, {mark!r})
    future.exception()
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as one:
        yield one


def until(true: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def lives(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


def test_a_job_that_kills_its_worker_is_given_up_and_the_others_are_done(worker: Worker) -> None:
    bad = worker.submit(jobs.die)
    others = [worker.submit(jobs.pid) for _ in range(6)]
    with pytest.raises(WorkerDied, match="died without saying why"):
        bad.result()
    assert all(other.result() > 0 for other in others)


def test_a_job_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker() as worker:
        worker.submit(jobs.pid).result()
        monkeypatch.setattr(workers, "LIMITS", Limits(hung_seconds=2))
        with pytest.raises(WorkerDied, match="after 2 s"):
            worker.submit(jobs.note_and_wait, str(tmp_path / "mark")).result()
        until(lambda: not lives(int((tmp_path / "mark").read_text())))


def test_a_job_may_raise_what_a_wait_raises(worker: Worker) -> None:
    process = worker.submit(jobs.pid).result()
    with pytest.raises(TimeoutError, match="the database is slow"):
        worker.submit(jobs.time_out).result()
    assert worker.submit(jobs.pid).result() == process


STUCK = """
import re
from autograde.grading.workers import at_most
with at_most(0.1):
    pass
with at_most(1):
    re.match("(a+)+$", "a" * 60 + "b")  # takes years, and no other thread runs meanwhile
"""


def test_a_process_ends_in_time_even_in_a_call_that_keeps_python_waiting() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert time.monotonic() - began > 1


LAST_RESORT = """
import asyncio, re
from autograde.grading import nbgrader_steps
from autograde.grading.limits import Limits
nbgrader_steps.LIMITS = Limits(hung_seconds=0, more_seconds=1)
def hang(length):
    with nbgrader_steps.last_resort():
        re.match("(a+)+$", "a" * length + "b")
async def serve():
    hang(25)  # some seconds
asyncio.run(serve())
print("served", flush=True)
hang(60)
"""


def test_nbgraders_command_ends_with_a_submission_that_hangs_and_formgraders_server_does_not() -> (
    None
):
    done = subprocess.run(
        [sys.executable, "-c", LAST_RESORT], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "served\n"
    assert done.returncode == 1
    assert "Timeout" in done.stderr


def test_the_template_starts_with_the_first_job_where_ctrl_c_is_not_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocked: list[set[int]] = []

    def started(package: str) -> None:
        blocked.append({*signal.pthread_sigmask(signal.SIG_BLOCK, [])})

    monkeypatch.setattr(workers, "start_template", started)
    with Worker(wall=True) as worker:
        assert not blocked
        worker.submit(jobs.pid).result()
    assert [signal.SIGINT in each for each in blocked] == [False]


SERVER = r"""
import os, re
from multiprocessing import forkserver
from pathlib import Path
from autograde.grading.workers import Worker
with Worker() as worker:
    worker.submit(os.getpid).result()
    status = Path("/proc", str(forkserver._forkserver._forkserver_pid), "status").read_text()
print(int(re.search(r"^SigBlk:\t(\w+)", status, re.MULTILINE)[1], 16) >> SIGINT - 1 & 1)
"""


def test_ctrl_c_does_not_reach_the_process_that_workers_are_forked_from() -> None:
    """It imports for a while first, and would show where it was interrupted."""
    code = SERVER.replace("SIGINT", str(int(signal.SIGINT)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1\n", done.stderr


BROKEN = """
from autograde.grading.workers import Worker, get_ready
with Worker(package="broken") as worker:
    print(repr(worker.submit(get_ready, False, "broken").exception()))
"""


def test_a_package_that_fails_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("import json\n1 / 0\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", BROKEN],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("Halted(\"the course's package broken cannot be imported: ")
    assert f"ZeroDivisionError: division by zero ({tmp_path}/broken/__init__.py, " in done.stdout
    assert "line 2)" in done.stdout


def test_an_exception_comes_back(worker: Worker) -> None:
    with pytest.raises(ValueError, match="as it should"):
        worker.submit(jobs.fail).result()


def test_stopping_ends_what_runs_at_once(tmp_path: Path) -> None:
    worker = Worker()
    running = worker.submit(jobs.note_and_wait, str(tmp_path / "mark"))
    waiting = worker.submit(jobs.pid)
    until((tmp_path / "mark").is_file)
    began = time.monotonic()
    worker.shutdown(cancel_futures=True)
    assert time.monotonic() - began < 10
    assert isinstance(running.exception(), WorkerDied)
    with pytest.raises(CancelledError):
        waiting.result()


def test_no_worker_outlives_a_killed_coordinator(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR.format(here=str(Path(__file__).parent), mark=str(mark)))
    with subprocess.Popen([sys.executable, script]) as coordinator:
        until(lambda: mark.is_file() and mark.read_text())
        coordinator.kill()
    process = int(mark.read_text())
    until(lambda: not lives(process))


def test_ctrl_c_does_not_reach_a_worker(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    worker = Worker()
    worker.submit(jobs.note_and_wait, str(mark))
    until(lambda: mark.is_file() and mark.read_text())
    process = int(mark.read_text())
    assert os.getpgid(process) != os.getpgid(0)
    worker.shutdown(cancel_futures=True)
    until(lambda: not lives(process))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
