"""Kill the coordinator of a class at random moments: what its gradebook is after one more run.

    python tests/crash.py COURSE KILLS SEED

COURSE is a course that was graded undisturbed. In each trial a copy of it, in which nobody has been
graded yet, is graded again by a process that is killed (SIGKILL) up to three times, and then by one
that is not; there are as many trials as it takes for KILLS. Only the coordinator is real: jobs are
not run, their results are those of COURSE. Prints counts as JSON.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from classes import LESSON, contents, forget
from nbgrader.api import Gradebook

from autograde.course import lessons
from autograde.grader import grade, pages
from autograde.grader.handed_in import submissions
from autograde.grader.job import Job
from autograde.kernels.wall import missing

MOST_KILLS = 3


def run(root: Path, results: Path) -> None:
    """Grade the class, with results from elsewhere and pages that say next to nothing."""

    def run_job(job: Job) -> bytes:
        time.sleep(0.02)
        return (results / job.key).read_bytes()

    def render(_root: str, _config: bytes, graded: bytes, *_: Any) -> tuple[bytes, bytes]:
        return graded, b"a page"

    fakes: Any = grade
    fakes.Processes, fakes.run_job = ThreadPoolExecutor, run_job
    pages.render = render
    found = submissions(root, [lessons(root)[LESSON]], None)
    problems = [g for g in grade.grade_class(found, grade.How(2, not missing())) if g.failed]
    if problems:
        raise SystemExit(str(problems))


def in_a_process(root: Path, results: Path, seconds: float | None) -> bool:
    """Whether it came to its end before it was killed."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(root)
            run(root, results)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status > 0:
        raise SystemExit(f"a run failed in {root}")
    return status == 0


def give_by_hand(root: Path) -> None:
    """Somebody gave points by hand where the automatic score is about to change."""
    with Gradebook(f"sqlite:///{root}/gradebook.db", "attention") as gradebook:
        (notebook,) = gradebook.find_submission(LESSON, "perfect").notebooks
        for grade_, auto in zip(notebook.grades, (-1, -2), strict=False):
            grade_.auto_score, grade_.manual_score = auto, 1.5
        gradebook.db.commit()


def files(root: Path) -> dict[str, bytes]:
    """What else a run leaves: graded notebooks, pages, what it has written down; nothing half."""
    kinds = ("autograded", "feedback", ".autograde/done", ".autograde/graded")
    paths = (path for kind in kinds for path in (root / kind).rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def main(course: Path, kills: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)  # noqa: S311 (moments, no secrets)
    counts = {"trials": 0, "kills": 0, "runs": 0, "differences": 0}
    with TemporaryDirectory() as scratch:
        start = Path(scratch, "start")
        shutil.copytree(course, start)
        forget(start, results=True, keep="perfect")
        give_by_hand(start)
        whole = Path(scratch, "whole")
        shutil.copytree(start, whole)
        began = time.monotonic()
        in_a_process(whole, course / ".autograde/done", None)
        longest = time.monotonic() - began
        expected, expected_files = contents(whole), files(whole)
        while counts["kills"] < kills:
            counts["trials"] += 1
            root = Path(scratch, str(counts["trials"]))
            shutil.copytree(start, root)
            for _ in range(rng.randint(1, MOST_KILLS)):
                moment = rng.uniform(0.05, 1) * longest
                ended = in_a_process(root, course / ".autograde/done", moment)
                counts["kills"] += not ended
                counts["runs"] += 1
                if ended:
                    longest *= 0.8  # the first run was slower than those with warm caches
                    break
            in_a_process(root, course / ".autograde/done", None)
            counts["runs"] += 1
            counts["differences"] += contents(root) != expected or files(root) != expected_files
            shutil.rmtree(root)
    return counts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
