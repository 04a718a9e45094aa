"""A class on the hub of deploy/hub: how long each student waits, and what each one takes.

    python benchmarks/hub.py [STUDENTS…]

It needs what `make hub` needs: root, Node, the hub's packages. Groups of students (1, 5, 10 and 20
if no sizes are given) sign in at the same moment, each with a server and a kernel of their own.
Each one fetches lesson 02, opens it, runs all cells, answers three exercises and runs their
rubrics, saves and submits, without a pause to think. While the last group but one works, the
instructor collects and grades what the groups before it submitted. Prints a table in Markdown.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

import nbformat
import psutil
from student import COURSE, STEPS, Student, Task, work

from autograde.authoring.variants import find_variant
from autograde.course.lessons import lessons

HERE = Path(__file__).resolve().parent.parent
sys.path += [str(HERE / "examples"), str(HERE / "tests")]
from make_class import reference_answers  # noqa: E402
from running_hub import Hub, passwords_in  # noqa: E402

SIZES = (1, 5, 10, 20)
LESSON = "02_causal_mask"
RIGHT, WRONG = ("losses_in_one_pass", "apply_mask"), ("causal_mask", "one_too_many")
START_SECONDS, STOP_SECONDS = 300, 60
KERNEL, SERVER = "ipykernel_launcher", "jupyterhub.singleuser"
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Group:
    """What one group of students met."""

    students: list[Student]
    load: float
    kernel: float
    server: float
    lost: dict[str, str]
    graded: str


@contextmanager
def running(names: list[str], said: Path) -> Iterator[Hub]:
    """A hub with these students, gone at the end."""
    with socket.create_server(("127.0.0.1", 0)) as some:
        port = some.getsockname()[1]
    people = {name: f"Student {name.upper()}" for name in names}
    program = f"import hub; hub.main({port}, [], {people!r})"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # as `make hub`
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=HERE / "deploy" / "hub", stdout=out, stderr=out,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
    try:
        until = time.monotonic() + START_SECONDS
        while "Ctrl-C stops it" not in said.read_text():
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"The hub did not start:\n{said.read_text()}")
            time.sleep(0.5)
        yield Hub(f"http://127.0.0.1:{port}", passwords_in(said), process)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def as_instructor(hub: Hub, *command: str) -> list[str]:
    """Return a command that runs another one as the instructor, in the course."""
    return [
        "nsenter", f"--target={hub.first.pid}", "--mount", "--pid",
        "setpriv", "--reuid=instructor", "--regid=instructor", "--init-groups", "env",
        "--chdir=/home/instructor/course", "HOME=/home/instructor", "OMP_NUM_THREADS=1",
        f"PATH={HERE}/.venv/bin:{os.environ['PATH']}",
        f"JUPYTER_CONFIG_PATH={HERE}/deploy/hub/everyone", *command,
    ]  # fmt: skip


def task() -> Task:
    """Two right answers and a wrong one."""
    lesson = lessons(HERE)[LESSON]
    right = reference_answers(lesson)
    answers = {name: (right[name], True) for name in RIGHT}
    answers[WRONG[0]] = (find_variant(HERE, *WRONG).code, False)
    return Task(LESSON, lesson.notebook, answers)


async def group(hub: Hub, names: list[str], what: Task, grade: bool) -> Group:
    """Let so many students work at the same time; measure their memory before their servers end."""
    load = os.getloadavg()[0]
    students = [Student(name, hub.passwords[name], hub.url) for name in names]
    works = [work(student, what) for student in students]
    grading = asyncio.create_task(collect_and_grade(hub)) if grade else None
    ended = await asyncio.gather(*works, return_exceptions=True)
    kernels, servers = memory(hub, KERNEL), memory(hub, SERVER)
    graded = await grading if grading else ""
    lost = {name: "not in the exchange" for name in names if not submitted(hub, name, what)}
    lost |= {name: repr(why) for name, why in zip(names, ended, strict=True) if why is not None}
    stop_servers(hub)
    return Group(students, load, kernels / len(names), servers / len(names), lost, graded)


async def collect_and_grade(hub: Hub) -> str:
    """Collect and grade as the instructor; return what that said and how long it took."""
    start = time.monotonic()
    for command in (("nbgrader", "collect", LESSON), ("autograde", "grade", LESSON)):
        running = await asyncio.create_subprocess_exec(
            *as_instructor(hub, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said = (await running.communicate())[0].decode()
        if running.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{said}")
    return f"{said.strip()} ({time.monotonic() - start:.0f} s)"


def running_on(hub: Hub, program: str) -> list[psutil.Process]:
    """Return the processes that run a program."""
    found = []
    for process in hub.processes():
        with suppress(psutil.Error):  # it has ended meanwhile
            if program in " ".join(process.cmdline()):
                found.append(process)
    return found


def memory(hub: Hub, program: str) -> float:
    """Return the megabytes of all processes that run a program, each with its share of pages."""
    return sum(p.memory_full_info().pss for p in running_on(hub, program)) / MEGABYTE


def submitted(hub: Hub, name: str, what: Task) -> bool:
    """Return whether all that a student typed has arrived in the exchange."""
    seen_by_hub = Path("/proc", str(hub.first.pid), "root")
    inbound = seen_by_hub / "srv" / "exchange" / COURSE / "inbound"
    typed = {code for code, _ in what.answers.values()}
    return any(
        typed <= {cell.source for cell in nbformat.read(file, as_version=4).cells}
        for file in inbound.glob(f"{name}+{what.lesson}+*/{what.notebook}.ipynb")
    )


def stop_servers(hub: Hub) -> None:
    """End the servers of a group, with their kernels."""
    servers = running_on(hub, SERVER)
    for server in servers:
        server.terminate()
    psutil.wait_procs(servers, STOP_SECONDS)


def heading(group: Group) -> str:
    number = len(group.students)
    return f"{number}{', and grading' if group.graded else ''}"


def waits(seconds: list[float]) -> str:
    """Return the median and the 95th percentile."""
    if len(seconds) < 2:
        return " ".join(f"{one:.1f}" for one in seconds)
    steps = quantiles(seconds, n=20, method="inclusive")
    return f"{steps[9]:.1f} / {steps[18]:.1f}"


def table(groups: list[Group]) -> str:
    """Return all that was measured."""
    rows = [
        ["students at once", *map(heading, groups)],
        ["---", *("--:" for _ in groups)],
    ]
    for step in STEPS:
        rows.append(
            [step, *(waits([t for s in g.students for t in s.seconds[step]]) for g in groups)]
        )
    rows += [
        [
            "asked to wait for a server (times)",
            *(str(sum(len(s.refusals) for s in g.students)) for g in groups),
        ],
        ["MB a student: kernel", *(f"{g.kernel:.0f}" for g in groups)],
        ["MB a student: server", *(f"{g.server:.0f}" for g in groups)],
        ["students who did not get to the end", *(str(len(g.lost)) for g in groups)],
        ["load of the machine before", *(f"{g.load:.1f}" for g in groups)],
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(sizes: list[int]) -> None:
    """Measure all groups on one hub and print the table."""
    names = [f"student{number:02}" for number in range(sum(sizes))]
    what, groups = task(), []
    with TemporaryDirectory() as folder, running(names, Path(folder, "said")) as hub:
        released = subprocess.run(
            as_instructor(hub, "nbgrader", "release_assignment", LESSON), capture_output=True
        )
        if released.returncode:
            sys.exit(released.stderr.decode())
        waiting = iter(names)
        for place, size in enumerate(sizes):
            some = [next(waiting) for _ in range(size)]
            grade = place > 0 and place == len(sizes) - 2
            groups.append(asyncio.run(group(hub, some, what, grade)))
            lost = [f"{name}: {why}" for name, why in groups[-1].lost.items()]
            print(f"{size} students done", *lost, file=sys.stderr, sep="\n")
    print(f"{date.today()}, {psutil.cpu_count()} cores; seconds: median / 95th percentile\n")
    print(table(groups))
    for refusal in sorted({r for g in groups for s in g.students for r in s.refusals})[:1]:
        print(f"\nThe hub said: {refusal}")
    for one in groups:
        if one.graded:
            print(f"\nMeanwhile: {one.graded}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [*SIZES])
