"""Whole submissions of lesson 01 a second: walled, on one worker and on two, against nbgrader.

All three grade the same submissions on the same machine in the same run. What is timed is the
way of a submission without its feedback page: sanitise, run, judge, gradebook. The other side is
`nbgrader autograde` as it comes, with an ordinary kernel and its default preprocessors. Then all
of it once more, without the cells that draw figures: they cost the same on either side.

    python benchmarks/speed.py [ROUNDS]
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbgrader.converters import Autograde
from traitlets.config import Config

from autograde.authoring.build import build
from autograde.authoring.sources import source_notebook
from autograde.course import Lesson, lessons
from autograde.course_config import convert, course_config
from autograde.kernels import template
from autograde.kernels.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import fill, reference_answers  # noqa: E402

LESSON = "01_self_attention"
STUDENTS = [f"student_{n:02}" for n in range(8)]
PEERS = STUDENTS[:3]
"""nbgrader takes its time, so it grades fewer; what counts is seconds a submission."""


FIGURE = "# draws the figure"
"""So begin the lesson's cells that do nothing else."""


def make_course(root: Path, *, figures: bool) -> Lesson:
    """A course in which everyone handed in the reference, each with a line of their own."""
    shutil.copytree(HERE / "source", root / "source")
    shutil.copy(HERE / "nbgrader_config.py", root)
    lesson = lessons(root)[LESSON]
    build(lesson)
    for student in STUDENTS:
        nb = fill(lesson, reference_answers(lesson))
        nb.cells = [cell for cell in nb.cells if figures or not cell.source.startswith(FIGURE)]
        nb.cells.append(nbformat.v4.new_code_cell(f"print('this is {student}')"))
        folder = root / "submitted" / student / LESSON
        folder.mkdir(parents=True)
        nbformat.write(nb, folder / f"{lesson.notebook}.ipynb")
    return lesson


@lru_cache(maxsize=1)
def configuration(root: Path) -> Config:
    """Read once by each worker, as by a run over a class on either side."""
    return course_config(root)


def grade(job: tuple[Lesson, str]) -> float:
    """Grade one submission, without its feedback; the seconds it took."""
    lesson, student = job
    os.chdir(lesson.root)
    began = time.perf_counter()
    config = deepcopy(configuration(lesson.root))
    config.CourseDirectory.student_id = student
    config.CourseDirectory.assignment_id = lesson.name
    config.Autograde.force = True
    convert(Autograde, config)
    return time.perf_counter() - began


def ours(lesson: Lesson, workers: int) -> float:
    """Seconds for a submission, once every worker is warm."""
    jobs = [(lesson, student) for student in STUDENTS]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(grade, jobs))  # starts the workers' templates and makes the answer keys
        began = time.perf_counter()
        list(pool.map(grade, jobs))
        return (time.perf_counter() - began) / len(jobs)


def nbgraders(lesson: Lesson, root: Path) -> float:
    """Seconds for a submission of nbgrader as it comes, in a course of its own."""
    command = [str(Path(sys.executable).with_name("nbgrader")), "autograde", LESSON, "--force"]
    began = time.perf_counter()
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    return (time.perf_counter() - began) / len(PEERS)


def make_plain_course(lesson: Lesson, root: Path) -> None:
    """The same submissions in a course with nbgrader's own configuration."""
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    source = root / "source" / LESSON
    source.mkdir(parents=True)
    nbformat.write(source_notebook(lesson), source / f"{lesson.notebook}.ipynb")
    command = [str(Path(sys.executable).with_name("nbgrader")), "generate_assignment", LESSON]
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    for student in PEERS:
        shutil.copytree(lesson.root / "submitted" / student, root / "submitted" / student)


def memory(lesson: Lesson) -> dict[str, int]:
    """Megabytes of the template, and private to a kernel that has just run the lesson's code."""
    code = "\n".join(cell.source for cell in fill(lesson, reference_answers(lesson)).cells
                     if cell.cell_type == "code" and "rubric" not in cell.source)  # fmt: skip
    with _one_kernel(code):
        found = dict(_processes())
    return found


@contextmanager
def _one_kernel(code: str) -> Iterator[None]:
    import asyncio

    from jupyter_client.blocking.client import BlockingKernelClient

    from autograde.kernels.private import walled_manager

    manager = walled_manager()
    asyncio.run(manager.start_kernel(cwd="/var/empty"))
    client = BlockingKernelClient(**manager.get_connection_info(session=True))
    client.start_channels()
    client.execute_interactive(code, output_hook=lambda _: None, timeout=120)
    yield
    client.stop_channels()
    template.close()


def _processes() -> Iterator[tuple[str, int]]:
    names = {2: "template, resident", 3: "kernel at work, private"}
    for path in Path("/proc").iterdir():
        try:
            if b"autograde.kernels.inside" not in (path / "cmdline").read_bytes():
                continue
            if (path / "comm").read_text().startswith("bwrap"):
                continue
            status = (path / "status").read_text()
            depth = len(status.split("NSpid:")[1].splitlines()[0].split())
            lines = (path / "smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        size = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines}
        first = status.split("NSpid:")[1].splitlines()[0].split()[-1] == "1"
        if depth in names and not first:
            key = "Rss" if depth == 2 else "Private_Dirty"
            yield names[depth], size[key]


def measure(rounds: int, *, figures: bool) -> dict[str, float | int]:
    """Median seconds of each way; with figures the memory is measured too, in MB."""
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        lesson = make_course(Path(one), figures=figures)
        make_plain_course(lesson, Path(two))
        seconds: dict[str, list[float]] = {"nbgrader": [], "one worker": [], "two workers": []}
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            seconds["nbgrader"].append(nbgraders(lesson, Path(two)))
            seconds["one worker"].append(ours(lesson, 1))
            seconds["two workers"].append(ours(lesson, 2))
        sizes = memory(lesson) if figures else {}
    return {name: statistics.median(values) for name, values in seconds.items()} | sizes


def main(rounds: int) -> None:
    if problem := missing():
        sys.exit(problem)
    whole, bare = measure(rounds, figures=True), measure(rounds, figures=False)
    print(f"\nmedians of {rounds} rounds, {os.cpu_count()} cores\n")
    print("| graded by | s a submission | times nbgrader | s without figures | times nbgrader |")
    print("|---|---|---|---|---|")
    for name in bare:
        found = (
            f"{each[name]:.2f} | {each['nbgrader'] / each[name]:.1f}" for each in (whole, bare)
        )
        print(f"| {name} | {' | '.join(found)} |")
    print("\n| memory | MB |\n|---|---|")
    for name in whole:
        if name not in bare:
            print(f"| {name} | {whole[name]} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
