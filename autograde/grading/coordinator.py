"""Take each submission through a run: decide what to do, have workers do it, save, write.

No other process touches the gradebook.
"""

import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from copy import deepcopy
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, Student
from nbgrader.converters import Autograde, BaseConverter, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from traitlets import TraitError
from traitlets.config import Config

from autograde.course import CourseError, Lesson
from autograde.course_config import CONFIG
from autograde.files import write_folder
from autograde.grader import GRADER, grader_of
from autograde.grading import gradebook as book
from autograde.grading import state, workers
from autograde.grading.gradebook import digest_of
from autograde.grading.limits import LIMITS
from autograde.grading.reading.handed_in import read_submission
from autograde.grading.state import (
    Entry,
    Stop,
    course_secret,
    keep_entry,
    keep_ran,
    read_entry,
    read_ran,
)
from autograde.grading.submission import (
    ADDRESS,
    FAILED,
    GRADED,
    TIMESTAMP,
    UNCHANGED,
    Disturbed,
    Done,
    Graded,
    Marks,
    Place,
    Submission,
    Task,
)
from autograde.versions import notebook, versions

LOOK_SECONDS = 0.2
SPACE_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d)")
"""With that space nbgrader would read "-0500" as 500 seconds."""
MOST_OF_A_TIME = 100
"""Characters of a time stamp. Students can write one, and a long one takes quadratic time."""


Next = Done | tuple[Future[Any], Callable[[Any], "Next"]]
"""The outcome of a submission; or what a worker does for it, and the step that takes the result."""


@dataclass(frozen=True)
class Opened:
    """A lesson that is being graded.

    `deciding` is a digest of what decides the scores of all its submissions. `versions` is passed
    to workers. `handed_out` has the notebook of each version, `marks` the marks that the gradebook
    had before, by student.
    """

    deciding: str
    versions: Any
    handed_out: list[Any]
    marks: dict[str, Marks]


@dataclass(frozen=True)
class HandedIn:
    """A submission that is being graded, its time, and a digest of all that decides its scores."""

    submission: Submission
    when: datetime | None
    decided_by: str

    @property
    def place(self) -> Place:
        return self.submission.place


