r"""Collecting from downloads of Canvas, Moodle and Gradescope, by `nbgrader zip_collect`.

What they look like:

    Canvas      doejane_LATE_123_4567_causal_mask.ipynb          (canvas-lms, content_zipper.rb)
                anon_aB3xY_4567_causal_mask.ipynb                where students are anonymous
    Moodle      Jane Doe_123_assignsubmission_file/causal_mask.ipynb   (mod_assign, downloader.php)
                Jane Doe_123_assignsubmission_file_causal_mask.ipynb   without folders, older ones
    Gradescope  submission_99/causal_mask.ipynb, beside submission_metadata.yml with
                :submitters: [{:sid:, :email:, :name:}] and :created_at:
"""

import csv
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from dateutil import parser as dates
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import Unicode

from autograde.lms.archives import FILE_BYTES, UNPACKED, BadArchive, place_for, unpack
from autograde.words import printable

CANVAS = re.compile(
    r"(?:.*?_)??(?P<late>LATE_)?(?P<student>\d+|anon_[A-Za-z0-9]+)_\d+_(?P<file>.+)"
)
MOODLE = re.compile(r"[^_]*_(?P<student>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?")
GRADESCOPE = re.compile(r"submission_\d+")
OF_A_CLASS = re.compile(r"submissions( ?\(\d+\))?$")
"""The end of the name that Canvas gives a class's archive; the course's numbers may precede it."""

METADATA = "submission_metadata.yml"

PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
"""Ids become names of folders."""


@dataclass(frozen=True)
class Found:
    """A student's file, and when it was handed in, if the download says so."""

    student: str
    file: str
    handed_in: datetime | None = None
    late: bool = False


def recognise(
    path: PurePath, metadata: dict[PurePath, Any], times: dict[str, datetime]
) -> Found | None:
    """Find by its path who handed in a downloaded file; None if the path does not say.

    The part that the system named comes first in a path. The student chose what follows, and could
    write anything there.

    Args:
        metadata: what Gradescope's `submission_metadata.yml` says, by folder.
        times: when each participant handed in, from Moodle's grading worksheet.
    """
    if path.name.startswith("."):
        return None
    for depth, part in enumerate(path.parts, start=1):
        last = depth == len(path.parts)
        if GRADESCOPE.fullmatch(part):
            return _gradescope(metadata.get(PurePath(*path.parts[:depth])), path.name)
        if found := MOODLE.fullmatch(part):
            if found["kind"] != "file":
                return None
            file = found["file"] if last else path.name
            return Found(found["student"], file, times.get(found["student"])) if file else None
        if (last or is_unpacked(part)) and (found := CANVAS.fullmatch(part)):
            file = found["file"] if last else path.name
            return Found(found["student"], file, late=bool(found["late"]))
        if part == "__MACOSX":
            return None
    return None


def is_unpacked(part: str) -> bool:
    return part.lower().endswith(f".zip{UNPACKED}")


def is_students(path: PurePath) -> bool:
    """Return whether a path of a download leads into one student's files."""
    return any(
        GRADESCOPE.fullmatch(part)
        or MOODLE.fullmatch(part)
        or (is_unpacked(part) and CANVAS.fullmatch(part))
        for part in path.parts
    )


def _gradescope(entry: Any, file: str) -> Found | None:
    try:
        first, handed_in = entry[":submitters"][0], entry.get(":created_at")
        student = str(first.get(":sid") or first[":email"])
    except (TypeError, LookupError, AttributeError):
        return None
    return Found(student, file, _utc(handed_in) if isinstance(handed_in, datetime) else None)


def _utc(time: datetime) -> datetime:
    """Return a moment in UTC without a time zone, which is what nbgrader keeps."""
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


