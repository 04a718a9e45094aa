"""The first process of a kernel's namespace. When it ends, Linux ends every process in it.

It starts the kernel, passes signals on, watches memory and processor time, and ends with the
kernel or when the grader hangs up. What a notebook leaves behind cannot outlive it.
"""

import json
import math
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograde.sandbox.both_sides import (
    CELL,
    CELL_MEMORY,
    MEMORY,
    NEXT_CELL,
    PROCESSOR,
    SAY_TIME,
    SOCKETS,
    KernelLimits,
)
from autograde.sandbox.host_limits import used_up
from autograde.sandbox.inside import namespaces, system

WATCH_MS = 200
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
MAP_BYTES = 400
"""What Linux keeps for one map of a process, outside the process's own memory."""
MANY = 8
"""The maps of up to this many processes are not counted: they can take 200 MB at most."""
MOST_MAPS = 65530
MAX_DESCRIPTOR = 65536


def start(kernel: Callable[[Callable[[], None]], None]) -> tuple[int, str]:
    """Fork the kernel and wait for its sockets; return its process id, and why it failed."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.closerange(3, writable)
        os.closerange(writable + 1, MAX_DESCRIPTOR)
        try:
            kernel(lambda: _say_ready(writable))
        except BaseException as error:
            os.write(writable, repr(error).encode())
        os._exit(1)
    os.close(writable)
    with open(readable, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    if not said:
        said = f"it ended as it started ({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})"
    return child, "" if said == "+" else said


def _say_ready(pipe: int) -> None:
    os.write(pipe, b"+")
    os.close(pipe)


def serve(line: socket.socket, kernel: int, failed: str, limits: KernelLimits) -> None:
    """Wait for the notebook's files, say that the kernel is ready, look after it until it ends."""
    if failed:
        _say(line, failed=failed)
        return
    _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
    if not descriptors:
        return  # the grader has no use for it
    with open(descriptors[0], "rb") as files:
        namespaces.unpack(files)
    namespaces.lock_sockets()
    system.drop_capabilities()
    system.prctl(system.PR_SET_DUMPABLE, 0)
    folder = os.open(SOCKETS, os.O_PATH | os.O_DIRECTORY)
    socket.send_fds(line, [json.dumps({"ready": True}).encode()], [folder])
    os.close(folder)
    code, reason = _look_after(line, kernel, limits)
    _say(line, exit=code, reason=reason)


def _say(line: socket.socket, **message: Any) -> None:
    with suppress(OSError):  # the grader is gone, and soon this is too
        line.send(json.dumps(message).encode())


def _look_after(line: socket.socket, kernel: int, limits: KernelLimits) -> tuple[int, str]:
    """Wait until the kernel ends or must end; return its exit code, and the limit it exceeded."""
    poll, wake = _poll(line)
    watch, scarce, next_look = Watch(limits), "", 0.0
    while True:
        ready = dict(poll.poll(WATCH_MS))
        if wake in ready:
            os.read(wake, 4096)
        if (code := _ended(kernel)) is not None:
            return code, ""
        if line.fileno() in ready:
            order = line.recv(1)
            if order == bytes([NEXT_CELL]):
                watch.next_cell()
            elif order == bytes([SAY_TIME]):
                _say(line, used=watch.used())
            elif not order or order[0] == signal.SIGKILL:
                return -signal.SIGKILL, ""
            else:
                _signal(kernel, order[0])
        if time.monotonic() < next_look:
            continue
        next_look = time.monotonic() + WATCH_MS / 1000
        # what this user of the host has no more of, for others may have used it up
        if not scarce and (scarce := used_up(limits.files_a_process)):
            _say(line, scarce=scarce)
        reason = watch.look()
        if reason in (MEMORY, PROCESSOR):
            return -signal.SIGKILL, reason
        if reason and not select.select([line], [], [], 0)[0]:  # the next may have begun
            _say(line, interrupted=watch.cell, by=reason)
            _signal(kernel, signal.SIGINT)


