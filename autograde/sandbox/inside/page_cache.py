"""Keep in memory what kernels can read, so that none can tell what another has read.

Linux keeps a file in memory once somebody has read it, for everybody. Reading is faster then, so a
kernel could leave a sign for a later one by what it reads. Where everything is in memory already,
reading changes nothing. On a machine with too little memory for that, nothing is read: Linux would
forget what the kernels themselves need.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

NO_FILES = {"/dev", "/home", "/ipc", "/proc", "/scratch", "/sys", "/tmp"}  # noqa: S108
"""What each kernel has of its own, in memory, or what Linux makes as it is read."""
MEMORY = "/proc/meminfo"
MOST = 0.5
"""The largest part of the available memory that the files may take; what is cached is available."""


def read_all() -> None:
    """Have Linux read every file that a kernel can see, if there is room, slower than all else."""
    os.nice(19)
    files = dict(_files())
    if sum(files.values()) > MOST * _available():
        return
    for path in files:
        with suppress(OSError):  # not everybody may read it
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with suppress(OSError):
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
            os.close(file)


def _available() -> int:
    """Return how many bytes programs could use without other programs losing any."""
    with open(MEMORY) as lines:
        return next(1024 * int(line.split()[1]) for line in lines if "MemAvailable" in line)


def _files() -> Iterator[tuple[str, int]]:
    """Yield each file and its size."""
    folders, seen = ["/"], set[tuple[int, int]]()
    while folders:
        with suppress(OSError), os.scandir(folder := folders.pop()) as entries:
            about = os.stat(folder)
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False).st_size
                elif entry.is_dir(follow_symlinks=False) and entry.path not in NO_FILES:
                    folders.append(entry.path)
