"""The runs of cells in this kernel, their errors, and demonstrations.

Runs let a rubric say which run of which answer it judged. They also let a cell that fails because
an earlier exercise is not right say so in one line.

Demonstrations are cells that students run and that are skipped in grading and by Validate. Their
first line is `# demonstration`, with or without words after a colon. A kernel sees a cell's text
and not its tags, so the text has to say it.
"""

import dis
import linecache
import os
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from IPython.core.getipython import get_ipython

from autograde.notebook.saved import Cells, binds, uses_answers
from autograde.progress import NOT_RUN
from autograde.rubric.given import OwnRubric, given_in, keep
from autograde.rubric.names import UNREADABLE, Names, names_of, read_names
from autograde.rubric.probes.calls import outcome_of
from autograde.rubric.probes.lines import rubric
from autograde.rubric.session import CellEnded

DEMONSTRATION = re.compile(r"# demonstration(:.*)?$")
INTERNALLY = re.compile(r"\(Triggered internally at [^)]*\)\.?")
"""What PyTorch adds to a warning: the place in its C++ code, on the machine that built it."""
INSTALLED = sysconfig.get_path("purelib")
SKIPPED = "A demonstration: it is not run in grading."
GUESS = "my_guess"
"""The name that holds a guess until `beside` shows it next to what it is."""
NO_GUESS = "No guess yet. Write one in place of None, and run this cell again."


@dataclass(frozen=True)
class Run:
    """One run of a cell: its number in brackets, its text, and the error that ended it, or ""."""

    number: int
    source: str
    error: str


_runs: list[Run] = []
_waiting: dict[str, str] = {}
"""Names without a value yet, each with the exercise that its defining cell waits for."""

_skipped: set[str] = set()
"""Names that skipped demonstrations would have bound."""

_made_by: dict[str, set[str]] = {}
"""Names that a cell bound, each with the wrong answers that the cell used."""

_unsolved: Callable[[], set[str]] = set
_lesson: Callable[[], Cells] = list
_wrong: Callable[[], set[str]] = set


