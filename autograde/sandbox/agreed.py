"""Names and limits that both sides of the wall know; this imports on every system."""

from dataclasses import dataclass

HOME = "/home/student"
SOCKETS = "/ipc"
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Processors that the system call filter supports: their column of numbers, their architecture."""
MEMORY, PROCESSOR, CELL = "memory", "processor time", "processor time of a cell"
NEXT_CELL, SAY_TIME = 0, 255
"""Orders besides the signal numbers: another cell begins; say how much time was used."""


@dataclass(frozen=True)
class KernelLimits:
    """The limits of one kernel, for all its processes together unless the name says otherwise.

    A cell that uses more than `cell_cpu_seconds` of processor time is interrupted.
    """

    memory_bytes: int = 2 * 2**30
    cpu_seconds: int = 300
    cell_cpu_seconds: int = 60
    processes: int = 128
    scratch_bytes: int = 256 * 2**20
    files_a_process: int = 256
    address_bytes_a_process: int = 6 * 2**30
