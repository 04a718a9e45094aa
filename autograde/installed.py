"""Courses that were installed from wheels: each has its lessons inside its own package.

Two courses can be installed side by side. Each has a folder of its own for its students' work.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import autograde

GROUP = "autograde.courses"
"""The entry points by which a wheel says that it brings a course; each names a package."""
LESSONS = "lessons"
"""The folder in a course's package that holds its lessons as students get them."""

MANUAL = "docs"
"""The folder of the grader's documentation: in its wheel, or beside it in a clone."""


@dataclass(frozen=True)
class Installed:
    """A course by the name of its wheel, and the folder of its lessons."""

    name: str
    lessons: Path

    @property
    def home(self) -> Path:
        """The folder, in the home folder, for the work of a student who has only the wheel."""
        return Path.home() / self.name


@cache
def installed() -> tuple[Installed, ...]:
    """Return the courses that were installed with lessons, by name."""
    found = {}
    for point in entry_points(group=GROUP):
        spec = find_spec(point.value)
        for place in (spec and spec.submodule_search_locations) or ():
            if (folder := Path(place, LESSONS)).is_dir():
                found[point.name] = Installed(point.name, folder)
    return tuple(found[name] for name in sorted(found))


def manual() -> Path:
    """Return the folder of the grader's documentation, where it was installed with the grader."""
    package = Path(autograde.__file__).parent
    inside = package / MANUAL
    return inside if inside.is_dir() else package.parent / MANUAL
