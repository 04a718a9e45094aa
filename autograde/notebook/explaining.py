"""Sentences below a cell that has run: why it failed, or that it uses a wrong answer.

A cell that fails because an earlier exercise is not right says so in one line.

Demonstrations are cells that students run and that are skipped in grading and by Validate. Their
first line is `# demonstration`, with or without words after a colon. A kernel sees a cell's text
and not its tags, so the text has to say it.
"""

import dis
import linecache
import re
import sys
import sysconfig
import warnings
from pathlib import Path
from traceback import clear_frames, walk_tb
from types import CodeType, TracebackType
from typing import Any, TextIO

from IPython.core.getipython import get_ipython

from autograde.notebook import judgements, lesson_here
from autograde.notebook.guesses import GUESS, guesses
from autograde.notebook.saved_notebook import uses_answers
from autograde.progress import NOT_RUN
from autograde.rubric.lesson_names import OwnRubric, keep_given
from autograde.rubric.names import names_of
from autograde.rubric.probes.calls import outcome_of
from autograde.rubric.probes.lines import rubric
from autograde.rubric.runs import Run, keep_run, last_run_of, namespace
from autograde.rubric.session import CellEnded, run_by_nbgrader

DEMONSTRATION = re.compile(r"# demonstration(:.*)?$")
INTERNALLY = re.compile(r"\(Triggered internally at [^)]*\)\.?")
"""What PyTorch adds to a warning: the place in its C++ code, on the machine that built it."""
INSTALLED = sysconfig.get_path("purelib")
HALF_LOADED = "Python was loading a package just then, and will not finish: restart the kernel."
SKIPPED = "A demonstration: it is not run in grading."
EMPTY = "No guess yet. Write one in place of None, and run this cell again."


def watch() -> None:
    """Begin to keep a notebook's runs, explain a lesson's errors, skip what grading skips."""
    shell: Any = get_ipython()
    if shell is None:
        return
    shell.events.register("post_run_cell", _after_cell)
    if not any(isinstance(each, OwnRubric) for each in shell.ast_transformers):
        shell.ast_transformers.append(OwnRubric())
    shell.set_custom_exc((Exception, KeyboardInterrupt), _explain)
    warnings.showwarning = _show_warning
    if run_by_nbgrader():
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
    skipped = lines and is_demonstration(lines[0])
    return [f"print({SKIPPED!r})\n"] if skipped else lines


def _after_cell(result: Any) -> None:
    """Keep a run; if the cell went through, what it gives the lesson, and say what is missing."""
    source, error = result.info.raw_cell or "", result.error_before_exec or result.error_in_exec
    if error is not None and guesses(source):
        namespace()[GUESS] = None  # the guess before is not this one
    run = _as_run(result.execution_count, source, error)
    keep_run(run)
    if error is None:
        keep_given(source, namespace(), rubric)
        _ask_for_a_guess(source)
        _name_wrong_answers(source, run.behind & judgements.wrong())


def _as_run(number: int, source: str, error: BaseException | None) -> Run:
    unsolved = lesson_here.unsolved()
    return Run(
        number,
        source,
        "" if error is None else f"{type(error).__name__}: {error}",
        behind=_behind(source, unsolved),
        waits_for=_waits_for(source, error, unsolved),
    )


def _behind(source: str, unsolved: set[str]) -> frozenset[str]:
    """Return the unsolved exercises that a cell uses, or that made what it uses."""
    needed = names_of(source).needed
    made = (run.behind for name in needed if (run := last_run_of(name)))
    return needed.union(*made) & unsolved


def _ask_for_a_guess(source: str) -> None:
    """Say below a guess that it is empty; a program that runs the notebook cannot guess."""
    here = getattr(getattr(get_ipython(), "kernel", None), "_allow_stdin", False)
    if here and GUESS in names_of(source).bound and namespace().get(GUESS, 0) is None:
        print(EMPTY)


