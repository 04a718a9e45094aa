"""nbgrader's exchange, where students may place anything: what is odd is left out and named."""

import stat
from glob import glob
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect, ExchangeReleaseFeedback

from autograde.grading.submission import ADDRESS
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


class SteadyReleaseFeedback(ExchangeReleaseFeedback):
    """Releases the feedback of all whose submission says whose it is, and names the others.

    nbgrader reads these files of a submission, and stops when one is missing, empty or not text.
    """

    def copy_files(self) -> None:
        """Release the pages."""
        without = [
            folder.parent.name
            for folder in map(Path, sorted(glob(self.src_path)))
            if not all(_says_something(folder / name) for name in ADDRESS)
        ]
        for student in without:
            self.log.error(
                "Not released: %s has no readable %s", printable(student), " or ".join(ADDRESS)
            )
        excluded = [*filter(None, [self.coursedir.student_id_exclude]), *without]
        self.coursedir.student_id_exclude = ",".join(excluded)
        super().copy_files()


def _says_something(path: Path) -> bool:
    try:
        return bool(path.read_text())
    except (OSError, UnicodeError):
        return False


def _is_plain(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
