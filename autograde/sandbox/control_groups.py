"""A control group for each kernel, where Linux lets the grader make one.

In it Linux itself limits the number of processes and their memory. That includes memory that the
watch inside cannot see: buffers of pipes and sockets, and whatever lives only between two looks.
Linux documents both versions in admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/.
"""

import atexit
import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograde.sandbox.agreed import KernelLimits
from autograde.sandbox.wall import unprivileged_uid

GROUP = re.compile(r"autograde-([0-9]+)-[0-9a-f]{8}")
KINDS = ("memory", "pids")
DOOR = "cgroup.procs"
REMOVE_SECONDS = 2


@dataclass(frozen=True)
class Group:
    """One group: a folder, or in version 1 one for each kind of limit; none where not allowed."""

    folders: tuple[Path, ...]
    maker: int
    """The process that made the group; a fork of it must not remove the group."""

    @contextmanager
    def doors(self) -> Iterator[list[int]]:
        """Open its doors: a process that writes 0 into each joins the group, with all it starts."""
        with ExitStack() as opened:
            files = [(folder / DOOR).open("wb", buffering=0) for folder in self.folders]
            yield [opened.enter_context(file).fileno() for file in files]

    def ran_out_of_memory(self) -> bool:
        """Return whether Linux ended a process of the group because it had no memory left."""
        names = ("memory.events", "memory.oom_control")
        files = (folder / name for folder in self.folders for name in names)
        lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
        return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)

    def remove(self) -> None:
        """Remove the group, or do so later if a process is still ending: Linux wants it empty."""
        if self.maker == os.getpid():
            _left.update(self.folders)
            _remove_left()


_left: set[Path] = set()


def make(limits: KernelLimits) -> Group:
    """Make a group with these limits; it has no folder where this process may not make one.

    The files that a kernel may write lie in memory, so they count as well.
    """
    _remove_left()
    try:
        return _make(places(), limits)
    except OSError:
        return Group((), os.getpid())


@cache
def places() -> tuple[Path, ...]:
    """Return the groups in which this process can make groups that a kernel can enter."""
    try:
        return _places()
    except OSError:
        return ()


def _places() -> tuple[Path, ...]:
    own = own_groups(*(Path("/proc/self", name).read_text() for name in ("mountinfo", "cgroup")))
    whole = divided(own[""]) if "" in own else None
    # one hierarchy may serve several kinds
    found = (whole,) if whole else tuple({own[kind] for kind in KINDS if kind in own})
    for folder in (folder for place in found for folder in place.iterdir()):
        maker = GROUP.fullmatch(folder.name)
        if maker and not Path("/proc", maker[1]).exists():  # its grader was killed
            with suppress(OSError):  # another user's, or its last processes are ending
                folder.rmdir()
    return found if found and _can_be_entered(found) else ()


def own_groups(mounts: str, groups: str) -> dict[str, Path]:
    """Find the folders of a process's groups, by kind of limit; the kind is empty in version 2.

    Args:
        mounts: the text of /proc/PID/mountinfo.
        groups: the text of /proc/PID/cgroup.
    """
    roots = {}
    for line in mounts.splitlines():
        mount, _, system = line.partition(" - ")
        root, place = mount.split()[3:5]
        kinds = system.split()[-1].split(",") if system.startswith("cgroup ") else []
        for kind in [""] if system.startswith("cgroup2 ") else kinds:
            roots[kind] = (root, place)
    found = {}
    for line in groups.splitlines():
        _, kinds_of_it, path = line.split(":", 2)
        for kind in kinds_of_it.split(","):
            root, place = roots.get(kind, ("", ""))
            if place and Path(path).is_relative_to(root):
                found[kind] = Path(place, Path(path).relative_to(root))
    return found


def divided(own: Path) -> Path | None:
    """Find the nearest cgroup v2 ancestor that can limit its children."""
    for folder in (own, *own.parents):
        kinds = folder / "cgroup.subtree_control"
        if not kinds.exists():
            return None
        if set(KINDS) <= set(kinds.read_text().split()):
            return folder
    return None


def _can_be_entered(places: tuple[Path, ...]) -> bool:
    """Return whether a process with as few rights as a kernel can enter a group made there."""
    uid = unprivileged_uid() if os.getuid() == 0 else None
    try:
        group = _make(places, KernelLimits())
    except OSError:
        return False
    try:
        with group.doors() as doors:
            for door in doors:
                subprocess.run(
                    ["/bin/sh", "-c", "echo 0"], stdout=door, stderr=subprocess.DEVNULL, check=True,
                    user=uid, group=uid, extra_groups=None if uid is None else [],
                )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        group.remove()
    return True


def _make(places: tuple[Path, ...], limits: KernelLimits) -> Group:
    memory = limits.memory_bytes + limits.scratch_bytes
    values = {
        "memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 1,
        "pids.max": limits.processes,
        "memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory,
    }  # fmt: skip
    name = f"autograde-{os.getpid()}-{secrets.token_hex(4)}"
    group = Group(tuple(place / name for place in places), os.getpid())
    try:
        for folder in group.folders:
            folder.mkdir()
            for file, value in values.items():
                if (folder / file).exists():
                    (folder / file).write_text(str(value))
    except OSError:
        group.remove()
        raise
    return group


def _remove_left() -> None:
    for folder in tuple(_left):
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            continue  # a process in it is still ending
        _left.discard(folder)


@atexit.register
def _remove_at_the_end() -> None:
    if places.cache_info().currsize:
        own = f"autograde-{os.getpid()}-*"
        _left.update(folder for place in places() for folder in place.glob(own))
    until = time.monotonic() + REMOVE_SECONDS
    while _left and time.monotonic() < until:
        time.sleep(0.01)
        _remove_left()
