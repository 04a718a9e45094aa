"""Take each submission through a run: decide what to do, have workers do it, save, write.

No other process touches the gradebook.
"""

import asyncio
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, BaseConverter, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.exc import DBAPIError
from traitlets import TraitError
from traitlets.config import Config

from autograde.course.config import CONFIG
from autograde.course.lessons import CourseError, Lesson, state_folder
from autograde.course.versions import Version, notebook_of, require_built, versions
from autograde.files import write_folder
from autograde.grader import grader_of
from autograde.grading import gradebook as book
from autograde.grading import state, workers
from autograde.grading.limits import LIMITS
from autograde.grading.reading.handed_in import read_submission
from autograde.grading.submission import (
    ADDRESS,
    FAILED,
    GRADED,
    UNCHANGED,
    Disturbed,
    Done,
    Graded,
    Marks,
    Place,
    Submission,
    Task,
)
from autograde.values.text import digest

AHEAD = 2
"""Submissions with each worker: one in progress, the next waiting."""

Todo = dict[Lesson, list[Place]]


@dataclass(frozen=True)
class Opened:
    """A lesson that is being graded.

    `deciding` is a digest of what decides the scores of all its submissions. `marks` are those that
    the gradebook had before, by student.
    """

    deciding: str
    versions: tuple[Version, ...]
    marks: dict[str, Marks]


class Coordinator:
    """One run over a class: its course, the open gradebook, the workers."""

    def __init__(
        self,
        root: Path,
        config: Config,
        gradebook: Gradebook,
        executors: Sequence[Executor],
        *,
        wall: bool,
        regrade: bool,
    ) -> None:
        self.root, self.config, self.gradebook = root, config, gradebook
        self.executors, self.wall, self.regrade = executors, wall, regrade
        self._course = CourseDirectory(config=config)
        self._secret = state.course_secret(root)
        self._names = book.names_of_students(gradebook)
        self._opened: dict[Lesson, Opened | None] = {}
        self._aside: list[Place] = []
        self._alone = False

    @cached_property
    def _converters(self) -> dict[str, BaseConverter]:
        """Return nbgrader's converters by the folder that each writes."""
        about = {"coursedir": self._course, "config": self.config}
        return {"autograded": Autograde(**about), "feedback": GenerateFeedback(**about)}

    @cached_property
    def _late(self) -> AssignLatePenalties:
        parent = self._converters["autograded"]
        late = AssignLatePenalties(parent=parent, config=self.config)
        try:
            late.init_plugin()
        except TraitError as error:
            raise state.Halted(f"{self.root / CONFIG}: {error}") from error
        return late

    async def grade_all(self, places: Sequence[Place], report: Callable[[Done], None]) -> None:
        """Grade the submissions in these places, keeping the workers busy; report each when done.

        Those that others may have disturbed are graded again after them, one at a time.

        Raises:
            Halted: nothing more can be graded, whatever the submission.
        """
        lesson_of: dict[Executor, Lesson] = {}

        async def keep_busy(executor: Executor, todo: Todo) -> None:
            while todo:
                done = await self._take(next_for(executor, todo, lesson_of), executor)
                if done is not None:
                    report(done)

        todo = by_lesson(places)
        await asyncio.gather(*(keep_busy(each, todo) for each in [*self.executors] * AHEAD))
        self._alone = True
        await keep_busy(self.executors[0], by_lesson(self._aside))

    async def _take(self, place: Place, executor: Executor) -> Done | None:
        """Grade a submission, or say why that fails, so that the others go on.

        Return None if it is to be graded again after them.
        """
        try:
            return await self._grade(place, executor)
        except (state.Halted, DBAPIError):
            raise
        except (CourseError, workers.WorkerDied) as error:
            others = isinstance(error, (Disturbed, workers.WorkerDied))
            if others and not self._alone and not isinstance(error, workers.WorkerHung):
                self._aside.append(place)
                return None
            return Done(place, FAILED, str(error))
        except OSError as error:
            if error.errno in state.FULL:
                full = error.filename or self.root
                raise state.Halted(
                    f"the disk is full ({full}). Make room. {state.GO_ON}"
                ) from error
            said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return Done(place, FAILED, said)
        except Exception as error:  # the grader's own fault, and no reason to leave the others
            log = self._log("".join(traceback.format_exception(error)))
            self.gradebook.db.rollback()
            said = f"the grader failed: {type(error).__name__}: {error} (all of it: {log})"
            return Done(place, FAILED, said)

    async def _grade(self, place: Place, executor: Executor) -> Done:
        """Grade a submission, unless all that decides its scores and its page is as it was."""
        student, lesson = place
        opened = self._open(lesson)
        if opened is None:
            return Done(place, FAILED)
        handed_out = [notebook_of(version) for version in opened.versions]
        submission = read_submission(place, self._course.ignore, handed_out)
        marks, entry = opened.marks.get(student), state.read_entry(place)
        contents = sorted((name, sha256(c).hexdigest()) for name, c in submission.files.items())
        decided_by = _digest([opened.deciding, marks.extension if marks else "None", contents])
        notebook = self._folder("autograded", place) / f"{lesson.notebook}.ipynb"
        page = self._folder("feedback", place) / f"{lesson.notebook}.html"
        if (
            marks
            and entry
            and not self.regrade
            and entry.graded == _graded_digest(decided_by, marks)
            and notebook.is_file()
            and page.is_file()
        ):
            return Done(place, UNCHANGED, earlier=entry.earlier)
        known = marks or Marks(student=self._names.get(student, student))
        graded = await self._have_graded(submission, known, opened, executor)
        marks, html = book.marks_of_class(self.gradebook, lesson, student)[student], graded.page
        if marks != graded.marks or marks.again():  # it is late, say
            html = await _work(executor, workers.make_page, graded.notebook, marks)
        self.finish(submission, decided_by, graded, marks, html)
        problem, remark = graded.entry.problem, submission.remark
        both = f"{problem.rstrip('.')}. {remark}"
        said = both if problem and remark else problem or remark
        return Done(place, GRADED, said, earlier=graded.entry.earlier)

    async def _have_graded(
        self, submission: Submission, marks: Marks, opened: Opened, executor: Executor
    ) -> Graded:
        """Have a worker grade a submission that has these marks so far, and save what it gives."""
        place, when = submission.place, book.time_of(submission)
        ran = b"" if self.regrade else state.read_ran(place)
        grader = grader_of(place.lesson.package)
        task = Task(submission, self.wall, self._secret, marks, ran, self._alone, grader)
        graded: Graded = await _work(executor, workers.grade_task, task, opened.versions)
        if graded.fault:
            self._log(graded.fault)
        if graded.ran:
            state.keep_ran(place, graded.ran)
        book.save(self.gradebook, place, when, graded.marks, self._late)
        return graded

    def _open(self, lesson: Lesson) -> Opened | None:
        """Return what grading a lesson takes; None if it was already found not gradable.

        Raises:
            CourseError: it cannot be graded; raised only the first time.
        """
        if lesson in self._opened:
            return self._opened[lesson]
        self._opened[lesson] = None
        require_built(lesson)
        found = versions(lesson)
        if not book.maxima(self.gradebook, lesson):  # a due date alone makes no lesson
            raise CourseError(
                f"the gradebook does not know {lesson.name}. Run: autograde build {lesson.name}"
            )
        deciding = [
            [grader_of(lesson.package), *(version.digest for version in found)],
            self._secret,
            self.wall,
            asdict(LIMITS),
            str(self.gradebook.find_assignment(lesson.name).duedate),
            (self.root / CONFIG).read_bytes(),  # Python knows its encoding
        ]
        marks = book.marks_of_class(self.gradebook, lesson)
        self._opened[lesson] = opened = Opened(_digest(deciding), found, marks)
        return opened

    def finish(
        self, submission: Submission, decided_by: str, graded: Graded, marks: Marks, html: bytes
    ) -> None:
        """Write the graded notebook and its page, then note that the submission is done."""
        (_, lesson), files = submission.place, submission.files
        entry = replace(graded.entry, graded=_graded_digest(decided_by, marks))
        notebook = {f"{lesson.notebook}.ipynb": graded.notebook}
        self._write("autograded", submission.place, files | notebook)
        address = {n: content for n, content in files.items() if n in ADDRESS}
        self._write("feedback", submission.place, address | {f"{lesson.notebook}.html": html})
        state.keep_entry(submission.place, entry)

    def _log(self, fault: str) -> Path:
        """Add a traceback to the log of the grader's own faults, and return where that is."""
        log = state_folder(self.root) / "grading.log"
        with log.open("a", encoding="utf-8") as file:
            file.write(fault)
        return log

    def _folder(self, step: str, place: Place) -> Path:
        folder = getattr(self._course, f"{step}_directory")
        return Path(self._course.format_path(folder, place.student, place.lesson.name))

    def _write(self, step: str, place: Place, files: dict[str, bytes]) -> None:
        """Put a folder in place whole, with the permissions that nbgrader gives it."""
        write_folder(self._folder(step, place), files)
        self._converters[step].set_permissions(place.lesson.name, place.student)


