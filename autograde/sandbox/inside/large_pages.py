"""Large pages for the template: a fork copies the list of its pages, and this makes it short."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

LARGE = 2**21
COLLAPSE = 25  # of madvise, Linux 6.1; from Linux' own header


def use() -> None:
    """Put the memory that this process may write to into large pages, where Linux can.

    What it cannot is left as it is: a fork is slower then, and nothing else.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for start in _own():
        madvise(start, LARGE, COLLAPSE)


def _own() -> Iterator[int]:
    """Yield the start of each large page of memory that belongs to no file and may be written."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, file, *_ = line.split()
        start, end = (int(number, 16) for number in place.split("-"))
        if rights.startswith("rw") and file == "0":
            yield from range(-(-start // LARGE) * LARGE, end - LARGE + 1, LARGE)
