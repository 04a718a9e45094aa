"""What starts a process as an ordinary user, who can read the interpreter wherever it lies."""

import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conftest import HERE

UID = 61000
SWITCH = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
STAY = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"]
"""Root as in most containers, who may not mount."""


def places() -> list[Path]:
    """The checkout, the environment, the interpreter; none lies in another."""
    wanted = {Path(place).resolve() for place in (HERE, sys.prefix, sys.base_prefix)}
    return sorted(place for place in wanted if not wanted & set(place.parents))


def closed(place: Path) -> Path | None:
    """The outermost folder around a place that others may not enter: often that is /root."""
    around = [*reversed(place.parents), place]
    return next((path for path in around if not path.stat().st_mode & stat.S_IXOTH), None)


def opened(hold: Path) -> str:
    """A script that runs a command where each closed folder shows only the places inside it."""
    inside = {place: folder for place in places() if (folder := closed(place))}
    held = {place: hold / str(number) for number, place in enumerate(inside)}
    lines = [["mount", "--make-rprivate", "/"]]
    for place, at in held.items():
        lines += [["mkdir", "-p", at], ["mount", "--bind", place, at]]
    lines += [["mount", "-t", "tmpfs", "-o", "mode=755", "none", to] for to in set(inside.values())]
    for place, at in held.items():
        lines += [["mkdir", "-p", place], ["mount", "--move", at, place]]
    script = [shlex.join(map(str, line)) for line in lines]
    return " && ".join([*script, 'exec "$@"'])


def _remove(group: Path, until: float) -> None:
    """Remove a control group once its last processes have ended; Linux refuses before that."""
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@contextmanager
def handed_over() -> Iterator[list[Path]]:
    """Control groups that the ordinary user may divide, where version 1 lets root make them."""
    groups = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kind, own = line.split(":", 2)
        group = Path("/sys/fs/cgroup", kind, own[1:], f"tests-{os.getpid()}")
        if kind in ("memory", "pids") and os.access(group.parent, os.W_OK):
            group.mkdir()
            for place in (group, group / "cgroup.procs"):
                os.chown(place, UID, UID)
            groups.append(group)
    yield groups
    until = time.monotonic() + 10
    for group in groups:
        for folder in (*group.glob("*/"), group):  # a killed run left one, as the last run here
            _remove(folder, until)


def command(hold: Path, switch: Sequence[str] = SWITCH, groups: Sequence[Path] = ()) -> list[str]:
    """What to write before a command, so that an ordinary user runs it. Only root can."""
    enter = [f"echo $$ > {shlex.quote(str(group / 'cgroup.procs'))}" for group in groups]
    script = " && ".join([*enter, opened(hold)])
    return ["unshare", "--mount", "sh", "-c", script, "sh", *switch]
