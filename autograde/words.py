"""Students' words among the program's own: quoted, short, and never a command to the terminal.

A terminal obeys escape sequences, and a reader believes a sentence that seems to be the program's.
"""

from collections.abc import Iterable

LONGEST = 60
LONGEST_LINE = 1_000


def quoted(text: object) -> str:
    """Return a student's text as a short literal, with every odd character escaped."""
    return repr(_short(str(text), LONGEST))


def named(names: Iterable[object], most: int = 5) -> str:
    """Return a few names that may be the student's: identifiers as they are, others quoted."""
    found = [str(name) for name in names]
    said = [n if n.isidentifier() and len(n) <= LONGEST else quoted(n) for n in found[:most]]
    more = len(found) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")


def printable(text: object) -> str:
    """Return a short line for the terminal, with every character escaped that is not printable."""
    shown = (c if c.isprintable() else repr(c)[1:-1] for c in _short(str(text), LONGEST_LINE))
    return "".join(shown)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