class Coordinator:
    """One run over a class: its course, the open gradebook, the workers."""

    def __init__(
        self,
        root: Path,
        config: Config,
        gradebook: Gradebook,
        executor: Executor,
        share: workers.Share,
        *,
        wall: bool,
        regrade: bool,
    ) -> None:
        self.root, self.config, self.gradebook = root, config, gradebook
        self.executor, self.share = executor, share
        self.wall, self.regrade = wall, regrade
        self._course = CourseDirectory(config=config)
        self._secret = course_secret(root)
        names = gradebook.db.query(Student.id, Student.first_name, Student.last_name)
        self._names = {row.id: book.full_name(*row) for row in names}
        self._opened: dict[Lesson, Opened | None] = {}
        self._working: dict[Future[Any], tuple[Place, Callable[[Any], Next]]] = {}
        self._aside: list[Place] = []
        self._alone = False

    @cached_property
    def _converters(self) -> dict[str, BaseConverter]:
        """Return nbgrader's converters by the folder that each writes."""
        about = {"coursedir": self._course, "config": _without_exporters(self.config)}
        return {"autograded": Autograde(**about), "feedback": GenerateFeedback(**about)}

    @cached_property
    def _late(self) -> AssignLatePenalties:
        parent = self._converters["autograded"]
        late = AssignLatePenalties(parent=parent, config=self.config)
        try:
            late.init_plugin()
        except TraitError as error:
            raise Stop(f"{self.root / CONFIG}: {error}") from error
        return late

    def grade_all(
        self, submissions: list[Place], ahead: int, stopped: Callable[[], bool]
    ) -> Iterator[Done]:
        """Grade submissions, keeping `ahead` of them with the workers until all are done.

        Those that the others may have disturbed are graded again after them, one at a time.

        Raises:
            Stop: nothing more can be graded, whatever the submission.
            KeyboardInterrupt: `stopped()` was true; what was finished by then is saved.
        """
        todo = submissions[::-1]
        while (todo or self._working or self._aside) and not stopped():
            if not todo and not self._working:
                todo, self._aside, self._alone, ahead = self._aside[::-1], [], True, 1
            while todo and len(self._working) < ahead and not stopped():
                place = todo.pop()
                yield from self._take(place, partial(self._begin, place))
            finished, _ = wait(self._working, LOOK_SECONDS, FIRST_COMPLETED)
            yield from self._go_on_with(finished)
        if todo or self._working or self._aside:
            yield from self._go_on_with([each for each in self._working if each.done()])
            raise KeyboardInterrupt

    def _go_on_with(self, finished: Iterable[Future[Any]]) -> Iterator[Done]:
        """Take the next step of each submission for which a worker is done."""
        for future in finished:
            place, step = self._working.pop(future)
            yield from self._take(place, partial(_next, step, future))

    def _take(self, place: Place, step: Callable[[], Next]) -> Iterator[Done]:
        """Take a step for a submission; report it if that fails, so that the others go on."""
        try:
            found = step()
        except (Stop, DBAPIError):
            raise
        except (CourseError, workers.WorkerDied) as error:
            others = isinstance(error, (Disturbed, workers.WorkerDied))
            if others and not self._alone and not isinstance(error, workers.WorkerHung):
                self._aside.append(place)
                return
            found = Done(place, FAILED, str(error))
        except OSError as error:
            if error.errno in state.FULL:
                full = error.filename or self.root
                raise Stop(f"the disk is full ({full}). Make room. {state.GO_ON}") from error
            found = Done(place, FAILED, f"{error.filename}: {error.strerror}")
        except Exception as error:  # the grader's own fault, and no reason to leave the others
            log = self._log("".join(traceback.format_exception(error)))
            self.gradebook.db.rollback()
            said = f"the grader failed: {type(error).__name__}: {error} (all of it: {log})"
            found = Done(place, FAILED, said)
        if isinstance(found, Done):
            yield found
        else:
            future, then = found
            self._working[future] = place, then

    def _begin(self, place: Place) -> Next:
        """Do what a submission needs: grade it, make only its page again, or nothing.

        Raises:
            CourseError: it cannot be graded.
            OSError, sqlalchemy.exc.DBAPIError: something cannot be read or written.
        """
        student, lesson = place
        opened = self._open(lesson)
        if opened is None:
            return Done(place, FAILED)
        submission = read_submission(place, self._course.ignore, opened.handed_out)
        marks, entry = opened.marks.get(student), read_entry(place)
        contents = sorted((name, sha256(c).hexdigest()) for name, c in submission.files.items())
        decided_by = digest_of([opened.deciding, marks.extension if marks else "None", contents])
        handed_in = HandedIn(submission, _when(submission), decided_by)
        file = self._folder("autograded", place) / f"{lesson.notebook}.ipynb"
        page = self._folder("feedback", place) / f"{lesson.notebook}.html"
        if (
            self.regrade
            or marks is None
            or entry is None
            or (entry.graded, entry.scores) != (decided_by, book.digest_of_scores(marks))
            or not file.is_file()
        ):
            ran = b"" if self.regrade else read_ran(place)
            known = marks or Marks(student=self._names.get(student, student))
            grader = str(grader_of(lesson.package))
            task = Task(submission, self._secret, self.wall, known, ran, self._alone, grader=grader)
            grading = self.executor.submit(workers.grade_task, task, opened.versions)
            return grading, partial(self._save_graded, handed_in)
        if entry.page == _page_digest(decided_by, marks) and page.is_file():
            return Done(place, UNCHANGED)
        # people gave scores or comments since, or pages are made in another way
        book.penalise(self.gradebook, place, self._late)
        return self._make_page(handed_in, file.read_bytes(), entry.problem, entry.seconds)

    def _save_graded(self, handed_in: HandedIn, graded: Graded) -> Next:
        self.save(handed_in.place, handed_in.when, graded)
        return self._make_page(
            handed_in, graded.notebook, graded.problem, graded.seconds, graded.marks, graded.page
        )

    def _make_page(
        self,
        handed_in: HandedIn,
        notebook: bytes,
        problem: str,
        seconds: float,
        shown: Marks | None = None,
        html: bytes = b"",
    ) -> Next:
        """Have the page made, unless it shows what the gradebook holds; it is late, say."""
        student, lesson = handed_in.place
        marks = book.marks_of_class(self.gradebook, lesson, student)[student]
        end = partial(self._end, handed_in, notebook, problem, seconds, marks)
        if marks == shown:
            return end(html)
        return self.executor.submit(workers.make_page, notebook, marks), end

    def _end(
        self,
        handed_in: HandedIn,
        notebook: bytes,
        problem: str,
        seconds: float,
        marks: Marks,
        html: bytes,
    ) -> Done:
        """Write what came of a submission, and say so."""
        scores = book.digest_of_scores(marks)
        on_page = _page_digest(handed_in.decided_by, marks)
        grader = grader_of(handed_in.place.lesson.package)
        entry = Entry(handed_in.decided_by, scores, on_page, problem, seconds, grader)
        self.finish(handed_in.submission, notebook, html, entry)
        remark = handed_in.submission.remark
        both = f"{problem.rstrip('.')}. {remark}" if problem else remark
        return Done(handed_in.place, GRADED, both if remark else problem)

    def _open(self, lesson: Lesson) -> Opened | None:
        """Return what grading a lesson takes; None if it was already found not gradable.

        Raises:
            CourseError: it cannot be graded; raised only the first time.
        """
        if lesson in self._opened:
            return self._opened[lesson]
        self._opened[lesson] = None
        found, grader = versions(lesson), grader_of(lesson.package)
        if lesson.name not in {assignment.name for assignment in self.gradebook.assignments}:
            raise CourseError(
                f"the gradebook does not know {lesson.name}. Run: autograde build {lesson.name}"
            )
        deciding = [
            [grader.runs, grader.judges, *(version.digest for version in found)],
            self._secret,
            self.wall,
            asdict(LIMITS),
            str(self.gradebook.find_assignment(lesson.name).duedate),
            (self.root / CONFIG).read_bytes(),  # Python knows its encoding
        ]
        marks = book.marks_of_class(self.gradebook, lesson)
        handed_out = [notebook(version) for version in found]
        opened = Opened(digest_of(deciding), self.share(found), handed_out, marks)
        self._opened[lesson] = opened
        return self._opened[lesson]

    def save(self, place: Place, when: datetime | None, graded: Graded) -> None:
        """Save a submission that was graded: its run, its student, time, scores and lateness."""
        if graded.fault:
            self._log(graded.fault)
        if graded.ran:
            keep_ran(place, graded.ran)
        timestamp = {} if when is None else {"timestamp": when}
        self.gradebook.update_or_create_student(place.student)
        self.gradebook.update_or_create_submission(place.lesson.name, place.student, **timestamp)
        book.save_scores(self.gradebook, place, graded.marks)
        book.penalise(self.gradebook, place, self._late)
        self.gradebook.db.remove()  # else the session would keep the whole class in memory

    def finish(self, submission: Submission, notebook: bytes, html: bytes, entry: Entry) -> None:
        """Write the graded notebook and its page, then note that the submission is done."""
        name, files = submission.place.lesson.notebook, submission.files
        graded = {**files, f"{name}.ipynb": notebook}
        self._write("autograded", submission.place, graded)
        address = {n: content for n, content in files.items() if n in ADDRESS}
        self._write("feedback", submission.place, {**address, f"{name}.html": html})
        keep_entry(submission.place, entry)

    def _log(self, fault: str) -> Path:
        """Add a traceback to the log of the grader's own faults, and return where that is."""
        log = self.root / ".autograde" / "grading.log"
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


