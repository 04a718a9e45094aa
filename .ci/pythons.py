"""Try the wheel as a student, with several Pythons, the oldest torch and the newest: a table.

    python .ci/pythons.py dist/*.whl python3.11 /usr/bin/python3.14

Each pair gets an environment of its own, which is deleted before the next: 1.5 to 6 GB each.
"""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

HERE = Path(__file__).resolve().parent.parent
NEEDS = HERE / "attention_course" / "requirements.txt"
FACTS = "import sys, torch; print(sys.version.split()[0], torch.__version__, torch.version.cuda)"
HEAD = """\
| Python | torch | on disk | biggest process | |
|---|---|--:|--:|---|"""


def torches() -> tuple[str, str]:
    """Return what pip is asked for: the oldest torch that is allowed, and the newest."""
    found = re.search(r"^torch>=(\S+)", NEEDS.read_text(), flags=re.MULTILINE)
    assert found, f"{NEEDS} names no oldest torch"
    return f"torch=={found[1]}.*", "torch"


def row(wheel: str, python: str, torch: str, log: Path) -> str:
    """Install, take the student's way, and say what happened in a row of the table."""
    with TemporaryDirectory() as folder, log.open("w") as out:
        inside = str(Path(folder, "env", "bin", "python"))
        for command in (
            [python, "-m", "venv", f"{folder}/env"],
            [inside, "-m", "pip", "install", wheel, torch],
        ):
            if subprocess.run(command, stdout=out, stderr=out, check=False).returncode:
                return f"| {python} | {torch} | | | not installed: {log} |"
        disk = sum(512 * path.lstat().st_blocks for path in Path(folder).rglob("*"))
        facts = subprocess.check_output([inside, "-c", FACTS], text=True).split()
        works, memory = student(inside, out)
        outcome = "works" if works else f"failed: {log}"
        kind = "" if facts[2] == "None" else f" for CUDA {facts[2]}"
    return (
        f"| {facts[0]} | {facts[1].partition('+')[0]}{kind or ' for CPUs'} "
        f"| {disk / 1e9:.1f} GB | {memory / 1000:.1f} GB | {outcome} |"
    )


def student(python: str, out: TextIO) -> tuple[bool, float]:
    """Run student.py; return whether all went well, and the size of its largest process in MB."""
    done = subprocess.Popen([python, str(HERE / ".ci" / "student.py")], stdout=out, stderr=out)
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    return not done.returncode, used.ru_maxrss / 1000


def main(wheel: str, *pythons: str) -> None:
    """Print the table as it grows; each pair leaves its log in build/pythons/."""
    logs = HERE / "build" / "pythons"
    logs.mkdir(parents=True, exist_ok=True)
    print(f"{datetime.now(UTC):%Y-%m-%d}\n\n{HEAD}", flush=True)
    for python in pythons:
        for which, torch in zip(("oldest", "newest"), torches(), strict=True):
            log = logs / f"{python.strip('/').replace('/', '-')}-{which}.txt"
            print(row(wheel, python, torch, log), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
