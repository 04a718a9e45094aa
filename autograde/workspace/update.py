"""The working copy: put lessons there, and bring them to a new version without losing work.

After an update is killed, the next one finishes the job: the handed-out version is noted last.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.cards import write_notes
from autograde.course.lessons import due_dates
from autograde.course.package import CACHES
from autograde.course.versions import other_rubrics
from autograde.files import visible_files, write_whole
from autograde.grading.reading.parse import parse_file
from autograde.progress import INDEX, write_page
from autograde.workspace.merge import merge
from autograde.workspace.project import Project, read_lesson, read_released

BEFORE = "before_update"
LEFT = (
    "left as it is: {}: {}. Rename the file and run autograde update again; then you get a fresh "
    "copy of the lesson and can copy your answers over."
)


@dataclass(frozen=True)
class LessonUpdate:
    """The outcome for one lesson, in words; a lesson whose update failed was left as it was."""

    lesson: str
    said: str
    failed: bool = False


def prepare(project: Project) -> list[str]:
    """Add lessons that the working copy lacks; return the names of those with a newer version."""
    for released in project.released():
        if not project.working(released).exists():
            _update(project, released)
    return write_index(project)


def update(project: Project) -> list[LessonUpdate]:
    """Bring new versions of lessons into the working copy; return the changes."""
    changes = [change for path in project.released() if (change := _update(project, path))]
    write_index(project)
    return changes


def write_index(project: Project) -> list[str]:
    """Note which lessons there are and what they are worth, and write the page of lessons.

    Return the names of those with a newer version than the working copy has.
    """
    dates, index = due_dates(project.lessons_folder.parent), {}
    for path in project.released():
        lesson, _ = read_lesson(project, path)
        index[lesson.name] = {
            "worth": {exercise.name: exercise.points for exercise in lesson.exercises},
            "written": {written.name: written.points for written in lesson.written},
            "title": lesson.numbered_title,
            "notebook": path.name,
            "due": f"{dates.get(lesson.name, '')}"[: len("2026-03-01 12:00")],
            "newer": is_newer(project, path),
            "minutes": lesson.minutes,
        }
    write_whole(project.state / INDEX, json.dumps(index, indent=1).encode())
    write_notes(project.work)
    write_page(project.work)
    return [name for name, entry in index.items() if entry["newer"]]


def is_newer(project: Project, released: Path) -> bool:
    """Return whether a lesson has another version than the one that its working copy has."""
    handed_out, files = project.handed_out(released.parent.name), _files(released).items()
    return any(_content(handed_out / name) != path.read_bytes() for name, path in files)


def _files(released: Path) -> dict[str, Path]:
    """Return the files of a lesson by their paths from its folder, its notebook last."""
    files = visible_files(released.parent)
    found = {name: path for path, name in files if CACHES.isdisjoint(path.parts)}
    notebook = found.pop(released.name)
    return {**found, released.name: notebook}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def given(path: Path) -> bytes:
    """Return a file of a lesson as it is handed out: notebooks name this machine's language.

    JupyterLab writes that into each notebook that it opens, and then shows it as changed.
    """
    content = path.read_bytes()
    if path.suffix != ".ipynb":
        return content
    from ipykernel.ipkernel import IPythonKernel  # slow, and only a new lesson needs it

    nb = json.loads(content)
    nb["metadata"]["language_info"] = IPythonKernel.language_info
    return f"{json.dumps(nb, indent=1, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")


def _update(project: Project, released: Path) -> LessonUpdate | None:
    """Bring the files of one lesson up to date; return what changed.

    A notebook that comes from elsewhere, such as a backup, may have another version's rubrics.
    """
    name, place, lesson = released.parent.name, project.working(released), read_released(released)
    if not place.exists():
        content, said = given(released), ["new"]
    else:
        students = parse_file(place, whole=True)
        if students.problem:
            return LessonUpdate(
                name, LEFT.format(place, students.problem.words.rstrip(".")), failed=True
            )
        outdated = is_newer(project, released) or other_rubrics(students.nb, lesson)
        said = ["new version"] if outdated else []
        content = _merged(project, released, students.nb) if outdated else place.read_bytes()
    for file, path in _files(released).items():
        new = content if path == released else path.read_bytes()
        if copy := _replace(project, name, file, new):
            said.append(f"your {file} as it was: {copy}")
    if not said:
        return None
    for file, path in _files(released).items():
        write_whole(project.handed_out(name) / file, path.read_bytes())
    return LessonUpdate(name, "; ".join(said))


def _merged(project: Project, released: Path, students: NotebookNode) -> bytes:
    lesson, kept = read_released(released), project.handed_out(released.parent.name) / released.name
    merged = merge(read_released(kept) if kept.is_file() else lesson, students, lesson)
    return f"{nbformat.writes(merged)}\n".encode("utf-8", "surrogatepass")


def _replace(project: Project, lesson: str, file: str, content: bytes) -> Path | None:
    """Write a file of the working copy; return the path of a backup, if the student changed it."""
    place, before = project.work / lesson / file, project.handed_out(lesson) / file
    mine, copy = _content(place), None
    if mine == content:
        return None
    if mine is not None and not (before.is_file() and mine == given(before)):
        name = f"{place.stem}-{datetime.now():%Y%m%d-%H%M%S-%f}{place.suffix}"
        copy = (project.work / BEFORE / lesson / file).with_name(name)
        write_whole(copy, mine)
    write_whole(place, content)
    return copy
