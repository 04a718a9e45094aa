"""Demonstrations: cells that are run by students, and skipped in grading and by Validate.

The first line of such a cell is `# demonstration`, with or without words after a colon. A kernel
sees a cell's text and not its tags, so the text has to say it.
"""

import os
import re
from typing import Any

from IPython.core.getipython import get_ipython

from autograde.rubric.names import UNREADABLE, read_names

FIRST_LINE = re.compile(r"# demonstration(:.*)?$")
SKIPPED = "A demonstration: it is not run in grading."

_skipped: set[str] = set()


def skip_demonstrations() -> None:
    """Replace each demonstration by a line that says so, in a notebook that nbgrader runs."""
    shell: Any = get_ipython()
    if shell is not None and os.environ.get("NBGRADER_EXECUTION"):
        shell.input_transformers_cleanup.append(_without_demonstration)


def is_demonstration(source: str) -> bool:
    return bool(FIRST_LINE.match(source.partition("\n")[0].rstrip()))


def _without_demonstration(lines: list[str]) -> list[str]:
    if not lines or not is_demonstration(lines[0]):
        return lines
    try:
        _skipped.update(read_names("".join(lines)).bound)
    except UNREADABLE:
        return lines  # a student's own, which fails by itself
    return [f"print({SKIPPED!r})\n"]


def missing_because_skipped(name: str | None) -> str:
    """Return why a name is missing, when a skipped demonstration would have bound it; else ""."""
    if name not in _skipped:
        return ""
    return f"{name} comes from a demonstration, and demonstrations are not run in grading."