async def _work(executor: Executor, call: Callable[..., Any], *given: Any) -> Any:
    """Have a worker do something; the other submissions go on meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(executor, call, *given)


def by_lesson(places: Sequence[Place]) -> Todo:
    """Return the submissions of each lesson, the first at the end of its list."""
    todo: Todo = {}
    for place in reversed(places):
        todo.setdefault(place.lesson, []).append(place)
    return dict(reversed(todo.items()))


def next_for(executor: Executor, todo: Todo, lesson_of: dict[Executor, Lesson]) -> Place:
    """Remove and return what a worker does next: one of the lesson that it has loaded.

    If there is none, it begins a lesson, or helps with the one most of which is left.
    """
    lesson = lesson_of.get(executor)
    if lesson not in todo:
        begun = lesson_of.values()
        fresh = (each for each in todo if each not in begun)
        lesson = next(fresh, None) or max(todo, key=lambda each: len(todo[each]))
        lesson_of[executor] = lesson
    place = todo[lesson].pop()
    if not todo[lesson]:
        del todo[lesson]
    return place


def _digest(facts: Any) -> str:
    """Return a digest of facts that print the same when they are the same."""
    return digest(repr(facts))


def _graded_digest(decided_by: str, marks: Marks) -> str:
    """Return a digest of all that decided the scores and the page of a submission."""
    automatic, by_hand = sorted(marks.automatic.items()), sorted(marks.by_hand.items())
    comments, waits = sorted(marks.comments_by_hand.items()), sorted(marks.waits)
    return _digest([decided_by, automatic, by_hand, comments, waits, marks.penalty, marks.student])
