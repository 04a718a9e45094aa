"""A course as wheels: one file that is all a student installs, or the grader apart from it."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import autograde
from autograde.authoring.release import copy_files, files_for_students
from autograde.course.lessons import CURRICULUM, DUE, CourseError, Lesson, read_course, read_toml
from autograde.course.package import CACHES, LICENCE, folder_of, needed_by
from autograde.installed import GROUP, LESSONS, MANUAL, manual

GRADER = "autograde-notebooks"
"""The name of the grader's own wheel."""
ABOUT = {
    "name": GRADER,
    "description": "An autograder for courses of Python notebooks, beside nbgrader",
    "requires-python": ">=3.11",
    "license": "BSD-3-Clause",
}
"""What an index shows of it."""
OUTWARDS = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")
"""A link of a page of the manual to a file outside the manual."""
SETUPTOOLS = 77
"""The oldest setuptools that builds the wheels; where it is older or missing, pip gets it."""
SHARED = {
    "share/jupyter/labextensions/autograde-page": "workspace/jupyter/labextensions/autograde-page",
    "share/jupyter/labextensions/autograde-page/static": (
        "workspace/jupyter/labextensions/autograde-page/static"
    ),
}
"""Folders in which Jupyter looks, and the folders of the grader whose files go there."""
SCRIPTS = {"autograde": "autograde.cli:main"}


def dist(root: Path, chosen: list[Lesson], target: Path, *, apart: bool) -> list[Path]:
    """Build the wheel of lessons, with the grader in it, or, if `apart`, a wheel for each.

    Wheels that hold the grader overwrite each other's; two courses on one machine need it apart.

    Raises:
        CourseError: the course has no package or no name, a lesson is not built or not finished,
            or pip fails.
    """
    course = read_course(root)
    if not course.package:
        raise CourseError(
            f"{root / CURRICULUM} names no package, and a wheel holds the lessons in one. Write, "
            'below [course]: package = "my_course", and make a folder of that name with an '
            "__init__.py in it"
        )
    project = _project(root)
    ours = {**project, "entry-points": {GROUP: {project["name"]: course.package}}}
    needed = [*needed_by(folder_of(course.package))]
    made = []
    with TemporaryDirectory() as folder:
        if apart:
            grader = {**ABOUT, "version": autograde.__version__, "scripts": SCRIPTS}
            grader["dependencies"] = needed_by(Path(autograde.__file__).parent)
            made.append(Path(folder, "grader"))
            _write(made[-1], grader, autograde.__name__)
            needed.append(f"{GRADER}=={autograde.__version__}")
        else:
            needed += needed_by(Path(autograde.__file__).parent)
            ours["scripts"] = SCRIPTS
        ours["dependencies"] = sorted({*needed})
        made.append(Path(folder, "course"))
        _write(made[-1], ours, course.package, *([] if apart else [autograde.__name__]))
        _put_lessons(root, chosen, made[-1] / course.package)
        return [_wheel(each, target) for each in made]


def _project(root: Path) -> dict[str, Any]:
    """Return what a course's pyproject.toml says that its wheel says too."""
    path, wanted = root / "pyproject.toml", ("name", "version", "description", "requires-python")
    project = read_toml(path).get("project", {})
    try:
        return {name: project[name] for name in wanted}
    except KeyError as error:
        raise CourseError(f"{path}: [project] lacks {error.args[0]!r}") from error


def _write(folder: Path, project: dict[str, Any], *packages: str) -> None:
    """Write packages and the pyproject.toml that builds them, in a new folder."""
    for package in packages:
        if (folder_of(package) / LESSONS / "__init__.py").is_file():
            raise CourseError(
                f"{package}/{LESSONS} is where a wheel has its lessons: give that module another "
                "name"
            )
        unwanted = shutil.ignore_patterns(*CACHES, LESSONS)
        shutil.copytree(folder_of(package), folder / package, ignore=unwanted)
    setuptools: dict[str, Any] = {
        "packages": {"find": {"include": [f"{package}*" for package in packages]}},
        "package-data": {"*": ["**/*", ".*"]},
    }
    if autograde.__name__ in packages:
        _put_manual(folder)
        setuptools["data-files"] = _shared(folder, autograde.__name__)
    build = {"requires": [f"setuptools>={SETUPTOOLS}"], "build-backend": "setuptools.build_meta"}
    tables = {"build-system": build, "project": project, "tool": {"setuptools": setuptools}}
    text = "".join(f"{name} = {_toml(table)}\n" for name, table in tables.items())
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def _put_manual(folder: Path) -> None:
    """Put the manual of a clone into its package; an installed package holds it already.

    Its links outwards lead to the same file of a package, or are none any more.
    """
    to = folder / autograde.__name__ / MANUAL
    if to.is_dir() or not manual().is_dir():
        return

    def link(found: re.Match[str]) -> str:
        words, path = found.groups()
        return f"[{words}](../../{path})" if (folder / path).exists() else words

    shutil.copytree(manual(), to)
    _copy_there(manual().parent, to, LICENCE)
    for page in to.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(OUTWARDS.sub(link, text), encoding="utf-8")


def _shared(folder: Path, grader: str) -> dict[str, list[str]]:
    """Return what is installed outside the package, as setuptools wants it."""
    found = {place: sorted((folder / grader / own).glob("*.*")) for place, own in SHARED.items()}
    return {
        place: [path.relative_to(folder).as_posix() for path in paths]
        for place, paths in found.items()
    }


def _toml(value: Any) -> str:
    """Return text, lists and tables as TOML, in which text and keys are quoted as in JSON."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    return json.dumps(value, ensure_ascii=False)


def _put_lessons(root: Path, chosen: list[Lesson], package: Path) -> None:
    for lesson in chosen:
        copy_files(files_for_students(lesson), package / LESSONS / lesson.name)
    _copy_there(root, package, DUE, LICENCE)


def _copy_there(root: Path, to: Path, *names: str) -> None:
    """Copy those of some files that are there."""
    for name in names:
        if (root / name).is_file():
            shutil.copyfile(root / name, to / name)


def _can_build_here() -> bool:
    try:
        return int(version("setuptools").partition(".")[0]) >= SETUPTOOLS
    except PackageNotFoundError:
        return False


def _wheel(folder: Path, target: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "-qq", "--disable-pip-version-check", "--no-deps"]
    made = folder.with_name(f"{folder.name}_wheel")
    here = ["--no-build-isolation"] * _can_build_here()
    command = [*pip, *here, "--wheel-dir", str(made), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CourseError(f"pip built no wheel: {done.stderr.strip()}")
    (wheel,) = made.iterdir()
    target.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(wheel, target / wheel.name))
