"""The coordinator's own work on a submission: what is to do; save, write.

No other process touches the gradebook.
"""

import json
import pickle
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, OverwriteCells
from nbgrader.utils import parse_utc
from traitlets.config import Config

from autograde import __version__
from autograde.course import CourseError, Lesson
from autograde.grading import pages, saving
from autograde.grading.figures import figures_of
from autograde.grading.handed_in import HandedIn, read_handed_in
from autograde.grading.job import TIMESTAMP, Job, make_job
from autograde.grading.judged import Judged
from autograde.grading.limits import Limits
from autograde.grading.nbgrader_steps import restored
from autograde.grading.saving import digest
from autograde.grading.seeds import course_secret, seed_of
from autograde.grading.store import Entry, keep_entry, read_entry
from autograde.grading.verdicts import NOTE, read_verdicts
from autograde.grading.versions import version_of, versions


@dataclass(frozen=True)
class Prepared:
    """A submission about to be run; `graded` is a digest of all that decides its scores.

    `version` is the lesson as it was when it was handed out, `restored` the submission's notebook
    with that lesson's own cells put back.
    """

    handed_in: HandedIn
    version: Lesson
    graded: str
    restored: bytes
    job: Job | None


@dataclass(frozen=True)
class Page:
    """A feedback page about to be made, and the entry that is true once it is there."""

    handed_in: HandedIn
    entry: Entry
    arguments: tuple[Any, ...]


class Facts:
    """What is the same for every submission of a lesson in one run."""

    def __init__(self, lesson: Lesson, gradebook: Gradebook, config: Config, wall: bool) -> None:
        self.lesson = lesson
        self.versions = versions(lesson, gradebook)
        self.known = saving.known(gradebook, lesson)
        deciding = [
            [version.digest for version in self.versions],
            course_secret(lesson.root),
            wall,
            asdict(Limits()),
            str(gradebook.find_assignment(lesson.name).duedate),
            _settings(config),
        ]
        gradebook.db.remove()
        self.digest = digest(deciding)


def _settings(config: Config) -> str:
    """nbgrader's configuration as text, apart from where the course lies."""
    plain = {name: value for name, value in config.items() if name != "CourseDirectory"}
    return json.dumps(
        plain, sort_keys=True, default=lambda value: getattr(value, "__name__", str(type(value)))
    )


