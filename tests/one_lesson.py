"""A course of one lesson, for tests that build it and are quick all the same."""

import shutil
from pathlib import Path

from conftest import HERE

from autograde.course import CURRICULUM, Lesson, lessons

ENTRY = "[[lesson]]"


def make_course_of_one(root: Path, name: str) -> Lesson:
    """The source of one lesson of this course, in a course of its own that was never built."""
    shutil.copytree(HERE / "source" / name, root / "source" / name)
    _, *entries = (HERE / CURRICULUM).read_text(encoding="utf-8").split(ENTRY)
    entry = next(entry for entry in entries if f'name = "{name}"' in entry)
    (root / CURRICULUM).write_text(ENTRY + entry, encoding="utf-8")
    shutil.copy(HERE / "nbgrader_config.py", root)
    return lessons(root)[name]
