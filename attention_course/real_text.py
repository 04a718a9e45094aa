"""Real text for a model to learn, and how long to let it."""

from typing import Any

from IPython.core.getipython import get_ipython


def python_help() -> str:
    """Return the help texts on the language that come with every Python, one after another."""
    from pydoc_data.topics import topics  # large, and only one lesson reads it

    return "\n".join(topics.values())


def someone_is_there() -> bool:
    """Return whether someone ran this cell by hand, and could stop it.

    Programs that run whole notebooks tell the kernel that nobody is there to answer a question.
    """
    shell: Any = get_ipython()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