def watch(
    unsolved: Callable[[], set[str]],
    lesson: Callable[[], Cells] = list,
    wrong: Callable[[], set[str]] = set,
) -> None:
    """Begin to note a notebook's runs, explain a lesson's errors, skip what grading skips."""
    global _unsolved, _lesson, _wrong
    _unsolved, _lesson, _wrong = unsolved, lesson, wrong
    shell: Any = get_ipython()
    if shell is None:
        return
    shell.events.register("post_run_cell", _note)
    if not any(isinstance(each, OwnRubric) for each in shell.ast_transformers):
        shell.ast_transformers.append(OwnRubric())
    shell.set_custom_exc((Exception, KeyboardInterrupt), _explain)
    warnings.showwarning = _show_warning
    if os.environ.get("NBGRADER_EXECUTION"):
        shell.input_transformers_cleanup.append(_without_demonstration)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning in a line, without the paths of a kernel's cells and of PyTorch's own code."""
    said = INTERNALLY.sub("", str(message)).strip()
    code = (line or linecache.getline(filename, lineno)).strip()
    at = f" (in {code})" if code and not Path(filename).is_file() else ""
    print(f"{category.__name__}: {said}{at}", file=file or sys.stderr)


def is_demonstration(source: str) -> bool:
    return bool(DEMONSTRATION.match(source.partition("\n")[0].rstrip()))


def _without_demonstration(lines: list[str]) -> list[str]:
    if not lines or not is_demonstration(lines[0]):
        return lines
    _skipped.update(names_of("".join(lines)).bound)
    return [f"print({SKIPPED!r})\n"]


def last_run_of(exercise: str) -> Run | None:
    """Return the last run of a cell that defines the exercise, even if the run failed."""
    return next((run for run in reversed(_runs) if _defines(run.source, exercise)), None)


def called_by(exercise: str) -> set[str]:
    """Return the names that the cells of an exercise, answer and rubric, take from other cells."""
    rubric = f'@rubric("{exercise}"'
    cells = [run.source for run in _runs if rubric in run.source][-1:]
    answer = last_run_of(exercise)
    sources = [*cells, answer.source if answer else ""]
    return set().union(*(names_of(source).needed for source in sources))


def _note(result: Any) -> None:
    source, error = result.info.raw_cell or "", result.error_before_exec or result.error_in_exec
    said = "" if error is None else f"{type(error).__name__}: {error}"
    _runs.append(Run(result.execution_count, source, said))
    values, names = _values(), names_of(source)
    wrong = _used_wrong(names)
    if error is None:
        keep(source, values, rubric)
        _say_what_is_missing(source, names, wrong)
    elif source.lstrip().startswith(f"{GUESS} ="):
        values[GUESS] = None  # the guess before is not this one
    exercise = _waits_for(source, error)
    for name in names.bound:
        _made_by[name] = wrong
        if exercise and values.get(name) is None:
            _waiting[name] = exercise
        else:
            _waiting.pop(name, None)


def _used_wrong(names: Names) -> set[str]:
    """Return the wrong answers that a cell uses, or that made what it uses."""
    return _wrong() & names.needed.union(*(_made_by.get(name, ()) for name in names.needed))


def _say_what_is_missing(source: str, names: Names, wrong: set[str]) -> None:
    """Say below a guess that it is empty, and below a lesson's result that an answer is wrong.

    A program that runs the notebook cannot guess.
    """
    here = getattr(getattr(get_ipython(), "kernel", None), "_allow_stdin", False)
    if here and GUESS in names.bound and _values().get(GUESS, 0) is None:
        print(NO_GUESS)
    if wrong and (is_demonstration(source) or uses_answers(_lesson(), source)):
        print(f"This cell uses what has no full points yet: your {', '.join(sorted(wrong))}.")


def rebound(exercise: str) -> dict[str, int]:
    """Return the names of the lesson or of Python that an answer needs and another cell bound anew.

    Each comes with the number of the run that bound it. The answer's helpers in other cells count.
    """
    answer = last_run_of(exercise)
    given, values, found = given_in(_values()), _values(), dict[str, int]()
    wanted, seen = [*names_of(answer.source).needed] if answer else [], set[str]()
    while wanted:
        name = wanted.pop()
        run = _last_binding(name)
        if name in seen or run is None or run.source == given.source:
            continue
        seen.add(name)
        wanted += names_of(run.source).needed
        original = given.original(name)
        if original is not None and values.get(name) is not original:
            found[name] = run.number
    return dict(sorted(found.items()))


def not_run(exercise: str) -> str:
    """Return the first name that an answer needs and a cell that has not run here binds, or ""."""
    if (answer := last_run_of(exercise)) is None:
        return ""
    needed = names_of(answer.source).needed
    lacking = {name for name in needed if name not in _values() and binds(_lesson(), name)}
    return min(lacking, key=answer.source.find, default="")


def _has_not_run(name: str | None) -> bool:
    """Return whether a cell of the lesson binds a name and has not run in this kernel."""
    return name is not None and not _last_binding(name) and binds(_lesson(), name)


def _last_binding(name: str) -> Run | None:
    return next((run for run in reversed(_runs) if name in names_of(run.source).bound), None)


def _values() -> dict[str, Any]:
    return getattr(get_ipython(), "user_ns", {})


def _defines(source: str, name: str) -> bool:
    """Return whether a cell defines a name; of one that is not Python the lines are searched."""
    try:
        return name in read_names(source).bound
    except UNREADABLE:
        return re.search(rf"^(def|class)\s+{name}\b", source, re.MULTILINE) is not None


def _explain(
    shell: Any,
    etype: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    """Show an error, in one line if it is an interruption, or if the cell waits for another one."""
    if isinstance(error, CellEnded) and error.shown and "NBGRADER_EXECUTION" not in os.environ:
        return  # Validate needs the message; beside the panel it would say the same twice
    said, name = "", getattr(error, "name", None)
    if isinstance(error, KeyboardInterrupt):
        at = outcome_of(error).at
        if not hasattr(error, "_render_traceback_"):  # a rubric names the call that took too long
            said = f"Interrupted in {at}" if at else "Interrupted."
    elif name in _skipped:
        said = f"{name} comes from a demonstration, and demonstrations are not run in grading."
    elif isinstance(error, NameError) and _has_not_run(name):
        said = NOT_RUN.format(name=name)
    elif exercise := _waits_for(shell.history_manager.input_hist_raw[-1], error):
        stub = isinstance(error, NotImplementedError) and not str(error)
        known = "right" if exercise in _wrong() else "known to be right"
        lacks = "written yet." if stub else f"{known} yet{_cause(error)}."
        said = f"This cell waits for the exercise {exercise}, which is not {lacks}"
        if last_run_of(exercise) is None and binds(_lesson(), exercise):
            said = NOT_RUN.format(name=exercise)
    if said:
        error._render_traceback_ = lambda: [said]  # type: ignore[attr-defined]
    _leave_out_packages(trace)
    shell.showtraceback((etype, error, trace), tb_offset=tb_offset)
    if isinstance(error, KeyboardInterrupt):
        traceback.clear_frames(
            trace
        )  # IPython keeps it, and an endless loop may have filled the memory


def _leave_out_packages(trace: TracebackType) -> None:
    """Take the lines of installed packages out of a traceback: a call of a model has dozens."""
    while trace.tb_next:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(INSTALLED):
            trace.tb_next = trace.tb_next.tb_next
        else:
            trace = trace.tb_next


def _waits_for(source: str, error: BaseException | None) -> str:
    """Return the first unsolved exercise whose answer or result a cell uses, or "".

    A function of another cell that the error came through counts, too. In a cell with a rubric or
    an answer, only the stub that it reached counts.
    """
    unsolved, functions = _unsolved(), _functions(error)
    if "@rubric(" not in source and not unsolved & names_of(source).bound:
        waiting = {**_waiting, **{name: name for name in unsolved}}
        used = {name for name in names_of(source).needed if waiting.get(name) in unsolved}
        if used:
            return waiting[min(used, key=source.find)]
    elif not isinstance(error, NotImplementedError):
        return ""
    else:
        functions = functions[-1:]
    return next((name for each in functions for name in each if name in unsolved), "")


def _functions(error: BaseException | None) -> list[list[str]]:
    """Return, for each function of a cell that an error came through, its name and what it loads.

    A method goes by the name of its class.
    """
    trace = error.__traceback__ if error else None
    codes = [frame.f_code for frame, _ in traceback.walk_tb(trace) if frame.f_globals is _values()]
    return [
        [
            code.co_qualname.partition(".")[0],
            *(each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"),
        ]
        for code in codes
        if code.co_name != "<module>"
    ]


def _cause(error: BaseException) -> str:
    """Return in words the error that came out of a function of a cell, and the line; or ""."""
    if not _functions(error):
        return ""
    found = outcome_of(error)
    return f": {found.error}: {found.message}" + (f" (in {found.at})" if found.at else "")
