"""Collecting from nbgrader's exchange without following links."""

import stat
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect

from autograde.words import printable


class PlainCollect(ExchangeCollect):
    """Collects submissions that are plain files in folders, and names the others.

    The instructor's process makes the copy, and students can place anything in the exchange. A link
    to a solution or to another student's work would be followed, and feedback would show it.
    """

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy a submission, or say why it is left; the others are collected all the same."""
        odd = [path for path in (Path(src), *Path(src).rglob("*")) if not _is_plain(path)]
        if odd:
            what = printable(", ".join(map(str, odd)))
            self.log.error("Not collected, because it is neither a file nor a folder: %s", what)
        else:
            super().do_copy(src, dest, log)


def _is_plain(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
