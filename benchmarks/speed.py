"""Seconds to grade a class from cold, beside nbgrader as it comes.

    python benchmarks/speed.py [--submissions 48] [--rounds 3] [--ways WAY…] [--lessons LESSON…]

Every way grades the same submissions of all lessons, a quarter of the answers wrong in ways that no
variant has. Every way starts in a fresh copy of a course whose lessons are built and in which
nothing was graded. The clock runs from the start of the command to its end: keys, kernels, feedback
pages and the gradebook included. The table shows medians; the ratios are medians of each round's.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import nbformat
from distributed import LocalCluster
from mistakes import MISTAKES

from autograde.authoring.build import adopt
from autograde.authoring.sources import source_notebook
from autograde.authoring.variants import read_variants
from autograde.course.config import CONFIG
from autograde.course.lessons import Lesson, choose
from autograde.grading.feedback import MARK_SCHEME
from autograde.progress import PRACTICE_FILE
from autograde.sandbox.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import fill, reference_answers  # noqa: E402

BIN = Path(sys.executable).parent
WRONG = 0.25
LOOK = 0.02
"""Seconds between two looks at a running command."""


@dataclass(frozen=True)
class Run:
    """What a way took: seconds to the end, to the first page, and of its own processor; MB."""

    seconds: float
    first_page: float
    own: float
    memory: float


def make_course(root: Path, names: tuple[str, ...], number: int) -> list[Lesson]:
    """Make a course with this many submissions, dealt to its lessons in turn."""
    for folder in ("source", "notebooks", "solutions"):
        shutil.copytree(HERE / folder, root / folder)
    shutil.copy(HERE / CONFIG, root)
    wanted = choose(root, names)
    for lesson in wanted:
        adopt(lesson)
    rng = random.Random(5)  # noqa: S311 (a sample, no secret)
    for n in range(number):
        lesson = wanted[n % len(wanted)]
        folder = root / "submitted" / f"student_{n // len(wanted):04}" / lesson.name
        folder.mkdir(parents=True)
        nb = fill(lesson, answers(lesson, wanted, rng))
        nb.cells.append(nbformat.v4.new_code_cell(f"print({n})"))  # no two are the same
        nbformat.write(nb, folder / f"{lesson.notebook}.ipynb")
    return wanted


def answers(lesson: Lesson, of_class: list[Lesson], rng: random.Random) -> dict[str, str]:
    """Return code for each exercise: a right variant, or one of MISTAKES."""
    names = [exercise.name for each in of_class for exercise in each.exercises]
    chance = WRONG * len(names) / sum(name in MISTAKES for name in names)
    reference, found = reference_answers(lesson), {}
    for exercise in lesson.exercises:
        old, new = MISTAKES.get(exercise.name, ("", ""))
        if old and rng.random() < chance:
            if reference[exercise.name].count(old) != 1:
                sys.exit(f"{exercise.name}: “{old}” is not there exactly once")
            found[exercise.name] = reference[exercise.name].replace(old, new)
        else:
            found[exercise.name] = rng.choice(read_variants(lesson, exercise).right).code
    return found


def make_plain_course(lessons: list[Lesson], root: Path) -> None:
    """The same submissions in a course with nbgrader's own configuration and ordinary kernels."""
    root.mkdir()
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    shutil.copytree(lessons[0].root / "submitted", root / "submitted")
    for lesson in lessons:
        source = root / "source" / lesson.name
        source.mkdir(parents=True)
        nb = source_notebook(lesson)
        for cell in nb.cells:  # nbgrader as it comes takes schemes in cells of another kind alone
            cell.source = MARK_SCHEME.sub("", cell.source)
        nbformat.write(nb, source / f"{lesson.notebook}.ipynb")
        shutil.copy(lesson.released_notebook.parent / PRACTICE_FILE, source)
        run([BIN / "nbgrader", "generate_assignment", lesson.name], root)


