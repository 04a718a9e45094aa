"""A class with hostile students in it: whether every honest score is right, and what is left over.

    python benchmarks/neighbours.py [--honest 24] [--ways WAY…] [--users root ordinary]

Each way grades the same class of lesson 03 from cold. Memory is what the command and all that it
started hold together. Needs a wall; the ordinary user needs root, who becomes one.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import psutil

from autograde.authoring.build import adopt
from autograde.course.cells import grade_id
from autograde.course.config import CONFIG
from autograde.course.lessons import Lesson, choose
from autograde.sandbox.wall import missing

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE / "tests"), str(HERE / "examples")]
import ordinary_user  # noqa: E402
from attacks import CONNECTIONS  # noqa: E402
from classes import scores  # noqa: E402
from make_class import fill, reference_answers  # noqa: E402
from speed import BIN, dask  # noqa: E402

LESSON = "03_inf_mask"
SUBREAPER = 36
GATHER = "import os, select, signal, socket, time, torch\n"
HOSTILE = {
    "breaks its connection": CONNECTIONS
    + "for s in connections(1, 2, 3): s.send(b'\\2' + b'\\xff' * 8)\n",
    "uses up epoll watches": GATHER
    + """
for _ in range(40):
    if os.fork(): continue
    made = [select.epoll() for _ in range(100)]
    try:
        for n in range(60):
            for s in range(200, 250):
                os.dup2(os.eventfd(0), s)
                for each in made: each.register(s, 1)
    except OSError: pass
    time.sleep(15); os._exit(0)
time.sleep(15)
""",
    "blinds what watches it": GATHER
    + """
for blind in (lambda: os.sched_setaffinity(1, {0}), lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
              lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):
    try: blind()
    except OSError: pass
for _ in range(40):
    if os.fork() == 0:
        while True: pass
kept = [b'x' * 10**8 for _ in range(33)]
""",
    "leaves processes": GATHER
    + """
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
for _ in range(50):
    if os.fork() == 0:
        os.setsid()
        while True: pass
""",
    "ignores its interrupt": GATHER
    + """
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
    "makes Linux forget files": GATHER
    + """
for folder, _, names in os.walk(os.path.dirname(torch.__file__)):
    for name in names:
        file = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED); os.close(file)
""",
    "is slow to show": "1" + " \n" * 30_000 + "1",
    "fills its disk": GATHER
    + "n = 0\nwhile True:\n    open(f'/tmp/{n}', 'wb').write(bytes(10**7)); n += 1\n",
}
"""The code of the first answer of each hostile student."""


def make_class(root: Path, honest: int) -> Lesson:
    for folder in ("source", "notebooks", "solutions"):
        shutil.copytree(HERE / folder, root / folder)
    shutil.copy(HERE / CONFIG, root)
    (lesson,) = choose(root, (LESSON,))
    adopt(lesson)
    for n in range(honest):
        nb = fill(lesson, reference_answers(lesson))
        nb.cells.append(nbformat.v4.new_code_cell(f"print({n})"))
        _submit(lesson, f"honest_{n:02}", nb)
    first = lesson.exercises[0].name
    for n, code in enumerate(HOSTILE.values()):  # among the others, by their names
        nb = fill(lesson, {})
        for cell in nb.cells:
            if grade_id(cell) == first:
                cell.source = code
        _submit(lesson, f"honest_{n * honest // len(HOSTILE):02}_hostile_{n}", nb)
    return lesson


def _submit(lesson: Lesson, student: str, nb: nbformat.NotebookNode) -> None:
    folder = lesson.root / "submitted" / student / lesson.name
    folder.mkdir(parents=True)
    nbformat.write(nb, folder / f"{lesson.notebook}.ipynb")


@contextmanager
def most_memory() -> Iterator[list[float]]:
    """Give a list of the MB that everything started from here held together, from time to time."""
    held, done = [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.5):
            held.append(sum(map(_share, psutil.Process().children(recursive=True))) / 1024)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield held
    finally:
        done.set()
        thread.join()


