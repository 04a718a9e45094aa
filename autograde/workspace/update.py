"""The working copy: put lessons there, and bring them to a new version without losing work.

After an update is killed, the next one finishes the job: the handed-out version is noted last.
"""

import json
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograde.course import CourseError, named_cells
from autograde.files import write_whole
from autograde.grading.restore import parse, parse_file
from autograde.progress import INDEX, write_page
from autograde.versions import other_rubrics
from autograde.workspace.merge import merge
from autograde.workspace.project import Project

BEFORE = "before_update"


@dataclass(frozen=True)
class Change:
    """The outcome for one lesson, in words; a lesson whose update failed was left as it was."""

    lesson: str
    said: str
    failed: bool = False


def prepare(project: Project) -> list[str]:
    """Add lessons that the working copy lacks; return the names of those with a newer version.

    Raises:
        CourseError: a lesson of notebooks/ cannot be read.
    """
    newer = []
    for released in project.released():
        if not project.working(released).exists():
            _hand_out(project, released)
        elif is_newer(project, released):
            newer.append(released.parent.name)
    write_index(project, newer)
    return newer


def update(project: Project) -> list[Change]:
    """Bring new versions of lessons into the working copy; return the changes.

    Raises:
        CourseError: a lesson of notebooks/ cannot be read.
    """
    changes = [change for path in project.released() if (change := _update(project, path))]
    write_index(project, [change.lesson for change in changes if change.failed])
    return changes


def write_index(project: Project, newer: list[str]) -> None:
    """Note which lessons there are and what they are worth, and write the page of lessons.

    Args:
        newer: the lessons with a newer version than the working copy has.
    """
    due = project.due()
    index = {
        lesson.name: {
            "worth": {exercise.name: exercise.points for exercise in lesson.exercises},
            "written": {written.name: written.points for written in lesson.written},
            "title": lesson.numbered_title,
            "notebook": path.name,
            "due": due.get(lesson.name, ""),
            "newer": lesson.name in newer,
        }
        for path, lesson in project.lessons
    }
    write_whole(project.state / INDEX, json.dumps(index, indent=1).encode())
    write_page(project.work)


def is_newer(project: Project, released: Path) -> bool:
    """Return whether a lesson has another version than the one that its working copy has."""
    handed_out = project.handed_out(released.parent.name)
    return any(_content(handed_out / path.name) != path.read_bytes() for path in _files(released))


def _files(released: Path) -> list[Path]:
    """Return the files of a lesson, its notebook last."""
    files = (path for path in released.parent.iterdir() if path.is_file())
    return sorted(
        (path for path in files if not path.name.startswith(".")),
        key=lambda path: (path == released, path.name),
    )


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _hand_out(project: Project, released: Path) -> Change:
    name = released.parent.name
    for path in _files(released):
        _replace(project, name, path, _given(path))
    _note(project, released)
    return Change(name, "new")


def _given(path: Path) -> bytes:
    """Return the content of a lesson's file in the working copy, before the student changes it."""
    content = path.read_bytes()
    return named_language(content) if path.suffix == ".ipynb" else content


def named_language(content: bytes) -> bytes:
    """Return a notebook's bytes with the language metadata of the kernel on this machine.

    JupyterLab writes them into each notebook that it opens, and then shows it as changed.
    """
    from ipykernel.ipkernel import IPythonKernel  # slow, and only a new lesson needs it

    nb = json.loads(content)
    nb["metadata"]["language_info"] = IPythonKernel.language_info
    return f"{json.dumps(nb, indent=1, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")


def _untouched(mine: bytes, handed_out: bytes | None, name: str) -> bool:
    """Return whether a student's file is as it was handed out."""
    if mine == handed_out:
        return True
    return handed_out is not None and name.endswith(".ipynb") and mine == named_language(handed_out)


def _note(project: Project, released: Path) -> None:
    for path in _files(released):
        write_whole(project.handed_out(released.parent.name) / path.name, path.read_bytes())


def _replace(project: Project, lesson: str, released: Path, content: bytes) -> Path | None:
    """Write a file of the working copy; return the path of a backup, if the student changed it."""
    place = project.work / lesson / released.name
    mine, copy = _content(place), None
    if mine == content:
        return None
    handed_out = _content(project.handed_out(lesson) / released.name)
    if mine is not None and not _untouched(mine, handed_out, released.name):
        copy = _place_for_copy(project.work / BEFORE / lesson, released)
        write_whole(copy, mine)
    write_whole(place, content)
    return copy


