"""A new kernel of `autograde lab`: a cell that needs what has not run says so in one line.

A lesson's set-up cell puts fuller explanations in its place; see autograde.notebook.explaining.
"""

from pathlib import Path
from types import TracebackType
from typing import Any

from IPython.core.getipython import get_ipython

from autograde.progress import NOT_RUN, PRACTICE_FILE


def explain_what_has_not_run() -> None:
    """Let this kernel explain a name that is not defined, if its notebook is a lesson."""
    shell: Any = get_ipython()
    if shell is not None and Path(PRACTICE_FILE).is_file():
        shell.set_custom_exc((NameError,), _explain)


def _explain(
    shell: Any,
    etype: type[BaseException],
    error: NameError,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    said = NOT_RUN.format(name=error.name)
    error._render_traceback_ = lambda: [said]  # type: ignore[attr-defined]
    shell.showtraceback((etype, error, trace), tb_offset=tb_offset)
