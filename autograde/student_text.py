"""Students' words among the program's own: quoted, short, and never a command to the terminal.

A terminal obeys escape sequences, and a reader believes a sentence that seems to be the program's.
"""

from collections.abc import Iterable

from autograde.values.text import short, visible

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has stopped."""

LONGEST = 60
LONGEST_LINE = 1_000
MOST_NAMES = 5


def quoted(text: object) -> str:
    """Return a student's text as a short literal, with every odd character escaped."""
    return repr(short(str(text), LONGEST))


def named(names: Iterable[object]) -> str:
    """Return a few names that may be the student's: identifiers as they are, others quoted."""
    found = [str(name) for name in names]
    said = [n if n.isidentifier() and len(n) <= LONGEST else quoted(n) for n in found[:MOST_NAMES]]
    more = len(found) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")


def printable(text: object) -> str:
    """Return a short line for the terminal, with every character escaped that is not printable."""
    return visible(short(str(text), LONGEST_LINE)).replace("\n", "\\n")