def _share(process: psutil.Process) -> int:
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(text.partition("\nPss:")[2].split()[0]) if "\nPss:" in text else 0


def _lives(process: psutil.Process) -> bool:
    """Return whether it has not ended, and was not started for this process itself.

    What has ended waits for its parent, which is this process.
    """
    try:
        ended = process.status() == psutil.STATUS_ZOMBIE
        return not ended and "resource_tracker" not in "".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def measure(way: str, origin: Path, lesson: Lesson) -> str:
    """Grade the class in this way, and return its row of the table."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        root = Path(shutil.copytree(origin, Path(folder, "course"), symlinks=True))
        scratch = Path(folder, "scratch")
        scratch.mkdir()
        mounts = Path("/proc/self/mounts").read_text().count("\n")
        env = {**os.environ, "TMPDIR": str(scratch), "HOME": str(root)}
        held = stack.enter_context(most_memory())
        grade = [str(BIN / "autograde"), "grade", LESSON]
        commands = [[*grade, "--workers", "2"]]
        if way == "Dask":
            commands = [[*grade, "--scheduler", stack.enter_context(dask(2))]]
        elif way == "nbgrader's command":
            names = ("autograde", "generate_feedback")
            commands = [[str(BIN / "nbgrader"), name, LESSON] for name in names]
        began = time.monotonic()
        with open(root / "said.log", "wb") as log:
            for command in commands:
                subprocess.run(command, cwd=root, env=env, stdout=log, stderr=log, check=False)
        seconds = time.monotonic() - began
        found, whole = scores(root, LESSON), sum(lesson.worth.values())
        honest = {name: score for name, score in found.items() if "hostile" not in name}
        hostile = [score for name, score in found.items() if "hostile" in name]
        stack.close()
        time.sleep(1)
        left = [each for each in psutil.Process().children(recursive=True) if _lives(each)]
        files = [path.name for path in scratch.rglob("*")]
        mounts = Path("/proc/self/mounts").read_text().count("\n") - mounts
        pages = len([*root.glob("feedback/*/*/*.html")])
        print(way, f"{seconds:.0f} s", left, files, file=sys.stderr)
        if any(score != whole for score in honest.values()):
            print((root / "said.log").read_text(), honest, file=sys.stderr)
    right = sum(score == whole for score in honest.values())
    return (
        f"| {way} | {'root' if os.getuid() == 0 else 'ordinary user'} | {right} | "
        f"{max(hostile, default=0):g} of {whole:g} | {pages} | {seconds:.0f} | {max(held):.0f} | "
        f"{len(left)} | {len(files)} | {mounts} |"
    )


WAYS = ("processes", "Dask", "nbgrader's command")
USERS = ("root", "ordinary")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--honest", type=int, default=24)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--users", nargs="+", default=USERS, choices=USERS)
    given = parser.parse_args()
    if problem := missing():
        sys.exit(problem)
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ["PATH"]])
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)  # what outlives its parent becomes a child
    if "root" in given.users or os.getuid() != 0:
        if os.getuid() == 0:
            print(f"{given.honest} honest, {len(HOSTILE)} hostile, {os.cpu_count()} cores, "
                  f"load {os.getloadavg()[0]:.1f} before", file=sys.stderr)  # fmt: skip
            print("| way | user | honest scores right | most that a hostile one got | pages "
                  "| seconds | MB | left: processes | files | mounts |")  # fmt: skip
            print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        with TemporaryDirectory() as folder:
            lesson = make_class(Path(folder, "class"), given.honest)
            for way in given.ways:
                print(measure(way, lesson.root, lesson), flush=True)
    if "ordinary" in given.users and os.getuid() == 0:
        with TemporaryDirectory() as hold:
            me = [sys.executable, __file__, "--honest", str(given.honest), "--ways", *given.ways]
            subprocess.run([*ordinary_user.command(Path(hold)), *me], cwd="/", check=True)


if __name__ == "__main__":
    main()
