"""A control group for each kernel, where Linux lets the grader make one.

In it Linux itself limits the number of processes and their memory. That includes memory that the
watch inside cannot see: buffers of pipes and sockets, and whatever lives only between two looks.
Linux documents them in admin-guide/cgroup-v2.rst.
"""

import atexit
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from autograde.sandbox.both_sides import KernelLimits

ROOT = Path("/sys/fs/cgroup")
KINDS = {"memory", "pids"}
REMOVE_SECONDS = 2


_left: set[Path] = set()


def make(limits: KernelLimits) -> Path | None:
    """Make a group with these limits and return its folder; None where none may be made.

    The files that a kernel may write lie in memory, so they count as well.
    """
    _remove_left()
    if (around := place()) is None:
        return None
    group = around / f"autograde-{os.getpid()}-{secrets.token_hex(4)}"
    values = {
        "memory.max": limits.memory_bytes + limits.scratch_bytes,
        "memory.swap.max": 0, "memory.oom.group": 1, "pids.max": limits.processes,
    }  # fmt: skip
    try:
        group.mkdir()
        for file, value in values.items():
            if (group / file).exists():  # Linux without swap has no limit for it
                (group / file).write_text(str(value))
    except OSError:
        if group.is_dir():  # removing it where all is read-only would be tried again and again
            remove(group)
        return None
    return group


def _remove_left() -> None:
    for folder in tuple(_left):
        with suppress(OSError):  # a process in it is still ending
            folder.rmdir()
        if not folder.is_dir():
            _left.discard(folder)


@cache
def place() -> Path | None:
    """Return the group in which this process can make groups.

    None where there is no such group, or only one of version 1.
    """
    try:
        own = re.search("^0::/(.*)", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
        return divided(ROOT / own[1]) if own else None
    except OSError:
        return None


def divided(own: Path) -> Path | None:
    """Find the nearest group, this or one above it, that can limit its children."""
    for folder in (own, *own.parents):
        kinds = folder / "cgroup.subtree_control"
        if not kinds.exists():
            return None
        if KINDS.issubset(kinds.read_text().split()):
            return folder
    return None


@contextmanager
def open_procs(group: Path | None) -> Iterator[list[int]]:
    """Open the group's file cgroup.procs; yield its descriptor, or nothing without a group.

    A process that writes 0 into that file joins the group, and so does all that it starts.
    """
    if group is None:
        yield []
        return
    with (group / "cgroup.procs").open("wb", buffering=0) as file:
        yield [file.fileno()]


def ran_out_of_memory(group: Path) -> bool:
    """Return whether Linux ended a process of the group because it had no memory left."""
    lines = (group / "memory.events").read_text().splitlines()
    return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)


def remove(group: Path) -> None:
    """End what is in a group and remove it, later if need be: Linux wants it empty."""
    with suppress(OSError):  # Linux before 5.14, or the group is gone
        (group / "cgroup.kill").write_text("1")
    _left.add(group)
    _remove_left()


@atexit.register
def _remove_at_the_end() -> None:
    if place.cache_info().currsize and (around := place()):
        _left.update(around.glob(f"autograde-{os.getpid()}-*"))
    until = time.monotonic() + REMOVE_SECONDS
    while _left and time.monotonic() < until:
        time.sleep(0.01)
        _remove_left()