def _next(step: Callable[[Any], Next], done: Future[Any]) -> Next:
    return step(done.result())


def shown(config: Config, lesson: Lesson, known: dict[str, Marks]) -> bool:
    """Return whether the page of each submission shows what the gradebook of the course holds."""
    course = CourseDirectory(config=config)
    usual = make_url(course.db_url).database == str(lesson.root / "gradebook.db")
    entries = {student: read_entry(Place(student, lesson)) for student in known}
    return usual and all(
        entry is None or entry.page == _page_digest(entry.graded, known[student])
        for student, entry in entries.items()
    )


def _page_digest(graded: str, marks: Marks) -> str:
    """Return a digest of all that is on a page."""
    by_hand, comments = sorted(marks.by_hand.items()), sorted(marks.comments_by_hand.items())
    return digest_of([GRADER.shows, graded, by_hand, comments, marks.penalty, marks.student])


def _without_exporters(config: Config) -> Config:
    """Return a configuration for converters that convert nothing: exporters import much."""
    config = deepcopy(config)
    for converter in ("Autograde", "GenerateFeedback"):
        config[converter].pop("exporter_class", None)
    return config


def _when(submission: Submission) -> datetime | None:
    """Read the time of a submission from nbgrader's file.

    Raises:
        CourseError: the file holds no time.
    """
    text = submission.files.get(TIMESTAMP, b"").decode(errors="replace").strip()
    when: datetime | None = None
    try:
        if len(text) > MOST_OF_A_TIME:
            raise ValueError
        if text:
            when = parse_utc(SPACE_BEFORE_OFFSET.sub("", text))
    except (ValueError, OverflowError) as error:
        raise CourseError(
            f"{TIMESTAMP} says {text[:60]!r}, which is not a time. Correct it, for "
            "example to 2026-02-28 23:59:00 UTC"
        ) from error
    return when