def run(command: list[str | Path], root: Path) -> Run:
    """Run a command in a course and look at it until it has ended.

    Raises:
        SystemExit: it failed.
    """
    began = time.perf_counter()
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    with open(root / "said.log", "w") as log:
        process = subprocess.Popen(command, cwd=root, env=env, stdout=log, stderr=log)
        first, own, memory = 0.0, 0.0, 0.0
        while process.poll() is None:
            if not first and next((root / "feedback").glob("*/*/*.html"), None):
                first = time.perf_counter() - began
            own, memory = _usage(process.pid) or (own, memory)
            time.sleep(LOOK)
    if process.returncode:
        sys.exit((root / "said.log").read_text())
    return Run(time.perf_counter() - began, first, own, memory)


def _usage(pid: int) -> tuple[float, float] | None:
    """Return a process's own seconds of processor and its most MB of memory; None when it ended."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        status = Path(f"/proc/{pid}/status").read_text()
    except ProcessLookupError:
        return None
    if "VmHWM" not in status:  # it has ended, and nobody has asked how
        return None
    most = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK"), most


def nbgrader(root: Path, lessons: list[Lesson]) -> Run:
    """Autograde and feedback as nbgrader does them, a lesson at a time."""
    steps = [
        run([BIN / "nbgrader", command, lesson.name], root)
        for command in ("autograde", "generate_feedback")
        for lesson in lessons
    ]
    largest = max(step.memory for step in steps)
    return Run(sum(s.seconds for s in steps), 0.0, sum(s.own for s in steps), largest)


def autograde(root: Path, *options: str) -> Run:
    return run([BIN / "autograde", "grade", *options], root)


@contextmanager
def dask(workers: int) -> Iterator[str]:
    """Start a cluster on this machine and give its address."""
    with LocalCluster(
        workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def measure(way: str, course: Path, plain: Path, lessons: list[Lesson]) -> Run:
    """Grade the class in this way, in a fresh copy."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        origin = plain if way == "nbgrader" else course
        root = Path(shutil.copytree(origin, Path(folder, "course")))
        match way:
            case "nbgrader":
                return nbgrader(root, lessons)
            case "one worker":
                return autograde(root, "--workers", "1")
            case "two workers":
                return autograde(root, "--workers", "2")
            case "Dask, two workers":
                return autograde(root, "--scheduler", stack.enter_context(dask(2)))
            case "one student, one lesson":
                return autograde(root, lessons[0].name, "--student", "student_0000")
            case _:  # nothing has changed
                autograde(root)
                return autograde(root)


WAYS = ("nbgrader", "one worker", "two workers", "Dask, two workers", "one student, one lesson",
        "unchanged")  # fmt: skip


def show(found: dict[str, list[Run]], number: int) -> None:
    """Print the table of medians, and the ratios to nbgrader."""
    print("| way | seconds | each | first page | own processor | MB | times nbgrader |")
    print("|---|---|---|---|---|---|---|")
    for way, runs in found.items():
        total = median(r.seconds for r in runs)
        each = f"{total / number:.2f}" if way in WAYS[:4] else ""
        first = median(r.first_page for r in runs)
        own, memory = median(r.own for r in runs), max(r.memory for r in runs)
        ratios = [a.seconds / b.seconds for a, b in zip(found.get("nbgrader", []), runs)]  # noqa: B905
        ratio = f"{median(ratios):.1f}" if ratios and each else ""
        print(
            f"| {way} | {total:.1f} | {each} | {first:.1f} | {own:.1f} | {memory:.0f} | {ratio} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--submissions", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--lessons", nargs="*", default=())
    given = parser.parse_args()
    if problem := missing():
        sys.exit(problem)
    # nbgrader starts `alembic` by name
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ["PATH"]])
    with TemporaryDirectory() as folder:
        course, plain = Path(folder, "course"), Path(folder, "plain")
        lessons = make_course(course, tuple(given.lessons), given.submissions)
        if "nbgrader" in given.ways:
            make_plain_course(lessons, plain)
        print(f"{given.submissions} submissions, {os.cpu_count()} cores, "
              f"load {os.getloadavg()[0]:.1f} before", file=sys.stderr)  # fmt: skip
        found: dict[str, list[Run]] = {way: [] for way in given.ways}
        for _ in range(given.rounds):
            for way, runs in found.items():
                runs.append(measure(way, course, plain, lessons))
                print(f"{way}: {runs[-1].seconds:.1f} s", file=sys.stderr)
    show(found, given.submissions)


if __name__ == "__main__":
    main()
