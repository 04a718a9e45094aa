"""A whole class: submissions an hour, the coordinator's own time and memory, one worker and two.

The submissions are made from the variants of the built lessons: three in four exercises right, the
others wrong in a way that is known. All runs grade the same submissions, walled, on this machine.

    python benchmarks/class.py SUBMISSIONS [LESSON…] [--dask]

The coordinator's own time is that of its process, without what it waits, from the first finished
submission to the last; start and end are the same for a class of any size. A worker's first
notebook waits for its start, so take 40 submissions or more.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from autograde.authoring.build import build
from autograde.course import Lesson, choose
from autograde.grader.grade import How, grade_class
from autograde.grader.handed_in import submissions
from autograde.grader.keys import keys_for
from autograde.grader.seeds import seed_of
from autograde.grader.variants import read_variants
from autograde.kernels.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import fill  # noqa: E402

RIGHT = 0.75
COLUMNS = ("how", "seconds", "an hour", "coordinator, ms each", "coordinator, MB", "workers, MB")


def make_course(root: Path, names: tuple[str, ...], number: int) -> list[Lesson]:
    """A course with so many submissions, evenly over its lessons."""
    shutil.copytree(HERE / "source", root / "source")
    shutil.copy(HERE / "nbgrader_config.py", root)
    wanted = choose(root, names)
    rng = random.Random(5)  # noqa: S311 (a sample, no secret)
    for lesson in wanted:
        build(lesson)
    for n in range(number):
        lesson = wanted[n % len(wanted)]
        folder = root / "submitted" / f"student_{n // len(wanted):05}" / lesson.name
        folder.mkdir(parents=True)
        nb = fill(lesson, answers(lesson, rng))
        # each its own, else one result would do for all that are the same
        nb.cells.append(nbformat.v4.new_code_cell(f"print({n})"))
        nbformat.write(nb, folder / f"{lesson.notebook}.ipynb")
        keys_for(lesson, seed_of(root, lesson.name, nb))
    return wanted


def answers(lesson: Lesson, rng: random.Random) -> dict[str, str]:
    found = {}
    for exercise in lesson.exercises:
        variants = read_variants(lesson, exercise)
        kind = variants.right if rng.random() < RIGHT else variants.wrong
        found[exercise.name] = rng.choice(kind).code
    return found


def measure(root: Path, names: tuple[str, ...], how: How) -> dict[str, float]:
    """Grade the class in this process, which is the coordinator; what it took."""
    found = submissions(root, choose(root, names), None)
    marks = []
    began = time.perf_counter()
    for graded in grade_class(found, how):
        if graded.failed:
            sys.exit(f"{graded.student}: {graded.problem}")
        marks.append((time.perf_counter(), time.process_time()))
    (first, first_own), (last, last_own) = marks[0], marks[-1]
    between = len(found) - 1
    return {
        "seconds": time.perf_counter() - began,
        "an hour": between / (last - first) * 3600,
        "coordinator, ms each": (last_own - first_own) / between * 1000,
        "coordinator, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "workers, MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def in_a_process(
    root: Path, names: tuple[str, ...], workers: int, scheduler: str
) -> dict[str, float]:
    """The same in a process of its own and on a fresh copy of the course."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "course")
        shutil.copytree(root, copy)
        command = [sys.executable, __file__, "0", *names, "--measure", str(copy)]
        command += ["--workers", str(workers), "--scheduler", scheduler]
        result = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


@contextmanager
def dask(workers: int) -> Iterator[str]:
    """The address of a Dask cluster on this machine."""
    from distributed import LocalCluster

    with LocalCluster(
        workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as it:
        yield it.scheduler_address


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("submissions", type=int)
    parser.add_argument("lessons", nargs="*")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = tuple(given.lessons)
    if given.measure:
        how = How(given.workers, scheduler=given.scheduler)
        print(json.dumps(measure(given.measure, names, how)))
        return
    if problem := missing():
        sys.exit(problem)
    with TemporaryDirectory() as folder:
        root = Path(folder, "course")
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        make_course(root, names, given.submissions)
        rows = {
            "one worker": in_a_process(root, names, 1, ""),
            "two workers": in_a_process(root, names, 2, ""),
        }
        if given.dask:
            with dask(2) as address:
                rows["Dask, two workers"] = in_a_process(root, names, 2, address)
    load = os.getloadavg()[0]
    print(f"\n{given.submissions} submissions, {os.cpu_count()} cores, load {load:.1f}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(f'{row[column]:.0f}' for column in COLUMNS[1:])} |")
    one, two = rows["one worker"]["an hour"], rows["two workers"]["an hour"]
    print(f"\nefficiency of two workers: {two / one / 2:.2f}")
    if given.dask:
        print(f"Dask against processes: {rows['Dask, two workers']['an hour'] / two:.2f}")


if __name__ == "__main__":
    main()
