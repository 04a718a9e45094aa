"""An untouched exercise says so in one line, wherever its code is called."""

import traceback
from types import TracebackType
from typing import Any

from IPython.core.getipython import get_ipython

from autograde.notebook.demonstrations import explain_missing


def explain_errors() -> None:
    """In a notebook, show in one line that code is unwritten or comes from a demonstration."""
    if (shell := get_ipython()) is not None:
        shell.set_custom_exc((NotImplementedError, NameError), _explain)


def _explain(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    if isinstance(error, NameError):
        explain_missing(shell, kind, error, trace, tb_offset)
        return
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    name = frames[-1].f_code.co_qualname
    text = f"{kind.__name__}: {str(error) or f'{name} is not written yet'}"
    error._render_traceback_ = lambda: [text]  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
