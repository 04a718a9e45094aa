"""The package of a course: what its lessons import beside the grader, and probes and checks of it.

`source/curriculum.toml` names it. A course may do without one; then its name is "".
"""

import os
import sys
import traceback
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from autograde.course.lessons import CURRICULUM, DUE, CourseError
from autograde.files import kept_by_tools
from autograde.installed import LESSONS

NAMED = "course_package"
"""In the metadata of a notebook that students get: the name of the package."""

NEEDED = "requirements.txt"
"""The file in a package that lists what it needs, as pip reads it."""

CACHES = {"__pycache__", ".ipynb_checkpoints"}

LICENCE = "LICENSE"
"""The licence asks that its text goes wherever the code goes."""


def make_importable(root: Path) -> None:
    """Have this process, and those that it starts, find the package in a course's folder."""
    folder, given = str(root), os.environ.get("PYTHONPATH", "")
    if folder not in sys.path:
        sys.path.append(folder)
    if folder not in given.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [given]), folder])


def bring_in(package: str) -> None:
    """Import a course's package, so that its probes and checks are known.

    Raises:
        CourseError: it is not installed here, or fails.
    """
    if not package:
        return
    folder = folder_of(package)
    try:
        import_module(package)
    except Exception as error:  # it is a program, so it may fail in any way
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
        at = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        why = f"{type(error).__name__}: {error}{at}"
        raise CourseError(f"the course's package {package} cannot be imported: {why}") from error


@cache
def folder_of(package: str) -> Path:
    """Return the folder of a course's package.

    Raises:
        CourseError: it is not installed here.
    """
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise CourseError(
            f"the course's package {package} is not installed here. Run pip install in the folder "
            f"that holds it, or correct `package` in {CURRICULUM}"
        )
    return Path(places[0])


def needed_by(package: Path) -> list[str]:
    """Return what a package in this folder needs, one requirement each."""
    file = package / NEEDED
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = (line.partition("#")[0].strip() for line in lines)
    return [name for name in found if name]


def files_of(package: str) -> list[Path]:
    """Return the files of a course's package, in order.

    Neither what Python and other tools keep there is among them, nor what `autograde dist` has put
    into the students' one: their grader is the same.
    """
    if not package:
        return []
    folder = folder_of(package)
    put = {folder / name for name in (LESSONS, DUE, LICENCE)}
    if (folder / LESSONS / "__init__.py").is_file():  # a module of the course's own
        put.remove(folder / LESSONS)
    return [
        path
        for path in sorted(folder.rglob("*"), key=Path.as_posix)
        if path.is_file()
        and not kept_by_tools(path.relative_to(folder))
        and put.isdisjoint([path, *path.parents])
    ]
