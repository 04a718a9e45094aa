"""An untouched exercise says so in one line, wherever its code is called."""

import traceback
from types import TracebackType
from typing import Any

from IPython.core.getipython import get_ipython


def explain_stubs() -> None:
    """In a notebook, show NotImplementedError as one line that names the unwritten code."""
    if (shell := get_ipython()) is not None:
        shell.set_custom_exc((NotImplementedError,), _in_one_line)


def _in_one_line(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    name = frames[-1].f_code.co_qualname
    text = f"{kind.__name__}: {str(error) or f'{name} is not written yet'}"
    error._render_traceback_ = lambda: [text]  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
