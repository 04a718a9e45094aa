"""Files below a folder: those that come along, and writing them whole while others read."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

FRESH = ".fresh"
"""The end of a name while what it names is being written."""
BEFORE = ".before"
"""The end of the name of a folder while another takes its place."""
DEPTH = 10
"""Files below more folders do not come along."""

File = tuple[Path, str]
"""The path of a file, and its path from the folder that it comes from."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all; the last of two writers wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.urandom(8).hex()}{FRESH}")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        error.filename = str(path)  # else the fresh one's name, or none where the disk is full
        with suppress(OSError):
            fresh.unlink()
        raise


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files below a folder, each by its path from there and its content."""
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_folder(target: Path, files: dict[str, bytes]) -> None:
    """Put a folder of files in place whole; nothing stays of the folder that was there."""
    fresh = target.with_name(f".{target.name}{FRESH}")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        write_files(fresh, files.items())
        replace_folder(fresh, target)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def replace_folder(fresh: Path, target: Path) -> None:
    """Move a folder to where another may be, which is deleted only when the new one is there."""
    before = target.with_name(f".{target.name}{BEFORE}")
    if before.exists() and not target.exists():  # somebody was killed between the two moves
        before.rename(target)
    shutil.rmtree(before, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.rename(before)
    try:
        shutil.move(fresh, target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        if before.exists():
            before.rename(target)
        raise
    shutil.rmtree(before, ignore_errors=True)


def kept_by_tools(path: Path) -> bool:
    """Return whether a path from a folder leads to what Python, editors and other tools keep."""
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def without_returns(path: Path) -> bytes:
    """Return what a file says; git may end its lines in another way on Windows."""
    return path.read_bytes().replace(b"\r\n", b"\n")


def visible_files(folder: Path) -> Iterator[File]:
    """Yield the plain files below a folder, those near its top first; no links, nothing hidden."""
    level = [folder]
    for _ in range(DEPTH + 1):
        below: list[Path] = []
        for place in filter(Path.is_dir, level):
            with os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.startswith("."):
                        continue
                    if entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), Path(entry.path).relative_to(folder).as_posix()
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(Path(entry.path))
        level = below
