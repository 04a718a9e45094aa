"""A new course: a folder that builds, grades, releases and makes its own wheel as it is."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from autograde.authoring.new import new, templates_in
from autograde.course import CourseError, Lesson
from autograde.course_package import make_importable

SKELETON = Path(__file__).parent / "skeleton" / "course"
FIRST = "01_first_lesson"
PLACES = {
    "curriculum.toml": "source/curriculum.toml",
    "package.py": "{package}/__init__.py",
    "requirements.txt": "{package}/requirements.txt",
    "gitignore": ".gitignore",
    "student.md": "docs/student.md",
}
"""Where a file of the skeleton goes, if not to the top of the course."""


def init(folder: Path) -> Lesson:
    """Make a course in a new or empty folder, named after the folder. Return its first lesson.

    Raises:
        CourseError: the folder is not empty, or its name has no letters.
        OSError: the course cannot be written.
    """
    words = re.findall(r"[a-z0-9]+", folder.absolute().name.lower())
    if not any(word[0].isalpha() for word in words):
        raise CourseError(
            f"{folder}: a course is named after its folder; give it a name of letters"
        )
    if folder.exists() and any(folder.iterdir()):
        raise CourseError(f"{folder} is not empty; name a new folder")
    package = _free_name("_".join(words).lstrip("0123456789_"))
    known = {
        "title": " ".join(words).capitalize(),
        "package": package,
        "distribution": package.replace("_", "-"),
    }
    templates = templates_in(SKELETON)
    existed = folder.exists()
    try:
        for template in templates.list_templates():
            name = template.removesuffix(".j2")
            place = folder / PLACES.get(name, name).format(**known)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(templates.get_template(template).render(known), encoding="utf-8")
        make_importable(folder)
        return new(folder, FIRST)
    except BaseException:
        for path in folder.glob("*") if folder.exists() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not existed and folder.exists():
            folder.rmdir()
        raise


def _free_name(name: str) -> str:
    """Return a name for a package that no installed module has."""
    return name if find_spec(name) is None else f"{name}_course"