def _name_wrong_answers(source: str, wrong: frozenset[str]) -> None:
    """Say below a lesson's result which of the answers behind it are wrong."""
    if wrong and (is_demonstration(source) or uses_answers(lesson_here.lesson_cells(), source)):
        used, are = ", ".join(sorted(wrong)), "is" if len(wrong) == 1 else "are"
        may = "what you see here may be wrong too."
        print(f"This uses your {used}, which {are} not fully right yet: {may}")


def _explain(
    shell: Any,
    etype: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    """Show an error: in one line where that says more, else without the lines of packages."""
    if isinstance(error, CellEnded) and error.shown and not run_by_nbgrader():
        return  # Validate needs the message; beside the panel it would say the same twice
    interrupted = isinstance(error, KeyboardInterrupt)
    source = shell.history_manager.input_hist_raw[-1]
    if said := _interruption(error, trace) if interrupted else _missing(error, source):
        error._render_traceback_ = lambda: [said]  # type: ignore[attr-defined]
    _leave_out_packages(trace)
    shell.showtraceback((etype, error, trace), tb_offset=tb_offset)
    if interrupted:  # IPython keeps the trace, and a loop its full list
        clear_frames(trace)


def _interruption(error: BaseException, trace: TracebackType) -> str:
    """Return where a cell was interrupted, in a sentence; "" where a rubric has said it."""
    said = ""
    if not hasattr(error, "_render_traceback_"):  # a rubric names the call that did not end
        at = outcome_of(error).at
        said = f"Interrupted in {at}" if at else "Interrupted."
    if any(_is_a_package(frame.f_code) for frame, _ in walk_tb(trace)):
        return f"{said or error} {HALF_LOADED}"
    return said


def _missing(error: BaseException, source: str) -> str:
    """Return in a sentence which cell or exercise a cell that failed needs first, or ""."""
    name = getattr(error, "name", None)
    if name and _was_skipped(name):
        return f"{name} comes from a demonstration, and demonstrations are not run in grading."
    if isinstance(error, NameError) and name and lesson_here.has_not_run(name):
        return NOT_RUN.format(name=name)
    exercise = _waits_for(source, error, lesson_here.unsolved())
    if not exercise:
        return ""
    if lesson_here.has_not_run(exercise):
        return NOT_RUN.format(name=exercise)
    stub = isinstance(error, NotImplementedError) and not str(error)
    known = "right" if exercise in judgements.wrong() else "known to be right"
    lacks = "written yet." if stub else f"{known} yet{_cause(error)}."
    return f"This cell waits for the exercise {exercise}, which is not {lacks}"


def _is_a_package(code: CodeType) -> bool:
    """Return whether code is that of a module which is being imported."""
    return code.co_name == "<module>" and Path(code.co_filename).is_file()


def _leave_out_packages(trace: TracebackType) -> None:
    """Take the lines of installed packages out of a traceback: a call of a model has dozens."""
    while trace.tb_next:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(INSTALLED):
            trace.tb_next = trace.tb_next.tb_next
        else:
            trace = trace.tb_next


def _was_skipped(name: str) -> bool:
    """Return whether the cell that would have bound a name is a demonstration that was skipped."""
    run = last_run_of(name)
    return bool(run_by_nbgrader()) and run is not None and is_demonstration(run.source)


def _waits_for(source: str, error: BaseException | None, unsolved: set[str]) -> str:
    """Return the first unsolved exercise whose answer or missing result a cell uses, or "".

    A function of another cell that the error came through counts, too. In a cell with a rubric or
    an answer, only the stub that it reached counts.
    """
    functions = _functions(error)
    if "@rubric(" not in source and not unsolved & names_of(source).bound:
        for name in sorted(names_of(source).needed, key=source.find):
            run = last_run_of(name) if namespace().get(name) is None else None
            exercise = run.waits_for if run and name not in unsolved else name
            if exercise in unsolved:
                return exercise
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
    codes = [frame.f_code for frame, _ in walk_tb(trace) if frame.f_globals is namespace()]
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
