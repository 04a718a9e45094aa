"""Run a lesson's own code, the reference or a variant, and make keys from it.

Only for the course's own code, because it runs in this process.
"""

import ctypes
import json
import linecache
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from io import StringIO
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, RLock, Thread, get_ident
from typing import Any, TypedDict

from nbformat import NotebookNode

from autograde.course.cells import exercise_of, grade_id
from autograde.course.data_files import readable_files
from autograde.course.lesson_files import read_text
from autograde.course.lessons import CourseError, Exercise, Lesson
from autograde.course.package import bring_in
from autograde.course.versions import Version, source_of
from autograde.files import write_files
from autograde.grading.limits import Limits
from autograde.rubric import session
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.kinds import KINDS, describe_error
from autograde.rubric.lesson_names import keep_given
from autograde.rubric.probes.lines import rubric
from autograde.rubric.recording import Line, Recording
from autograde.values.base import BadData, unrecordable
from autograde.values.loaded_torch import compute_on_one_thread
from autograde.values.text import digest

AGAIN_SECONDS = 5
ENDLESS_SECONDS = 5
"""A wrong variant that computes for so long is taken to have no end. `check` and `build` would wait
for each of them, every time; what else runs on the machine does not count."""
DEFINED = re.compile(r"^(?:class|def)\s+(\w+)", re.MULTILINE)

RECORDED = (
    "numbers, text, None, a date, datetime, timedelta, Decimal or Fraction, a list, tuple, set or "
    "dict, a named tuple or dataclass, a NumPy array, a tensor, or a DataFrame, Series or Index"
)

Files = tuple[tuple[str, bytes], ...]

_current_folder = RLock()
"""A process has one current folder, for all its threads."""


class Measured(TypedDict):
    """One rubric line as `autograde check --measure` found it.

    A claim is a line whose outcomes can be guessed, or of a kind that computes nothing.
    """

    tolerance: float
    claim: bool


Lines = dict[str, Measured]


