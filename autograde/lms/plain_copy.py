"""A copy of a folder that others can change at any moment: plain files and folders, nothing else.

What is checked is what is copied: each file and folder is opened without following a link, from the
folder that it lies in, and looked at after that. A name never leads out of the folder.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENTRIES, DEPTH = 10_000, 20
PART = 1_000_000
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPlain(Exception):
    """The folder is not copied; the message says why."""


@dataclass
class Room:
    """The room that a folder still has, and the owner that everything in it must have, if one."""

    size: int
    owner: int | None
    entries: int = ENTRIES


def plain_copy(source: Path, target: Path, size: int, owner: int | None = None) -> None:
    """Copy the plain files and folders below a folder into a new folder, as files of one's own.

    Args:
        size: the most bytes that all files together may have.
        owner: the id of the user to whom everything has to belong; None for anybody.

    Raises:
        NotPlain: it holds something else, too much, or something of another user's.
        OSError: something cannot be read or written.
    """
    room, around = Room(size, owner), os.open(source.parent, os.O_RDONLY)
    try:
        with _opened(source.name, source.name, room, around) as folder:
            _copy_folder(folder, target, source.name, room, DEPTH)
    finally:
        os.close(around)


@contextmanager
def _opened(name: str, shown: str, room: Room, around: int) -> Iterator[int]:
    """Open a plain file or folder in the folder `around`."""
    mode = os.stat(name, dir_fd=around, follow_symlinks=False).st_mode
    _require_plain(mode, shown)  # opening a device may do something
    found = os.open(name, OPEN, dir_fd=around)
    try:
        facts = os.fstat(found)
        _require_plain(facts.st_mode, shown)
        if room.owner not in (None, facts.st_uid):
            raise NotPlain(f"{shown} belongs to another user")
        yield found
    finally:
        os.close(found)


def _require_plain(mode: int, shown: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NotPlain(f"{shown} is neither a file nor a folder")


def _copy_folder(folder: int, target: Path, shown: str, room: Room, depth: int) -> None:
    if not stat.S_ISDIR(os.fstat(folder).st_mode):
        raise NotPlain(f"{shown} is no folder")
    if depth == 0:
        raise NotPlain(f"{shown} lies more than {DEPTH} folders deep")
    target.mkdir()
    with os.scandir(folder) as entries:
        for entry in entries:
            room.entries -= 1
            if room.entries < 0:
                raise NotPlain(f"more than {ENTRIES} files and folders")
            inside = f"{shown}/{entry.name}"
            with _opened(entry.name, inside, room, folder) as found:
                if stat.S_ISDIR(os.fstat(found).st_mode):
                    _copy_folder(found, target / entry.name, inside, room, depth - 1)
                else:
                    _copy_file(found, target / entry.name, room)


def _copy_file(file: int, target: Path, room: Room) -> None:
    """Copy an open file. What counts is what is read: it may grow meanwhile."""
    with target.open("xb") as copy:
        while part := os.read(file, PART):
            room.size -= len(part)
            if room.size < 0:
                raise NotPlain("it holds more bytes than are allowed")
            copy.write(part)
