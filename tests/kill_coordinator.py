"""Kill the coordinator of a class before each thing it writes: what one more run makes of that.

    python tests/kill_coordinator.py COURSE

COURSE is a course that was graded undisturbed. In each trial a copy of it, in which nobody has been
graded yet, is graded again by a process that kills itself (SIGKILL) before its nth change to the
gradebook or to the course's files, and then by one that does not; n grows until nothing is left to
kill. Only the coordinator is real: jobs are not run, their results are those of COURSE. Prints
counts and differences as JSON.
"""

import itertools
import json
import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from classes import LESSON, contents, files_in, forget, grade_all, gradebook_of
from sqlalchemy import event
from sqlalchemy.engine import Engine

from autograde.course.lessons import lessons
from autograde.grading import feedback, pipeline, workers
from autograde.grading.batch import How
from autograde.grading.running.job import Ran
from autograde.grading.submission import FAILED, submissions
from autograde.sandbox import template
from autograde.sandbox.wall import missing

STUDENTS = ("perfect", "not_json")
"""One who was graded before and is run, one who is new and of whom nothing can be run."""
WALL = not missing()
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")
"""Python's own names of what a program does to files."""


keys_of = cache(pipeline.keys_of)
"""The reference runs once in the parent; each trial finds what it said."""


def run(root: Path, results: Path) -> None:
    """Grade the class, with results from elsewhere and pages that say next to nothing."""
    kept = (Ran.from_bytes(path.read_bytes()) for path in results.iterdir())
    ran = {each.key: each for each in kept if each}
    fakes: Any = pipeline
    fakes.run_job = lambda job, look, alone: ran[job.key]
    fakes.keys_of = keys_of
    feedback.page = lambda notebook, marks: b"a page"
    feedback.warm_up = lambda version: None
    fakes = workers
    fakes.start_template = lambda *_: None
    fakes.Worker = lambda *_: ThreadPoolExecutor(1)
    fakes = template
    fakes.prepare = lambda *_: None
    found = submissions(root, [lessons(root)[LESSON]], None)
    problems = [done for done in grade_all(found, How(2, WALL)) if done.outcome == FAILED]
    if problems:
        raise SystemExit(str(problems))


def in_a_process(root: Path, results: Path, last: int = 0) -> bool:
    """Grade in a child process; return whether it finished before its change number `last`."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(root)
            die_before(last, root)
            run(root, results)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status > 0:
        raise SystemExit(f"a run failed in {root}")
    return status == 0


def die_before(last: int, root: Path) -> None:
    """Have this process killed before its change number `last` to a gradebook or below a folder."""
    numbers = itertools.count(1)

    def change(*_: Any) -> None:
        if next(numbers) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(name: str, facts: tuple[Any, ...]) -> None:
        writes = name in CHANGES or (name == "open" and facts[2] & (os.O_WRONLY | os.O_RDWR))
        # what a folder that is removed holds is named from that folder
        from_a_folder = name in ("os.remove", "os.rmdir") and facts[1] != -1
        if not writes or not (from_a_folder or str(facts[0]).startswith(f"{root}/")):
            return
        if name != "os.mkdir" or not os.path.exists(facts[0]):
            change()

    sys.addaudithook(hear)
    event.listen(Engine, "commit", change)


def give_by_hand(root: Path) -> None:
    """Somebody gave points by hand where the automatic score is about to change."""
    with gradebook_of(root) as gradebook:
        (notebook,) = gradebook.find_submission(LESSON, "perfect").notebooks
        for grade_, auto in zip(notebook.grades, (-1, -2), strict=False):
            grade_.auto_score, grade_.manual_score = auto, 1.5
        gradebook.db.commit()


def files(root: Path) -> dict[str, bytes]:
    """What else a run leaves: graded notebooks, pages, its records; nothing is half-written."""
    kinds = ("autograded", "feedback", ".autograde/ran", ".autograde/graded")
    return {f"{kind}/{name}": c for kind in kinds for name, c in files_in(root / kind).items()}


def main(course: Path) -> dict[str, Any]:
    results = course / ".autograde/ran" / LESSON
    different = []
    with TemporaryDirectory() as scratch:
        start, root = Path(scratch, "start"), Path(scratch, "killed")
        shutil.copytree(course, start)
        for student in set(os.listdir(start / "submitted")) - set(STUDENTS):
            shutil.rmtree(start / "submitted" / student)
        forget(start, results=True, keep="perfect")
        notebook = lessons(start)[LESSON].notebook
        for kind, ending in (("autograded", ".ipynb"), ("feedback", ".html")):
            old = start / kind / "perfect" / LESSON  # of an earlier run; to be replaced
            old.mkdir(parents=True)
            for name in ("old.txt", f"{notebook}{ending}"):
                (old / name).write_text("old")
        give_by_hand(start)
        shutil.copytree(start, root)
        with chdir(root):
            run(root, results)  # here, so that what it has read is there in each trial
        expected = contents(root), files(root)
        shutil.rmtree(root)
        for last in itertools.count(1):
            shutil.copytree(start, root)
            if in_a_process(root, results, last):
                break
            in_a_process(root, results)
            if (contents(root), files(root)) != expected:
                different.append(last)
            shutil.rmtree(root)
    return {"kills": last - 1, "different": different}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