class Desk:
    """The course while a class is graded: its configuration and the open gradebook."""

    def __init__(self, root: Path, config: Config, gradebook: Gradebook, *, wall: bool) -> None:
        self.root, self.config, self.gradebook, self.wall = root, config, gradebook, wall
        self._course = CourseDirectory(config=config)
        self._autograde = Autograde(coursedir=self._course, config=config)
        self._feedback = pages.converter(config)
        self._late = AssignLatePenalties(parent=self._autograde, config=config)
        self._late.init_plugin()
        self._facts: Facts | None = None

    @cached_property
    def _pickled(self) -> bytes:
        return pickle.dumps(self.config)

    def _of(self, lesson: Lesson) -> Facts:
        """Lessons are graded one after another, so the facts of one are enough to hold."""
        if self._facts is None or self._facts.lesson != lesson:
            self._facts = Facts(lesson, self.gradebook, self.config, self.wall)
        return self._facts

    def look(self, student: str, lesson: Lesson, *, regrade: bool) -> Prepared | Page | None:
        """What is to do for a submission: all of it, its page alone, or nothing.

        Raises:
            CourseError: it cannot be graded; the message says why.
            OSError: its files cannot be read.
        """
        facts, handed_in = self._of(lesson), read_handed_in(student, lesson, self._course.ignore)
        known = facts.known.get(student)
        contents = sorted((name, digest(content)) for name, content in handed_in.files.items())
        graded = digest([facts.digest, known.extension if known else "None", contents])
        entry = read_entry(self.root, lesson.name, student)
        nb = self._place("autograded", handed_in) / f"{lesson.notebook}.ipynb"
        if (
            regrade
            or known is None
            or entry is None
            or (entry.graded, entry.scores) != (graded, known.scores)
            or not nb.is_file()
        ):
            return self._prepare(handed_in, facts, graded)
        page = digest([graded, known.by_hand])
        html = self._place("feedback", handed_in) / f"{lesson.notebook}.html"
        if entry.page == page and html.is_file():
            return None
        # people gave scores or comments since
        saving.penalise(self.gradebook, (student, lesson), self._late)
        return self._page(handed_in, pages.as_bytes(nbformat.read(nb, as_version=4)), entry)

    def _prepare(self, handed_in: HandedIn, facts: Facts, graded: str) -> Prepared:
        submission = handed_in.submission
        version = version_of(submission.nb, facts.versions)
        lesson = version.lesson
        nb = restored(submission, version.released)
        _overwrite(nb, version.cells, lesson)
        nb.metadata[NOTE]["wall"] = self.wall
        if lesson.kept is not None:
            nb.metadata[NOTE]["earlier"] = True
        if nb.metadata[NOTE]["problem"]:
            return Prepared(handed_in, lesson, graded, pages.as_bytes(nb), None)
        seed = seed_of(self.root, lesson.name, nb)
        job = make_job(nb, handed_in.files, seed, wall=self.wall, figures=figures_of(lesson))
        return Prepared(handed_in, lesson, graded, pages.as_bytes(nb), job)

    def save(self, prepared: Prepared, judged: Judged) -> Page:
        """Save a submission that was judged, and say what is to be on its page.

        Raises:
            CourseError: its time stamp cannot be read.
            OSError, sqlalchemy.exc.DBAPIError: it cannot be written.
        """
        handed_in, nb = prepared.handed_in, pages.from_bytes(judged.nb)
        lesson, student, note = handed_in.lesson, handed_in.student, nb.metadata[NOTE]
        when = _when(handed_in)
        verdicts = read_verdicts(note)
        saving.save(self.gradebook, (student, lesson), when, (nb, verdicts), self._late)
        entry = Entry(
            graded=prepared.graded,
            scores="",
            page="",
            result=prepared.job.key if prepared.job else "",
            problem=note["problem"] or _noticed(note["notes"]),
            walled=self.wall,
            seconds=judged.seconds,
            version=__version__,
        )
        return self._page(handed_in, judged.nb, entry)

    def _page(self, handed_in: HandedIn, graded: bytes, entry: Entry) -> Page:
        """What the page is made from, and the entry as the gradebook is now."""
        place = handed_in.student, handed_in.lesson
        saved = saving.saved(self.gradebook, place)
        self.gradebook.db.remove()
        known = saving.known_of(saved)
        entry = replace(entry, scores=known.scores, page=digest([entry.graded, known.by_hand]))
        return Page(handed_in, entry, (str(self.root), self._pickled, graded, place, saved))

    def finish(self, page: Page, nb: bytes, html: bytes) -> None:
        """Write the graded notebook and its page, then note that the submission is done."""
        handed_in = page.handed_in
        lesson = handed_in.lesson
        name, files = f"{lesson.notebook}.ipynb", handed_in.files
        self._write(self._autograde, "autograded", handed_in, {**files, name: nb})
        others = {n: content for n, content in files.items() if not n.endswith(".ipynb")}
        page_name = f"{lesson.notebook}.html"
        self._write(self._feedback, "feedback", handed_in, {**others, page_name: html})
        keep_entry(self.root, lesson.name, handed_in.student, page.entry)

    def _place(self, kind: str, handed_in: HandedIn) -> Path:
        folder = getattr(self._course, f"{kind}_directory")
        return Path(self._course.format_path(folder, handed_in.student, handed_in.lesson.name))

    def _write(
        self, step: BaseConverter, kind: str, handed_in: HandedIn, files: dict[str, bytes]
    ) -> None:
        """Put a folder in place whole, with the permissions that nbgrader gives it."""
        target = self._place(kind, handed_in)
        fresh = target.with_name(f".{target.name}.fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            for name, content in files.items():
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if target.exists():
                shutil.rmtree(target)
            fresh.rename(target)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        step.set_permissions(handed_in.lesson.name, handed_in.student)


def _noticed(notes: dict[str, list[str]]) -> str:
    """What happened in single cells, in one line."""
    return "; ".join(f"{cell} {text}" for cell, said in notes.items() for text in said)


def _overwrite(nb: NotebookNode, cells: saving.LessonCells, lesson: Lesson) -> None:
    """nbgrader's OverwriteKernelspec and OverwriteCells, without asking the gradebook each time."""
    if cells.kernelspec is not None:
        nb.metadata["kernelspec"] = json.loads(cells.kernelspec)
    step = OverwriteCells()
    step.gradebook, step.notebook_id, step.assignment_id = cells, lesson.notebook, lesson.name
    for index, cell in enumerate(nb.cells):
        nb.cells[index], _ = step.preprocess_cell(cell, {}, index)


def _when(handed_in: HandedIn) -> datetime | None:
    """When it was handed in, from the file in which nbgrader keeps that.

    Raises:
        CourseError: the file holds no time.
    """
    text = handed_in.files.get(TIMESTAMP, b"").decode(errors="replace").strip()
    if not text:
        return None
    try:
        when: datetime = parse_utc(text)
    except (ValueError, OverflowError) as error:
        raise CourseError(
            f"{TIMESTAMP} says {text[:60]!r}, which is no time. Put it right, as in "
            "2026-02-28 23:59:00 UTC"
        ) from error
    return when
