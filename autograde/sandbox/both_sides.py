"""Names and limits that both sides of the wall know; this imports on every system."""

from dataclasses import dataclass

HOME = "/home/student"
SOCKETS = "/ipc"
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Processors that the system call filter supports: their column of numbers, their architecture."""
MEMORY, PROCESSOR = "memory", "processor time"
"""The limits for which the kernel is ended."""
CELL, CELL_MEMORY = "processor time of a cell", "memory of a cell"
"""The limits for which a cell is interrupted."""
NEXT_CELL, SAY_TIME = 0, 255
"""Orders besides the signal numbers: another cell begins; say how much time was used."""


@dataclass(frozen=True)
class KernelLimits:
    """The limits of one kernel, for all its processes together unless the name says otherwise.

    A cell that uses more than `cell_cpu_seconds` of processor time is interrupted, and so is one
    that takes the memory past `cell_memory_bytes`: a list without end ends its own cell alone.
    """

    memory_bytes: int = 2 * 2**30
    cpu_seconds: int = 300
    cell_cpu_seconds: int = 60
    processes: int = 128
    scratch_bytes: int = 256 * 2**20
    files_a_process: int = 256
    address_bytes_a_process: int = 6 * 2**30

    @property
    def cell_memory_bytes(self) -> int:
        """Far enough below the limit that a cell can still be interrupted before the kernel is."""
        return self.memory_bytes // 4 * 3
