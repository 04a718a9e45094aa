"""CSV files that a spreadsheet shows as they are, without running any of their text."""

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from pathlib import Path

from autograde.files import write_whole

STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""Text that begins with one of these runs as a formula, wide forms too (OWASP, CSV Injection)."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")

Cell = str | int | float | datetime | None


def safe(value: Cell) -> Cell:
    """Return a cell's value; a text that would run as a formula gets an apostrophe."""
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    return f"'{value}" if value.startswith(STARTS_A_FORMULA) else value


def write_table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a CSV file; all text is quoted, so that no other separator splits a cell."""
    text = StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    for row in (head, *rows):
        writer.writerow([safe(value) for value in row])
    content = text.getvalue().encode("utf-8")
    if path.is_symlink() or (path.exists() and not path.is_file()):  # /dev/stdout, or a pipe
        path.write_bytes(content)
    else:
        write_whole(path, content)
