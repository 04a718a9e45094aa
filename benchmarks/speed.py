"""Seconds a submission of lesson 01: walled, on one worker and on two, against nbgrader.

All grade the same submissions on the same machine in the same run, of two classes: one with the
reference's answers, one whose answers are variants, three in four right. What is timed is the way
of a submission without its feedback page: restore, run, judge, gradebook, graded notebook. One side
is `autograde grade`, the other `nbgrader autograde` as it comes, with an ordinary kernel and its
default preprocessors. Then once more with the pages, which `autograde grade` always makes.

    python benchmarks/speed.py [ROUNDS]
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import nbformat
from whole_class import Answered, answers, copy_of, in_a_process, make_course

from autograde.authoring.sources import source_notebook
from autograde.course import Lesson, lessons
from autograde.sandbox import template
from autograde.sandbox.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "examples"))
from make_class import fill, reference_answers  # noqa: E402

LESSON = "01_self_attention"
SUBMISSIONS = 12
OURS = {
    "one worker": (1, "--bare"),
    "two workers": (2, "--bare"),
    "one worker, with pages": (1,),
    "two workers, with pages": (2,),
}
KINDS: dict[str, Answered] = {
    "all right": lambda lesson, _: reference_answers(lesson),
    "a quarter wrong": answers,
}


def ours(lesson: Lesson, workers: int, *options: str) -> float:
    """Seconds a submission of `autograde grade`, in the last three quarters of the class."""
    with copy_of(lesson.root) as root:
        row = in_a_process(root, (lesson.name,), workers, *options)
    return 3600 / row["an hour"]


def nbgraders(lesson: Lesson, root: Path) -> float:
    """Seconds for a submission of nbgrader as it comes, in a course of its own."""
    command = [str(Path(sys.executable).with_name("nbgrader")), "autograde", LESSON, "--force"]
    began = time.perf_counter()
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    return (time.perf_counter() - began) / SUBMISSIONS


def make_plain_course(lesson: Lesson, root: Path) -> None:
    """The same submissions in a course with nbgrader's own configuration."""
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    source = root / "source" / LESSON
    source.mkdir(parents=True)
    nbformat.write(source_notebook(lesson), source / f"{lesson.notebook}.ipynb")
    command = [str(Path(sys.executable).with_name("nbgrader")), "generate_assignment", LESSON]
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    shutil.copytree(lesson.root / "submitted", root / "submitted")


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

    from autograde.sandbox.provisioner import walled_manager

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
            if b"autograde.sandbox.inside" not in (path / "cmdline").read_bytes():
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


def measure(rounds: int, kind: str) -> dict[str, float]:
    """Median seconds of each way."""
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        (lesson,) = make_course(Path(one), (LESSON,), SUBMISSIONS, KINDS[kind])
        make_plain_course(lesson, Path(two))
        found: dict[str, list[float]] = {"nbgrader": [], **{name: [] for name in OURS}}
        for number in range(rounds):
            print(f"{kind}: round {number + 1} of {rounds}", file=sys.stderr)
            found["nbgrader"].append(nbgraders(lesson, Path(two)))
            for name, (workers, *options) in OURS.items():
                found[name].append(ours(lesson, workers, *options))
    return {name: median(values) for name, values in found.items()}


def main(rounds: int) -> None:
    if problem := missing():
        sys.exit(problem)
    # nbgrader starts `alembic` by name
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sizes = memory(lessons(HERE)[LESSON])
    found = {kind: measure(rounds, kind) for kind in KINDS}
    print(f"\nmedians of {rounds} rounds, {os.cpu_count()} cores; s a submission\n")
    print(f"| graded by | {' | times nbgrader | '.join(KINDS)} | times nbgrader |")
    print(f"|{'---|' * (1 + 2 * len(KINDS))}")
    for name in ("nbgrader", *OURS):
        cells = (
            f"{each[name]:.2f} | {each['nbgrader'] / each[name]:.1f}" for each in found.values()
        )
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| memory | MB |\n|---|---|")
    for name, size in sizes.items():
        print(f"| {name} | {size} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
