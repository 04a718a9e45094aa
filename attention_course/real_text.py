"""Real text for a model to learn, and how long to let it."""

import re
from typing import Any

from IPython.core.getipython import get_ipython

RULE = re.compile(r"([-=*+|~^])\1{3}")
"""A line drawn with signs, as around a table; a model that has begun one hardly ends it."""


def python_help() -> str:
    """Return the help texts on the language that come with every Python, without drawn lines."""
    from pydoc_data.topics import topics  # large, and only one lesson reads it

    lines = "\n".join(topics.values()).split("\n")
    return "\n".join(line for line in lines if not RULE.search(line))


def someone_is_there() -> bool:
    """Return whether someone ran this cell by hand, and could stop it.

    Programs that run whole notebooks tell the kernel that nobody is there to answer a question.
    """
    shell: Any = get_ipython()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