class _Loader(yaml.SafeLoader):
    """Loads plain values only; a tagged value, meant for some program's object, becomes None."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def read_metadata(folder: Path) -> tuple[dict[PurePath, Any], list[PurePath]]:
    """Read the `submission_metadata.yml` of each download: entries by the folder they are about.

    Also returns the files that cannot be read. A file of this name from a student is ignored.
    """
    found: dict[PurePath, Any] = {}
    unread: list[PurePath] = []
    for path in sorted(folder.rglob(METADATA)):
        place = path.relative_to(folder)
        if is_students(place):
            continue
        try:
            content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 (safe)
            found |= {place.parent / str(name): entry for name, entry in content.items()}
        except (yaml.YAMLError, ValueError, AttributeError, RecursionError):
            unread.append(place)
    return found, unread


def read_worksheet(folder: Path, zone: tzinfo) -> tuple[dict[str, datetime], list[str]]:
    """Read when each participant handed in from a grading worksheet of Moodle in a folder.

    Also returns the times that cannot be read, such as those not in English.
    """
    found, unread = {}, []
    csv.field_size_limit(FILE_BYTES)  # it may hold the texts that students typed
    for path in sorted(path for path in folder.glob("*.csv") if path.is_file()):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                number = re.search(r"\d+$", row.get("Identifier") or "")
                time = row.get("Last modified (submission)") or ""
                if not number or time in ("", "-"):
                    continue
                try:
                    found[number[0]] = _utc(dates.parse(time).replace(tzinfo=zone))
                except (ValueError, OverflowError):
                    unread.append(time)
    return found, unread


class SafeExtractor(ExtractorPlugin):
    """Checks zip archives before it unpacks them, and names those that it refuses."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive into a folder of its name; if any is refused, collect nothing."""
        source, target, refused = Path(archive_path), Path(extracted_path), []
        for path in sorted(source.rglob("*")):
            place = target / path.relative_to(source)
            if path.is_symlink():
                refused.append(printable(f"{path}: it is a link"))
            elif CANVAS.fullmatch(path.stem) and OF_A_CLASS.search(path.stem):
                said = f"{path}: that could be a student's file; call it download.zip"
                refused.append(printable(said))
            elif path.suffix.lower() == ".zip":
                try:
                    unpacked = unpack(path, place_for(place))
                except BadArchive as error:
                    refused.append(printable(f"{path}: {error}"))
                    continue
                self.log.info("Unpacked %d files of %s", len(unpacked.files), printable(path))
                for left in unpacked.left:
                    self.log.warning("Left in %s: %s", printable(path.name), printable(left))
            elif path.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        if refused:
            self.parent.fail("Refused, so nothing was collected:\n" + "\n".join(refused))


class LmsCollector(FileNameCollectorPlugin):
    """Finds the student of each file in downloads of Canvas, Moodle and Gradescope.

    Where the id found is a student's `lms_user_id` in the gradebook, the gradebook's id is used.
    Canvas marks a file LATE without a time; it counts as handed in one second after the due date.
    """

    time_zone = Unicode(
        "UTC", help="The time zone of the times in Moodle's worksheet, such as Europe/Berlin."
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.folder = Path(self.parent._format_collect_path(self.parent.extracted_directory))
        self._seen: set[tuple[str, str]] = set()

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return the file's student, name and time; None leaves it out, with a warning."""
        path = Path(submitted_file)
        if path.suffix not in self.valid_ext:
            return None
        place = path.relative_to(self.folder)
        found = recognise(place, self._metadata, self._times)
        if found is None:
            return None
        student = self._known.get(found.student, found.student)
        if not PLAIN_ID.fullmatch(student):
            self._left_out(place, f"{student!r} is not a valid student id")
            return None
        if (student, found.file) in self._seen:
            self._left_out(place, f"{student} handed in {found.file} twice")
            return None
        self._seen.add((student, found.file))
        time = found.handed_in or (self._just_late(place) if found.late else None)
        when = {"timestamp": time.isoformat(" ", "seconds")} if time else {}
        return {"student_id": student, "file_id": found.file, **when}

    def _left_out(self, place: Path, reason: str) -> None:
        self.log.warning("Left out %s: %s", printable(place), printable(reason))

    def _just_late(self, place: Path) -> datetime | None:
        if self._due is None:
            self.log.warning("%s is marked late, but the lesson has no due date", printable(place))
            return None
        return self._due + timedelta(seconds=1)

    @cached_property
    def _metadata(self) -> dict[PurePath, Any]:
        found, unread = read_metadata(self.folder)
        for place in unread:
            self.log.warning(
                "%s cannot be read, so it is not known who handed in the files beside it. "
                "Download the submissions again",
                printable(place),
            )
        return found

    @cached_property
    def _times(self) -> dict[str, datetime]:
        try:
            zone = ZoneInfo(self.time_zone)
        except (ValueError, ZoneInfoNotFoundError):
            self.parent.fail(
                f"LmsCollector.time_zone is {self.time_zone!r}, which is no time zone. "
                "Write one such as 'Europe/Berlin'"
            )
        times, unread = read_worksheet(self.folder, zone)
        if unread:
            self.log.warning(
                "%d times in Moodle's worksheet cannot be read, such as %r: these students do not "
                "count as late. Download the worksheet with Moodle in English",
                len(unread), unread[0],
            )  # fmt: skip
        return times

    @cached_property
    def _known(self) -> dict[str, str]:
        """The gradebook's ids by those of the other system."""
        with self._gradebook() as gradebook:
            return {str(s.lms_user_id): str(s.id) for s in gradebook.students if s.lms_user_id}

    @cached_property
    def _due(self) -> datetime | None:
        with self._gradebook() as gradebook, suppress(MissingEntry):
            due: datetime | None = gradebook.find_assignment(
                self.parent.coursedir.assignment_id
            ).duedate
            return due
        return None

    def _gradebook(self) -> Gradebook:
        course = self.parent.coursedir
        return Gradebook(course.db_url, course.course_id)
