"""nbgrader's exchange, where students may place anything: what is odd is left out and named."""

import os
import pwd
from datetime import datetime
from glob import glob
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.exchange.default import ExchangeCollect, ExchangeReleaseFeedback

from autograde.course.lessons import state_folder
from autograde.files import replace_folder
from autograde.grading.gradebook import parse_time
from autograde.grading.submission import ADDRESS, TIMESTAMP
from autograde.lms.plain_copy import NotPlain, plain_copy
from autograde.student_text import printable

KILO = 1_000
"""nbgrader's `max_dir_size` counts thousands of bytes."""


class PlainCollect(ExchangeCollect):
    """Collects submissions that are the student's own plain files, and names the others.

    The instructor's process makes the copy, and students can place anything in the exchange, and
    change it at any moment. So a submission is copied without following links, and what was copied
    is checked. What is wrong with one submission keeps no other from being collected.
    """

    def init_src(self) -> None:
        """Choose the latest of each student's own submissions."""
        super().init_src()
        chosen: list[dict[str, Any]] = self.src_records  # type: ignore[has-type]
        self.src_records = [record for record in chosen if record["username"]]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """Read who handed in what when; no name where that is not the owner, or cannot be read."""
        try:
            record: dict[str, Any] = super()._path_to_record(path)
            if record["username"].startswith("."):
                raise NotPlain("this is no student's name")
            if self.check_owner and os.lstat(path).st_uid != _user(record["username"]):
                raise NotPlain(
                    "it belongs to another user. If all submissions belong to one, set "
                    "c.ExchangeCollect.check_owner = False; then anybody can submit for anybody"
                )
            return record
        except Exception as error:  # nbgrader and dateutil raise many kinds
            self._left_out(Path(path).name, error)
            return {"username": "", "filename": "", "timestamp": datetime.min}

    def copy_files(self) -> None:
        """Collect the chosen submissions that are not collected yet, or are newer."""
        for record in self.src_records:
            student = record["username"]
            place = self.coursedir.format_path(
                self.coursedir.submitted_directory, student, self.coursedir.assignment_id
            )
            try:
                if self._is_wanted(Path(place), record["timestamp"]):
                    source = Path(self.inbound_path, record["filename"])
                    self._collect(source, Path(place), student)
                    self.log.info("Collected the submission of %s", printable(student))
            except (NotPlain, OSError, RuntimeError) as error:  # nbgrader's: it is too large
                self._left_out(record["filename"], error)

    def _left_out(self, what: str, error: BaseException) -> None:
        self.log.error("Not collected: %s: %s", printable(what), printable(error))

    def _is_wanted(self, place: Path, handed_in: datetime) -> bool:
        if not place.is_dir():
            return True
        before = _time(place / TIMESTAMP)
        if self.before_duedate and before != handed_in:
            return True
        return bool(self.update and (before is None or handed_in > before))

    def _collect(self, source: Path, place: Path, student: str) -> None:
        """Put a submission in its place; an earlier one stays there until this one is whole."""
        owner = _user(student) if self.check_owner else None
        size = KILO * self.coursedir.max_dir_size
        state = state_folder(Path(self.coursedir.root))
        state.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=state) as folder:
            given, kept = Path(folder, "given"), Path(folder, "kept")
            plain_copy(source, given, size, owner)
            self.do_copy(str(given), str(kept))  # without what the course's configuration ignores
            replace_folder(kept, place)


def _user(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise NotPlain(
            "no user of this machine has this name. If students are no users here, set "
            "c.ExchangeCollect.check_owner = False; then anybody can submit for anybody"
        ) from error


def _time(path: Path) -> datetime | None:
    """Read the time of a collected submission; None if its file, the student's, holds none."""
    try:
        return parse_time(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


class SteadyReleaseFeedback(ExchangeReleaseFeedback):
    """Releases the feedback of all whose submission says whose it is, and names the others.

    nbgrader reads these files of a submission, and stops when one is missing, empty or not text.
    """

    def copy_files(self) -> None:
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
