"""Real text for a model to learn, and how long to let it."""

import re
from typing import Any

from IPython.core.getipython import get_ipython

RULE = re.compile(r"([-=*+|~^])\1{3}")
"""A line drawn with signs, as around a table; a model that has begun one hardly ends it."""
OF_OTHER_SCRIPTS = re.compile(r"[^\u0000-\u00ff\u2010-\u2027]")
"""A letter or sign beyond those of English, of which newer help texts give examples: too rare to be
learned, and figures have no font for some."""


def python_help() -> str:
    """Return the help texts on the language that come with every Python.

    Lines that are drawn, or that show letters of other scripts, are left out.
    """
    from pydoc_data.topics import topics  # large, and only one lesson reads it

    lines = "\n".join(topics.values()).split("\n")
    kept = (line for line in lines if not RULE.search(line) and not OF_OTHER_SCRIPTS.search(line))
    return "\n".join(kept)


def someone_is_there() -> bool:
    """Return whether someone ran this cell by hand, and could stop it.

    Programs that run whole notebooks tell the kernel that nobody is there to answer a question.
    """
    shell: Any = get_ipython()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
