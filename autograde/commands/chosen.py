"""The course, the lessons or the student's copy that a command is about."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograde.course.lessons import CURRICULUM, Lesson, choose, find_root
from autograde.course.package import make_importable

if TYPE_CHECKING:
    from autograde.workspace.project import Project

FURTHER = "[JUPYTER'S OPTION]..."
SOME = "[LESSON]..."


def the_course() -> Path:
    """Return the folder of the course around this one; from now on its package can be imported."""
    root = find_root(Path.cwd())
    make_importable(root)
    return root


def chosen(names: tuple[str, ...]) -> list[Lesson]:
    """Return the named lessons of this folder's course, or all."""
    return choose(the_course(), names)


def the_project() -> "Project":
    """Return the project that this folder belongs to."""
    from autograde.workspace.project import find_project

    project = find_project(Path.cwd(), click.get_current_context().obj)
    if (project.root / CURRICULUM).is_file():  # its author's own folder
        make_importable(project.root)
    return project
