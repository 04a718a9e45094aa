"""Submit: check the working copy, then pack it for an LMS or give it to nbgrader."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path

from autograde import progress
from autograde.course.cells import named_cells
from autograde.course.lessons import CourseError, pick
from autograde.files import write_whole
from autograde.rubric.names import names_of
from autograde.student_text import named
from autograde.workspace.project import Project, read_saved
from autograde.workspace.update import is_newer

STUB = "raise NotImplementedError()"
SAVED_LATER_SECONDS = 2
"""A rubric that ran more than this long after the last save ran on unsaved changes."""


@dataclass(frozen=True)
class CheckedLesson:
    """A lesson about to be handed in. `refused` says why it cannot be graded at all."""

    lesson: str
    path: Path
    refused: str = ""
    begun: bool = True
    warnings: list[str] = field(default_factory=list)

    @property
    def in_words(self) -> list[str]:
        if self.refused:
            said = f"{self.lesson}: cannot be graded: {self.refused}"
        else:
            saved = datetime.fromtimestamp(self.path.stat().st_mtime)
            said = f"{self.lesson}: {self.path}, saved {saved:%Y-%m-%d %H:%M:%S}"
        return [said, *(f"  {warning}" for warning in self.warnings)]


def choose(project: Project, names: tuple[str, ...]) -> list[CheckedLesson]:
    """Check the named lessons; without names, those that the student has begun.

    Raises:
        CourseError: a name is unknown, or nothing was begun.
    """
    known = {path.parent.name: path for path in project.released()}
    wanted = dict.fromkeys(name.rstrip("/\\") for name in names) or known  # each once
    checked = [_check(project, pick("lesson", name, known)) for name in wanted]
    if not names:
        checked = [each for each in checked if each.begun]
    if not checked:
        raise CourseError(f"nothing to submit: no lesson in {project.work} was begun")
    return checked


def _check(project: Project, released: Path) -> CheckedLesson:
    name, path = released.parent.name, project.working(released)
    others = sorted(each.name for each in path.parent.glob("[!.]*.ipynb") if each != path)
    warnings = [f"not submitted, only {path.name} is: {named(others)}"] if others else []
    try:
        record, _, lesson, original = read_saved(project, path)
    except CourseError as error:
        begun = path.exists() or bool(others)
        return CheckedLesson(name, path, refused=str(error), begun=begun, warnings=warnings)
    mine, given = named_cells(record.nb), named_cells(original)
    changed = {each for each in lesson.worth if mine[each].source != given[each].source}
    codes = [cell.source for cell in record.nb.cells if cell.cell_type == "code"]
    bound = set[str]().union(*(names_of(code).bound for code in codes))
    for exercise in lesson.exercises:
        each = exercise.name
        missing = _missing(path, each, mine[each].source, each in changed, each in bound)
        warnings += [f"{each}: {warning}" for warning in missing]
    warnings += [f"{each.name}: not begun" for each in lesson.written if each.name not in changed]
    warnings += [f"{cell}: {text}" for cell, notes in record.notes.items() for text in notes]
    if project.handed_out(name).is_dir() and is_newer(project, released):
        warnings.append("there is a newer version of the lesson: run autograde update")
    return CheckedLesson(name, path, begun=bool(changed), warnings=warnings)


def _missing(path: Path, exercise: str, answer: str, begun: bool, bound: bool) -> Iterator[str]:
    """Yield warnings where an answer is a stub, or is not what practice judged."""
    last = progress.last_attempt(path.parent, exercise)
    unsaved = last is not None and last.when > path.stat().st_mtime + SAVED_LATER_SECONDS
    if not begun:
        yield "not begun"
    elif STUB in answer:
        yield f"not finished, `{STUB}` is still in it"
    elif not bound:
        yield "no cell defines it under this name"
    elif last is None:
        yield "its rubric has not been run here"
    elif not unsaved and last.answer not in ("", progress.digest_of_cell(answer)):
        yield "changed after its rubric ran"
    if unsaved:
        yield "not saved since its rubric ran"


def pack(project: Project, checked: list[CheckedLesson]) -> Path:
    """Pack one zip for an LMS, each notebook in a folder with the lesson's name."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in checked:
            archive.write(each.path, f"{each.lesson}/{each.path.name}")
    name = checked[0].lesson if len(checked) == 1 else "lessons"
    path = project.work / "hand_in" / f"{name}.zip"
    write_whole(path, content.getvalue())
    return path


def exchange(project: Project, checked: list[CheckedLesson]) -> list[str]:
    """Submit each lesson with nbgrader's own command; return the lessons that it refused.

    nbgrader's configuration names the exchange and the course.
    """
    refused = []
    for each in checked:
        command = [sys.executable, "-m", "nbgrader", "submit", each.lesson]
        if subprocess.run(command, cwd=project.work, check=False).returncode:
            refused.append(each.lesson)
    return refused
