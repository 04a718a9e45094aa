"""A whole class: what workers do in an hour, and what the coordinator needs for it.

The submissions are made from the variants of the built lessons, evenly over the lessons: three in
four exercises right, the others wrong in a way that is known. All are graded walled, and here.

    python benchmarks/whole_class.py SUBMISSIONS [LESSON…] [--rounds N] [--dask]

compares one worker with two, and two with a Dask cluster of two. Each round grades the same
submissions in every way, one after the other, each time in a fresh copy of the course; the table
shows medians, the ratios are medians of each round's. Rates are those of the last three quarters:
in the first quarter workers start, and not equally soon in each way. So take 40 or more.

    python benchmarks/whole_class.py SUBMISSIONS [LESSON…] --copies 1000 2000

measures the coordinator alone, on more submissions than a small machine can run: each submission is
graded once, then handed in again under other names until there are so many, and each such class is
graded from the beginning. A copy has the same code, so the result that is kept is its result, as in
a run that goes on after it was stopped; and what a worker has graded once, it gives again. The
coordinator does all that it does for any other submission: it reads, sends, receives, saves and
writes. How many it does in an hour is the most that one coordinator can.

The coordinator's own time is that of its process, without what it waits, over the same three
quarters; start and end are the same for a class of any size.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import nbformat

from autograde.authoring.build import build
from autograde.authoring.variants import read_variants
from autograde.course import Lesson, choose
from autograde.grading import workers
from autograde.grading.batch import How, grade_class
from autograde.grading.submission import Graded, Task, submissions
from autograde.sandbox.wall import missing
from autograde.versions import Version

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import fill  # noqa: E402

Answered = Callable[[Lesson, random.Random], dict[str, str]]
"""What a student answers: code for each exercise."""

RIGHT = 0.75
MB = 2**20
COLUMNS = ("seconds", "an hour", "coordinator, ms each", "coordinator, MB", "workers, MB")


def answers(lesson: Lesson, rng: random.Random) -> dict[str, str]:
    """For each exercise one of its variants, three in four right."""
    found = {}
    for exercise in lesson.exercises:
        variants = read_variants(lesson, exercise)
        kind = variants.right if rng.random() < RIGHT else variants.wrong
        found[exercise.name] = rng.choice(kind).code
    return found


def make_course(
    root: Path, names: tuple[str, ...], number: int, answered: Answered = answers
) -> list[Lesson]:
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
        nb = fill(lesson, answered(lesson, rng))
        # each its own, else one result would do for all that are the same
        nb.cells.append(nbformat.v4.new_code_cell(f"print({n})"))
        nbformat.write(nb, folder / f"{lesson.notebook}.ipynb")
    return wanted


def hand_in_again(root: Path, names: tuple[str, ...], number: int) -> None:
    """Copy what was handed in, under other names, until there are so many submissions."""
    found = submissions(root, choose(root, names), None)
    for n in range(len(found), number):
        student, lesson = found[n % len(found)]
        folder = root / "submitted"
        shutil.copytree(
            folder / student / lesson.name,
            folder / f"{student}_copy_{n:05}" / lesson.name,
        )


grade = workers.grade
made: dict[bytes, Graded] = {}
"""In a worker: what it has made, by a digest of the notebook."""


def grade_once(work: Task, versions: tuple[Version, ...]) -> Graded:
    name = f"{work.submission.lesson.notebook}.ipynb"
    digest = sha256(work.submission.files[name]).digest()
    if digest not in made:
        made[digest] = grade(work, versions)
    return made[digest]


def measure(
    root: Path, names: tuple[str, ...], how: How, *, again: bool = False
) -> dict[str, float]:
    """Grade the class in this process, which is the coordinator; what it took.

    Args:
        again: workers give again what they have made once.
    """
    if again:
        workers.grade = grade_once
    found = submissions(root, choose(root, names), None)
    marks = []
    began = time.perf_counter()
    for done in grade_class(found, how):
        if done.failed:
            sys.exit(f"{done.student}: {done.problem}")
        marks.append((time.perf_counter(), time.process_time()))
    warm = len(marks) // 4
    (first, first_own), (last, last_own) = marks[warm], marks[-1]
    between = len(marks) - 1 - warm
    return {
        "seconds": time.perf_counter() - began,
        "an hour": between / (last - first) * 3600,
        "coordinator, ms each": (last_own - first_own) / between * 1000,
        "coordinator, MB": _most_memory(),
        "workers, MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def _most_memory() -> float:
    """The most MB that this process has had; ru_maxrss would count those of its parent, too."""
    (line,) = (s for s in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in s)
    return int(line.split()[1]) / 1024


def on_disk(root: Path, number: int) -> dict[str, float]:
    """MB on disk for one of so many submissions, by where it lies."""
    folders = ("submitted", "autograded", "feedback", ".autograde/ran", ".autograde/graded")
    found = {name: _sizes(root / name) for name in folders}
    each = {name: sum(sizes) / number / MB for name, sizes in found.items()}
    each[".autograde/ran"] = fmean(found[".autograde/ran"]) / MB  # one for all copies
    return {**each, "gradebook": (root / "gradebook.db").stat().st_size / number / MB}


def _sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]


def in_a_process(root: Path, names: tuple[str, ...], workers: int, *more: str) -> dict[str, float]:
    """Measure it in a process of its own."""
    command = [sys.executable, __file__, "0", *names, "--measure", str(root)]
    command += ["--workers", str(workers), *more]
    result = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


@contextmanager
def copy_of(root: Path) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(shutil.copytree(root, Path(folder, "course")))


@contextmanager
def dask(workers: int) -> Iterator[str]:
    """The address of a Dask cluster on this machine."""
    from distributed import LocalCluster

    with LocalCluster(
        workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as it:
        yield it.scheduler_address


def one_round(root: Path, names: tuple[str, ...], with_dask: bool) -> dict[str, dict[str, float]]:
    rows = {}
    for name, number in (("one worker", 1), ("two workers", 2)):
        with copy_of(root) as copy:
            rows[name] = in_a_process(copy, names, number)
    if with_dask:
        with copy_of(root) as copy, dask(2) as address:
            rows["Dask, two workers"] = in_a_process(copy, names, 2, "--scheduler", address)
    return rows


def compare_workers(root: Path, names: tuple[str, ...], rounds: int, with_dask: bool) -> None:
    found = [one_round(root, names, with_dask) for _ in range(rounds)]
    print(f"| how | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for name in found[0]:
        values = (median(each[name][column] for each in found) for column in COLUMNS)
        print(f"| {name} | {' | '.join(f'{value:.0f}' for value in values)} |")
    rates = [{name: row["an hour"] for name, row in each.items()} for each in found]
    _ratio("efficiency of two workers", [r["two workers"] / r["one worker"] / 2 for r in rates])
    if with_dask:
        of_two = [r["Dask, two workers"] / r["two workers"] for r in rates]
        _ratio("Dask against processes", of_two)


def _ratio(name: str, ratios: list[float]) -> None:
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"\n{name}: {median(ratios):.2f} (each round: {each})")


def measure_coordinator(root: Path, names: tuple[str, ...], sizes: list[int]) -> None:
    cores = len(os.sched_getaffinity(0))
    with copy_of(root) as copy:  # so that the results are there, and nothing is graded
        in_a_process(copy, names, cores)
        shutil.copytree(copy / ".autograde" / "ran", root / ".autograde" / "ran")
    print(f"| {' | '.join(('submissions', *COLUMNS))} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for size in sizes:
        hand_in_again(root, names, size)
        with copy_of(root) as copy:
            row = in_a_process(copy, names, cores, "--again")
            disk = on_disk(copy, size)
        print(f"| {size} | {' | '.join(f'{row[column]:.0f}' for column in COLUMNS)} |")
    print(f"\nMB on disk for each: {', '.join(f'{name} {mb:.3f}' for name, mb in disk.items())}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("submissions", type=int)
    parser.add_argument("lessons", nargs="*")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--copies", type=int, nargs="+", metavar="N")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", default="", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = tuple(given.lessons)
    if given.measure:
        how = How(given.workers, scheduler=given.scheduler)
        print(json.dumps(measure(given.measure, names, how, again=given.again)))
        return
    if problem := missing():
        sys.exit(problem)
    # nbgrader starts `alembic` by name
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with TemporaryDirectory() as folder:
        root = Path(folder, "course")
        make_course(root, names, given.submissions)
        load = os.getloadavg()[0]
        print(
            f"\n{given.submissions} submissions, {os.cpu_count()} cores, load {load:.1f} before\n"
        )
        if given.copies:
            measure_coordinator(root, names, given.copies)
        else:
            compare_workers(root, names, given.rounds, given.dask)


if __name__ == "__main__":
    main()
