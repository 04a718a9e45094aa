"""Edits of an answer, written as the hunks of a diff without line numbers."""

from itertools import groupby


class BadEdit(Exception):
    """An edit does not fit the answer; the message says why and quotes the lines."""


def apply_edit(answer: str, edit: str) -> str:
    """Return the answer with each hunk of the edit applied.

    A hunk is a run of lines that begin with a space (kept), `-` (removed) or `+` (added); a line
    with @@ separates two hunks. What a hunk keeps and removes must occur exactly once.

    >>> apply_edit("a = 1\\nb = 2\\n", "-b = 2\\n+b = 3\\n")
    'a = 1\\nb = 3\\n'

    Raises:
        BadEdit: a line has no sign, or a hunk occurs not once, or before an earlier one ends.
    """
    lines, done, written = _lines(answer), 0, list[str]()
    for hunk in _hunks(edit):
        before = [line for sign, line in hunk if sign != "+"]
        start = _place(before, lines)
        if start < done:
            raise BadEdit(f"the hunks are not in the order of the answer:\n{_quoted(before)}")
        written += lines[done:start] + [line for sign, line in hunk if sign != "-"]
        done = start + len(before)
    return "\n".join(written + lines[done:]) + "\n"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _hunks(edit: str) -> list[list[tuple[str, str]]]:
    """Return the hunks, each line split into its sign and its text; an empty line is kept."""
    signed = [(line[:1] or " ", line[1:]) for line in _lines(edit)]
    if bad := [sign + line for sign, line in signed if sign not in " +-@"]:
        raise BadEdit(f"a line of a diff begins with a space, - or +:\n{_quoted(bad)}")
    parts = groupby(signed, key=lambda part: part[0] == "@")
    return [list(hunk) for separates, hunk in parts if not separates]


def _place(wanted: list[str], lines: list[str]) -> int:
    """Return the number of the line at which these lines begin."""
    ends = range(len(lines) - len(wanted) + 1)
    found = [start for start in ends if lines[start : start + len(wanted)] == wanted]
    if not wanted:
        raise BadEdit("a hunk that only adds lines needs a line beside them, to say where")
    if len(found) != 1:
        raise BadEdit(f"lines that occur {len(found)} times in the answer:\n{_quoted(wanted)}")
    return found[0]


def _quoted(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
