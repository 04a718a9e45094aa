"""A new lesson or course, from a skeleton: it builds and grades as it is."""

import re
import shutil
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from unicodedata import normalize

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from autograde.authoring.measure import measure
from autograde.authoring.sources import sync
from autograde.course.config import CONFIG
from autograde.course.lessons import CURRICULUM, CourseError, Lesson, lessons, read_course
from autograde.course.package import folder_of, make_importable, needed_by
from autograde.files import write_whole
from autograde.installed import manual

SKELETON = Path(__file__).parent / "skeleton"
EXERCISE = "center_rows"
FIRST = "01_first_lesson"
PLACES = {
    "curriculum.toml": "source/curriculum.toml",
    "package.py": "{package}/__init__.py",
    "requirements.txt": "{package}/requirements.txt",
    "gitignore": ".gitignore",
    "student.md": "docs/student.md",
}
"""Where a file of the skeleton goes, if not to the top of the course."""
NAME = re.compile(r"\d\d_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")


def new(root: Path, name: str, *, plain: bool = False) -> Lesson:
    """Write a lesson of this name, enter it in the curriculum, and measure its tolerances.

    Its exercise is about lists if `plain` is asked for, about tensors if the course's package needs
    torch, else about NumPy's arrays. It is called center_rows, with the lesson's number if the
    course has that already.
    When anything goes wrong, the course is as it was.

    Raises:
        CourseError: the name is not valid for a lesson, or is already taken.
        OSError: the course cannot be written.
    """
    curriculum, folder = root / CURRICULUM, root / "source" / name
    notebook, there = _notebook_of(name), lessons(root)
    if name in there or folder.exists():
        raise CourseError(f"there is a lesson {name} already: {folder}. Choose another name.")
    if taken := [other for other in there if other[:2] == name[:2]]:
        raise CourseError(f"{taken[0]} has the number {name[:2]} already. Choose another number.")
    used = {each.name for lesson in there.values() for each in lesson.exercises}
    exercise = f"{EXERCISE}_{name[:2]}" if EXERCISE in used else EXERCISE
    known = {
        "name": name,
        "notebook": notebook,
        "title": notebook.replace("_", " ").capitalize(),
        "exercise": exercise,
        "plain": plain,
        "torch": not plain and "torch" in _needed(root),
        "package": read_course(root).package,
    }
    files = {folder / "variants" / f"{exercise}.md": "variants.md.j2"}
    files |= {folder / f"{notebook}.py": "lesson.py.j2"}
    templates, before = templates_in(SKELETON), curriculum.read_text(encoding="utf-8")
    try:
        for path, template in files.items():
            write_whole(path, templates.get_template(template).render(known).encode())
        entry = templates.get_template("entry.toml.j2").render(known)
        write_whole(curriculum.resolve(), _with_entry(before, entry, name).encode())
        lesson = lessons(root)[name]
        measure(lesson)
        sync(lesson)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if curriculum.read_text(encoding="utf-8") != before:
            write_whole(curriculum.resolve(), before.encode())
        raise
    return lesson


def _notebook_of(name: str) -> str:
    """Return the name of a lesson's notebook: the lesson's own without its number."""
    if found := NAME.fullmatch(name):
        return found[1]
    raise CourseError(
        f"{name!r} cannot be a lesson's name. A name is two digits and then words of lowercase "
        "letters and digits, joined by underscores, as in 10_my_lesson."
    )


def _with_entry(curriculum: str, entry: str, name: str) -> str:
    """Return the curriculum with a lesson's entry, before those of the lessons that come later."""
    starts = re.finditer(r'^\[\[lesson\]\]\s+name = "(\w+)"', curriculum, re.MULTILINE)
    later = next((start.start() for start in starts if start[1] > name), len(curriculum))
    rest = curriculum[later:]
    return curriculum[:later].rstrip("\n") + "\n" + entry + (rest and "\n" + rest)


def _needed(root: Path) -> set[str]:
    """Return the names of the distributions that the course's package needs."""
    package = read_course(root).package
    lines = needed_by(folder_of(package)) if package else []
    return {re.split(r"[^\w.-]", line)[0].lower() for line in lines}


def templates_in(folder: Path) -> Environment:
    """Return the templates of files that are no HTML; what they lack is an error."""
    return Environment(  # noqa: S701 (no HTML)
        loader=FileSystemLoader(folder), undefined=StrictUndefined, keep_trailing_newline=True
    )


def init(folder: Path, *, plain: bool = False) -> Lesson:
    """Make a course in a new or empty folder, named after the folder. Return its first lesson.

    The lesson is about lists if `plain` is asked for, else about NumPy's arrays.

    Raises:
        CourseError: the folder is not empty, or its name has no letters.
        OSError: the course cannot be written.
    """
    title = " ".join(re.findall(r"[^\W_]+", normalize("NFC", folder.absolute().name)))
    if not any(map(str.isalpha, title)):
        raise CourseError(
            f"{folder}: a course is named after its folder; give it a name of letters"
        )
    plain_letters = normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    words = plain_letters.split()
    if not any(word[0].isalpha() for word in words):
        words = ["my", "course"]
    if folder.exists() and any(folder.iterdir()):
        joins = f". How lessons join a course: {manual() / 'plain.md'}"
        more = joins if (folder / CONFIG).is_file() else ""
        raise CourseError(f"{folder} is not empty; name a new folder{more}")
    package = "_".join(words).lstrip("0123456789_")
    if iskeyword(package) or find_spec(package):  # Python or an installed module has the name
        package += "_course"
    known = {
        "title": title[:1].upper() + title[1:],
        "package": package,
        "distribution": package.replace("_", "-"),
    }
    templates = templates_in(SKELETON / "course")
    existed = folder.exists()
    try:
        for template in templates.list_templates():
            name = template.removesuffix(".j2")
            place = folder / PLACES.get(name, name).format(**known)
            write_whole(place, templates.get_template(template).render(known).encode())
        make_importable(folder)
        return new(folder, FIRST, plain=plain)
    except BaseException:
        for path in folder.glob("*") if folder.exists() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not existed and folder.exists():
            folder.rmdir()
        raise