def _place_for_copy(folder: Path, released: Path) -> Path:
    when = f"{datetime.now():%Y%m%d-%H%M%S}"
    names = (f"{released.stem}-{when}{n}{released.suffix}" for n in ("", *map(str, range(2, 99))))
    return next(folder / name for name in names if not (folder / name).exists())


def _update(project: Project, released: Path) -> Change | None:
    name, mine = released.parent.name, project.working(released)
    if not mine.exists():
        return _hand_out(project, released)
    if not is_newer(project, released):
        _bring_back(project, released)
        return _with_newest_rubrics(project, released)
    old = _content(project.handed_out(name) / released.name)
    if old is None:
        if mine.read_bytes() == released.read_bytes():
            return _hand_out(project, released)
        return Change(name, _left(mine, "the version it was made from is not known"), failed=True)
    try:
        content, said = _merged(old, mine.read_bytes(), released)
    except CourseError as error:
        return Change(name, _left(mine, str(error)), failed=True)
    for path in _files(released):
        new = content if path == released else path.read_bytes()
        if copy := _replace(project, name, path, new):
            said += f"; your {path.name} as it was: {copy}"
    _note(project, released)
    return Change(name, said)


def _bring_back(project: Project, released: Path) -> None:
    """Restore files of the lesson that the student deleted."""
    for path in _files(released):
        if not (project.work / released.parent.name / path.name).exists():
            _replace(project, released.parent.name, path, _given(path))


def _with_newest_rubrics(project: Project, released: Path) -> Change | None:
    """Bring the rubrics of a notebook that comes from elsewhere, such as a backup, up to date."""
    mine, lesson = (parse_file(p, whole=True) for p in (project.working(released), released))
    if mine.problem:
        return None
    theirs, base = named_cells(mine.nb), deepcopy(lesson.nb)
    cells = named_cells(base)
    other = [f"test_{exercise}" for exercise in other_rubrics(mine.nb, lesson.nb)]
    for name in cells.keys() & other:
        cells[name].metadata = deepcopy(theirs[name].metadata)
        cells[name].source = theirs[name].source if _as_handed_out(theirs[name]) else ""
    if not cells.keys() & other:
        return None
    merged = merge(base, mine.nb, lesson.nb)
    content = f"{nbformat.writes(merged.nb)}\n".encode("utf-8", "surrogatepass")
    if (copy := _replace(project, released.parent.name, released, content)) is None:
        return None
    said = "made from another version of the lesson: its rubrics are the newest now"
    return Change(released.parent.name, f"{said}; your {released.name} as it was: {copy}")


def _as_handed_out(cell: NotebookNode) -> bool:
    """Return whether a rubric cell has the text of which the build noted the checksum."""
    from nbgrader.utils import compute_checksum  # slow, and seldom needed

    return bool(compute_checksum(cell) == cell.metadata["nbgrader"]["checksum"])


def _left(mine: Path, why: str) -> str:
    return (
        f"left as it is: {mine}: {why.rstrip('.')}. Rename the file and run autograde update "
        "again; then you get a fresh copy of the lesson and can copy your answers over."
    )


def _merged(old: bytes, mine: bytes, released: Path) -> tuple[bytes, str]:
    """Return the merged notebook's file, and what happened in words.

    Raises:
        CourseError: one of the three cannot be read.
    """
    new = released.read_bytes()
    if _untouched(mine, old, released.name):
        return named_language(new), "new version"
    if old == new:
        return mine, "new version"
    notebooks = []
    for content in (old, mine, new):
        parsed = parse(content, whole=True)
        if parsed.problem:
            raise CourseError(parsed.problem.words)
        notebooks.append(parsed.nb)
    merged = merge(*notebooks)
    said = [f"new version of {len(merged.taken)} cells, your answers kept"]
    if merged.conflicts:
        said.append(f"changed by you and by the lesson, look there: {', '.join(merged.conflicts)}")
    return (nbformat.writes(merged.nb) + "\n").encode("utf-8", "surrogatepass"), "; ".join(said)