@dataclass(frozen=True)
class Program:
    """The names that a lesson's given cells and solutions define, and its rubrics.

    `names` is what its functions read, as in a kernel. `answered` is what it holds while a rubric
    records another answer, which the lesson's own functions then call too. `files` lie beside the
    lesson, for all of them to read.
    """

    lesson: Lesson
    names: dict[str, Any]
    rubrics: dict[str, str]
    answered: dict[str, Any] | None = None
    files: Files = ()

    def with_answer(self, code: str) -> "Program":
        """Return the same lesson with other code in place of a solution.

        A cell with a syntax error does not run, so the names that it would define are missing.
        """
        with self._in_place(), at_hand(self.files):
            try:
                run(code, self.names)
            except SyntaxError:
                for name in DEFINED.findall(code):
                    self.names.pop(name, None)
            return replace(self, answered=dict(self.names))

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Put the other answer, if there is one, among the names; afterwards all are as before."""
        before = dict(self.names)
        if self.answered is not None:
            self.names.clear()
            self.names.update(self.answered)
        try:
            yield
        finally:
            self.names.clear()
            self.names.update(before)

    def record(
        self, exercise: str, seed: int, *, double: bool = False, cpu_seconds: float = inf
    ) -> Recording:
        """Return what the rubric of an exercise records with this seed.

        It is interrupted when it takes longer than a cell may in grading, as it is there, or more
        processor time than `cpu_seconds`.

        Raises:
            CourseError: the lesson has no such rubric, it opens another, or it fails before that.
        """
        if exercise not in self.rubrics:
            raise CourseError(f"{self.lesson.text.name} has no cell test_{exercise}")
        asked = session.recording(seed, double=double, package=self.lesson.package)
        place = at_hand(self.files)
        with asked as recordings, self._in_place(), place, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # wrong variants cause warnings, which do not matter
            try:
                with interrupted_after(Limits().cell_seconds, cpu_seconds):
                    run(self.rubrics[exercise], {**self.names, "rubric": rubric})
            except Exception as error:
                # a variant that breaks the rubric cell itself; the recording says what stopped it
                if exercise not in recordings:
                    raise CourseError(f"test_{exercise} {_why(error)}") from error
        if exercise not in recordings:
            raise CourseError(f'test_{exercise} does not open rubric("{exercise}")')
        return recordings[exercise]


def load(lesson: Lesson, text: NotebookNode | None = None, files: Files | None = None) -> Program:
    """Run the lesson's locked cells and its solutions; the other cells only show things.

    Args:
        text: the lesson's text as a notebook; read from the course if it is left out.
        files: what lies beside it, likewise.

    Raises:
        CourseError: one of them fails, or a rubric is not Python; the message says which and why.
    """
    bring_in(lesson.package)
    files = readable_files(lesson) if files is None else files
    names: dict[str, Any] = {"__name__": lesson.name}
    rubrics = {}
    rubric_cells = {exercise.rubric_cell: exercise.name for exercise in lesson.exercises}
    for cell in (text or read_text(lesson)).cells:
        if cell.cell_type != "code" or (name := grade_id(cell)) is None:
            continue
        try:
            if name in rubric_cells:
                compile(cell.source, name, "exec")
                rubrics[rubric_cells[name]] = cell.source
            elif not (exercise_of(cell) or cell.metadata["nbgrader"]["grade"]):
                with at_hand(files):
                    run(cell.source, names)
                keep_given(cell.source, names, rubric)
        except Exception as error:
            raise CourseError(f"{lesson.text.name}: the cell {name} {_why(error)}") from error
    return Program(lesson, names, rubrics, files=files)


@contextmanager
def at_hand(files: Files) -> Iterator[None]:
    """Run code where it finds these files, as a kernel does beside its notebook.

    What it writes there is gone afterwards, and nothing that it prints is seen.
    """
    with _current_folder, TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        write_files(Path(folder), files)
        with chdir(folder):
            yield


@contextmanager
def interrupted_after(seconds: float, cpu_seconds: float = inf) -> Iterator[None]:
    """End what takes longer by a KeyboardInterrupt in this thread, which goes no further.

    One interrupt may be lost, in a bare `except:`, so others follow until it has ended.
    """
    thread, late, over = ctypes.c_ulong(get_ident()), False, Event()
    stop = ctypes.py_object(KeyboardInterrupt)
    until, clock = time.monotonic() + seconds, _processor_clock()
    used = clock()

    def interrupt() -> None:
        nonlocal late
        while not over.wait(AGAIN_SECONDS if late else min(seconds, 0.5)):
            late = time.monotonic() >= until or clock() - used >= cpu_seconds
            if late:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, stop)

    timer = Thread(target=interrupt, daemon=True)
    timer.start()
    try:
        try:
            yield
        finally:  # within the outer `try`: it may also arrive here
            over.set()
            timer.join()  # a process that has other threads should not fork
    except KeyboardInterrupt:
        if not late:
            raise
    finally:  # the interrupt may have kept the first one from it
        over.set()
        timer.join()


def _processor_clock() -> Callable[[], float]:
    """Return a clock of the processor time of this thread, or, on Windows, of its process."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    return partial(time.clock_gettime, time.pthread_getcpuclockid(get_ident()))


@contextmanager
def room_of_a_kernel(lesson: Lesson) -> Iterator[None]:
    """Let code take as much more memory as a kernel may in grading; past it a MemoryError ends it.

    Linux alone keeps this limit, for the process as a whole.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    *_, data, _ = Path("/proc/self/statm").read_text().split()  # in pages
    most = int(data) * resource.getpagesize()
    most += Limits().with_memory(lesson.memory_gb).kernel.memory_bytes
    limits = [most, *(each for each in (soft, hard) if each >= 0)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@lru_cache(maxsize=8)
def practice_of(version: Version) -> dict[str, Key]:
    """Return the keys of the practice seed, with known mistakes; none where they were not kept.

    Raises:
        CourseError: the file is damaged, for example by a merge.
    """
    try:
        return unpack_keys(version.practice) if version.practice else {}
    except BadData as error:
        file, name = version.lesson.practice_file, version.lesson.name
        raise CourseError(f"{file} cannot be read. Run: autograde build {name}") from error


_recording = Lock()
"""A process records one reference at a time; a Dask worker may have several threads."""


@lru_cache(maxsize=2)
def keys_of(version: Version, seed: int) -> dict[str, Key]:
    """Return the answer keys of one seed, by exercise, from one run of the reference.

    Raises:
        CourseError: the reference fails, or tolerances were not measured.
    """
    tolerances = json.loads(version.tolerances or b"{}")
    with _recording:
        reference = _reference(version)
        compute_on_one_thread()  # holds for one thread
        return {
            exercise.name: replace(
                right_key(reference, exercise, seed, tolerances.get(exercise.name, {})),
                withdrawn=exercise.withdrawn,
            )
            for exercise in version.lesson.exercises
        }


@lru_cache(maxsize=8)
def _reference(version: Version) -> Program:
    """Load the lesson's own answers, once in a process."""
    return load(version.lesson, source_of(version), version.files)