def _poll(line: socket.socket) -> tuple[select.poll, int]:
    """Return a poll that wakes for an order or the end of a child, and the pipe for the latter."""
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(line, select.POLLIN)
    poll.register(wake, select.POLLIN)
    return poll, wake


class Watch:
    """Looks from time to time at the processor time and memory that all processes here use."""

    def __init__(self, limits: KernelLimits) -> None:
        self.limits = limits
        self.cell = 0
        self._maps: dict[Path, int] = {}
        self._much = False
        # processor seconds used before this cell; before the first one there is no limit yet
        self._before = math.inf

    def next_cell(self) -> None:
        """Begin to count for another cell."""
        self.cell += 1
        self._before, _, _ = _used()

    def used(self) -> tuple[float, float]:
        """Return the processor seconds used for this cell, and for all."""
        seconds, _, _ = _used()
        return max(seconds - self._before, 0.0), seconds

    def look(self) -> str:
        """Return the limit that is exceeded, or "" if none is."""
        limits, (seconds, memory, processes) = self.limits, _used()
        if seconds > limits.cpu_seconds:
            return PROCESSOR
        room = limits.memory_bytes - self._of_maps(processes)
        if memory > min(room, limits.cell_memory_bytes):
            memory = sum(map(_share, processes))
        if memory > room:
            return MEMORY
        before, self._much = self._much, memory > limits.cell_memory_bytes
        if self._much and not before:  # what a cell keeps is not held against the next ones
            return CELL_MEMORY
        if seconds - self._before > limits.cell_cpu_seconds:
            self._before = seconds
            return CELL
        return ""

    def _of_maps(self, processes: list[Path]) -> int:
        """Return an upper estimate of the bytes that Linux keeps for the maps of all processes.

        Counting takes long where a process has many, so each look counts those of one process
        alone, in turn. The estimate takes every process to have as many as the one with the most.
        """
        if len(processes) <= MANY:
            return 0
        living = {each: number for each, number in self._maps.items() if each in processes}
        unseen = (each for each in processes if each not in living)
        turn = next(unseen, None) or next(iter(living))  # the one that was counted longest ago
        living.pop(turn, None)
        self._maps = {**living, turn: _number_of_maps(turn)}
        return max(self._maps.values()) * len(processes) * MAP_BYTES


def _ended(kernel: int) -> int | None:
    """Reap ended children; return the kernel's exit code if it did, negative for a signal."""
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return -signal.SIGKILL
        if child == kernel:
            return os.waitstatus_to_exitcode(status)
        if child == 0:
            return None


def _signal(kernel: int, number: int) -> None:
    """Send a signal to the kernel and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(kernel, number)


def _used() -> tuple[float, int, list[Path]]:
    """Return the processor seconds and memory of all other processes, and their paths."""
    memory, seconds = 0, sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    others = [path for path in Path("/proc").iterdir() if path.name.isdigit() and path.name != "1"]
    for process in others:
        if fields := _read(process / "stat").rpartition(")")[2].split():
            seconds += sum(map(int, fields[11:15])) / TICKS
            memory += int(fields[21]) * PAGE + _page_tables(process)
    return seconds, memory, others


def _read(file: Path) -> str:
    """Return what Linux says of a process; "" if it hides that, or has ended."""
    try:
        return file.read_text(errors="replace")  # a process may be called anything
    except OSError:
        return ""


def _page_tables(process: Path) -> int:
    """Return what the tables take in which Linux keeps where a process's memory is."""
    _, found, rest = _read(process / "status").partition("\nVmPTE:")  # a name has no line break
    return int(rest.split()[0]) * 1024 if found else 0


def _number_of_maps(process: Path) -> int:
    try:
        return (process / "maps").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
    except OSError:  # it hides, or ended
        return MOST_MAPS if process.exists() else 0


def _share(process: Path) -> int:
    """Return the memory of a process; shared memory is divided among those that share it."""
    tables = _page_tables(process)
    if lines := _read(process / "smaps_rollup").splitlines():
        return tables + sum(int(line.split()[1]) * 1024 for line in lines if line[:4] == "Pss:")
    all_mapped = _read(process / "statm").split()[1:2]
    return tables + sum(map(int, all_mapped)) * PAGE
