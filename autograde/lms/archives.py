"""Archives from outside: checked before anything is unpacked, and refused with a reason."""

import shutil
import stat
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from autograde.student_text import quoted

FILES, BYTES = 50_000, 8_000_000_000
"""The most that may come out of an archive. Folders count as files: a short path can name many."""
FILE_BYTES, DEPTH = 50_000_000, 20
"""A larger file is not unpacked, nor is one in deeper folders."""
RATIO, FLOOR = 100, 100_000_000
"""An archive may grow by this factor at most; up to FLOOR bytes any factor is fine."""
INNER_FILES = 1_000
"""The most files that an archive inside an archive may hold; it may hold FLOOR bytes."""

UNPACKED = ".d"


class BadArchive(Exception):
    """The archive is refused; the message says why."""


@dataclass
class Unpacked:
    """The files taken out, and the members that were left in, each with the reason."""

    files: list[Path] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def place_for(archive: Path) -> Path:
    """Return the folder beside an archive for its content; its name says that it was one."""
    return archive.with_name(archive.name + UNPACKED)


def unpack(
    archive: Path, folder: Path, files: int = FILES, size: int = BYTES, one: int = FILE_BYTES
) -> Unpacked:
    """Take the plain files out of a zip archive; a zip file in it is unpacked in its place, once.

    A file larger than `one` is not unpacked, nor is an inner archive that is refused: a student's
    mistake must not block the class's work. Nothing is written if the outer archive is refused.

    Raises:
        BadArchive: it is not an archive, is encrypted, or holds a path that leads elsewhere, a
            link, a name twice, or too much.
    """
    done = _unpack(archive, folder, files, size, one)
    for path in [path for path in done.files if path.suffix.lower() == ".zip"]:
        name = quoted(path.relative_to(folder))
        try:
            inner = _unpack(path, place_for(path), INNER_FILES, FLOOR, one)
        except BadArchive as error:
            done.left.append(f"{name}: {error}")
            continue
        path.unlink()  # what was in it stands in its place
        done.files.remove(path)
        done.files += inner.files
        done.left += [f"{name}: {left}" for left in inner.left]
    return done


def _unpack(archive: Path, folder: Path, files: int, size: int, one: int) -> Unpacked:
    done = Unpacked()
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadArchive(f"there is no place to unpack it: {error}") from error
    try:
        with zipfile.ZipFile(archive) as file:
            members = [info for info in file.infolist() if not info.is_dir()]
            check(members, archive.stat().st_size, files, size)
            for info in members:
                if reason := _too_much(info, one):
                    done.left.append(f"{quoted(info.filename)}: {reason}")
                    continue
                target = folder.joinpath(*_path(info).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                # zipfile gives no more bytes than `check` has counted
                with file.open(info) as source, target.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
                done.files.append(target)
    except BadArchive:
        shutil.rmtree(folder)
        raise
    except Exception as error:  # zipfile raises many kinds on broken bytes
        shutil.rmtree(folder)
        raise BadArchive(f"it cannot be read: {error}") from error
    return done


def check(members: list[zipfile.ZipInfo], packed: int, files: int, size: int) -> None:
    """Raises BadArchive when an archive's list of members shows that it must not be unpacked."""
    if len(members) > files:
        raise BadArchive(f"it holds {len(members)} files, more than the {files} allowed")
    seen: set[str] = set()
    folders: set[PurePosixPath] = set()
    for info in members:
        if fault := _fault(info):
            raise BadArchive(f"{quoted(info.filename)} {fault}")
        if not _too_deep(info):
            folders.update(_path(info).parents)
        if len(members) + len(folders) > files:
            raise BadArchive(f"it holds more than the {files} files and folders allowed")
        if info.filename.casefold() in seen:
            raise BadArchive(f"{quoted(info.filename)} is in it twice")
        seen.add(info.filename.casefold())
    total = sum(info.file_size for info in members)
    if total > size:
        raise BadArchive(f"it would take {total} bytes, more than the {size} allowed")
    if total > FLOOR and total > RATIO * packed:
        raise BadArchive(
            f"{packed} bytes would become {total}, more than {RATIO} times as many: a zip bomb"
        )


def _path(info: zipfile.ZipInfo) -> PurePosixPath:
    return PurePosixPath(info.filename.replace("\\", "/"))


def _fault(info: zipfile.ZipInfo) -> str:
    name = info.filename
    parts = _path(info).parts
    if name.startswith(("/", "\\")) or PureWindowsPath(name).drive:
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the folder"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if not parts or "\0" in info.orig_filename or any(len(part.encode()) > 255 for part in parts):
        return "is not a valid file name"
    return ""


def _too_deep(info: zipfile.ZipInfo) -> bool:
    return len(_path(info).parents) > DEPTH


def _too_much(info: zipfile.ZipInfo, one: int) -> str:
    """Return why a file is left in the archive, or ""."""
    if info.file_size > one:
        return f"{info.file_size} bytes are too many for one file"
    return f"more than {DEPTH} folders deep" if _too_deep(info) else ""