def right_key(reference: Program, exercise: Exercise, seed: int, measured: Lines) -> Key:
    """Return the key of one exercise for one seed, from one run of the reference alone.

    Raises:
        CourseError: the reference fails, or a line was not measured.
    """
    expected = right_recording(reference, exercise, seed)
    if missing := [line.name for line in expected.lines if line.name not in measured]:
        raise CourseError(
            f"no tolerance was measured for {exercise.name}: {', '.join(missing)}. "
            f"Run: autograde check --measure {reference.lesson.name}"
        )
    return Key(
        exercise=exercise.name,
        points=exercise.points,
        needs=exercise.needs,
        hints=(),
        expected=replace(expected, lines=tuple(map(as_kept, expected.lines))),
        tolerances=tuple(measured[line.name]["tolerance"] for line in expected.lines),
        claims=tuple(measured[line.name]["claim"] for line in expected.lines),
    )


def right_recording(reference: Program, exercise: Exercise, seed: int) -> Recording:
    """Return what the rubric of an exercise records of the reference.

    Raises:
        CourseError: the rubric fails, or the reference returns what cannot be recorded.
    """
    expected = reference.record(exercise.name, seed)
    names = [line.name for line in expected.lines]
    if expected.stopped:
        after = f"after the line “{names[-1]}”" if names else "before its first line is done"
        raise CourseError(
            f"the rubric of {exercise.name} fails on the reference, {after}: "
            f"{expected.stopped.error}: {expected.stopped.message}"
            + (f" (in {expected.stopped.at})" if expected.stopped.at else "")
        )
    if twice := {name for name in names if names.count(name) > 1}:
        raise CourseError(
            f"test_{exercise.name} has two lines called “{min(twice)}”; reword one of them"
        )
    for line in expected.lines:
        for case in line.cases:
            if case.outcome.error and not case.outcome.refused:
                call = case.call.replace("\n", "; ")
                raise CourseError(
                    f"{exercise.name}: the lesson's own answer fails “{line.name}”: `{call}` "
                    f"{describe_error(case.outcome)}"
                )
            if what := unrecordable(case.outcome.value):
                raise CourseError(
                    f"{exercise.name}: {line.name}: `{case.call}` returned {what}, which cannot "
                    f"be recorded; return {RECORDED}, or call a helper that does"
                )
    return expected


def as_kept(line: Line) -> Line:
    """Return a line of the reference as a key holds it."""
    kept = KINDS[line.kind].kept
    cases = (replace(case, outcome=kept(case.outcome)) for case in line.cases)
    return replace(line, cases=tuple(cases))


def no_python(error: SyntaxError) -> str:
    """Return why the text of a cell cannot be read."""
    return f"is not Python: {error.msg}, in line {error.lineno}: {(error.text or '').strip()}"


def _why(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return no_python(error)
    return f"fails: {type(error).__name__}: {error}"


def run(code: str, names: dict[str, Any]) -> None:
    """Execute code of the course; `inspect.getsource` finds it afterwards, as in a notebook.

    Python keeps a text once, however often it runs.
    """
    file = f"<lesson {digest(code)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)  # noqa: S102 (the course's own code)
