"""A new lesson: written from a skeleton that builds, checks and grades as it is."""

import re
import shutil
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from autograde.authoring.check import measure
from autograde.course import CURRICULUM, CourseError, Lesson, lessons

SKELETON = Path(__file__).parent / "skeleton"
ENTRY, TEXT, END = "entry.toml.j2", "lesson.py.j2", ".j2"
NAME = re.compile(r"\d\d_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")


def new(root: Path, name: str) -> Lesson:
    """Write a lesson of this name, enter it in the curriculum, and measure its tolerances.

    When anything goes wrong, the course is as it was.

    Raises:
        CourseError: the name is not one, or there is something of that name already.
        OSError: the course cannot be written.
    """
    words = _words(name)
    curriculum, folder = root / CURRICULUM, root / "source" / name
    if name in lessons(root) or folder.exists():
        raise CourseError(f"there is a lesson {name} already: {folder}. Choose another name.")
    before = curriculum.read_text(encoding="utf-8")
    try:
        for path, text in _files(words).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        curriculum.write_text(before.rstrip("\n") + "\n" + _filled(ENTRY, words), encoding="utf-8")
        lesson = lessons(root)[name]
        measure(lesson)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if curriculum.read_text(encoding="utf-8") != before:
            curriculum.write_text(before, encoding="utf-8")
        raise
    return lesson


def _words(name: str) -> dict[str, str]:
    """Return the words that the skeleton leaves open."""
    found = NAME.fullmatch(name)
    if not found:
        raise CourseError(
            f"{name!r} cannot be a lesson's name. It is two digits and then words of small letters "
            "and digits, all with an underscore between them, as in 07_my_lesson."
        )
    notebook = found[1]
    return {
        "name": name,
        "notebook": notebook,
        "title": notebook.replace("_", " ").capitalize(),
    }


def _files(words: dict[str, str]) -> dict[str, str]:
    """Return the lesson's files, by their path in its folder."""
    names = [str(path.relative_to(SKELETON)) for path in SKELETON.rglob(f"*{END}")]
    return {
        f"{words['notebook']}.py" if name == TEXT else name.removesuffix(END): _filled(name, words)
        for name in sorted(names)
        if name != ENTRY
    }


def _filled(name: str, words: dict[str, str]) -> str:
    templates = Environment(  # noqa: S701 (no HTML)
        loader=FileSystemLoader(SKELETON), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return templates.get_template(name).render(words)
