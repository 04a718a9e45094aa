"""Which grader this is: a digest of its own files, and of those of the course's package.

Its version number stays the same for months. What its files say does not.
"""

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

from autograde import __version__
from autograde.course.package import files_of, folder_of
from autograde.files import kept_by_tools, without_returns

SUFFIXES = {".j2", ".json", ".py"}
"""Those of the grader's files that decide what it does. Its wheel brings the manual as well."""


def read_grader(folder: Path) -> str:
    """Return a digest of the grader in a folder."""
    files = sorted(filter(Path.is_file, folder.rglob("*")), key=Path.as_posix)
    own = (path for path in files if not kept_by_tools(path.relative_to(folder)))
    return _digest(folder, (path for path in own if path.suffix in SUFFIXES))


def _digest(folder: Path, files: Iterable[Path]) -> str:
    digest = sha256()
    for file in files:
        path, content = file.relative_to(folder).as_posix(), without_returns(file)
        digest.update(f"{path}\0{sha256(content).hexdigest()}\0".encode())
    return digest.hexdigest()


GRADER = read_grader(Path(__file__).parent)
"""The one that is running, without a course's package.

It is read at once: files that change later are not what this process has imported.
"""


@cache
def grader_of(package: str) -> str:
    """Return the name of the one that is running with the package of a course.

    That is its version, and a number that differs as soon as a file of either does.
    """
    both = sha256(f"{GRADER} {digest_of(package)}".encode())
    return f"{__version__}+{both.hexdigest()[:12]}"


@cache
def digest_of(package: str) -> str:
    """Return a digest of all files of a course's package, its data too; "" without one."""
    return _digest(folder_of(package), files_of(package)) if package else ""
