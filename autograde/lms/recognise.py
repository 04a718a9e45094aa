r"""Whose a downloaded file is, by its path, as Canvas, Moodle and Gradescope write it.

Canvas      doejane_LATE_123_4567_lesson.ipynb          (canvas-lms, content_zipper.rb)
            anon_aB3xY_4567_lesson.ipynb                where students are anonymous
Moodle      Jane Doe_123_assignsubmission_file/lesson.ipynb   (mod_assign, downloader.php)
            Jane Doe_123_assignsubmission_file_lesson.ipynb   without folders, older ones
            Team Red_45_assignsubmission_file/lesson.ipynb    a group and its number
            Default group_assignsubmission_file/...          students who are in no group
Gradescope  submission_99/lesson.ipynb, beside submission_metadata.yml with
            :submitters: [{:sid:, :email:, :name:}] and :created_at:
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import yaml

from autograde.lms.archives import UNPACKED

CANVAS = re.compile(
    r"(?:.*?_)??(?P<late>LATE_)?(?P<student>\d+|anon_[A-Za-z0-9]+)_\d+_(?P<file>.+)"
)
MOODLE = re.compile(
    r"(?P<name>[^_]*?)(?:_(?P<student>\d+))?_assignsubmission_(?P<plugin>[a-z]+)(?:_(?P<file>.*))?"
)
GRADESCOPE = re.compile(r"submission_\d+")
METADATA = "submission_metadata.yml"


@dataclass(frozen=True)
class Person:
    """Somebody as another system knows them.

    `number` is that system's: Canvas has one for each person, Moodle one for each person and
    assignment, or a group. `idnumber` is the school's.
    """

    number: str = ""
    name: str = ""
    idnumber: str = ""
    email: str = ""
    moodle: bool = False

    def __str__(self) -> str:
        known = [self.name, self.idnumber or self.email or self.number]
        return " ".join(part for part in known if part)


Owners = tuple[Person, ...]
"""Whoever handed a file in: one person, or several in Gradescope."""


@dataclass(frozen=True)
class Found:
    """A file, its owners, and when it was handed in, if the download says so."""

    owners: Owners
    file: str
    handed_in: datetime | None = None
    late: bool = False


def recognise(path: PurePath, metadata: dict[PurePath, Any]) -> Found | None:
    """Find by its path who handed in a downloaded file; None if the path does not say.

    The part that the system named comes first in a path. The student chose what follows, and could
    write anything there. What is hidden is not looked at.

    Args:
        metadata: what Gradescope's `submission_metadata.yml` says, by folder.
    """
    if is_hidden(path):
        return None
    for depth, part in enumerate(path.parts, start=1):
        last = depth == len(path.parts)
        if GRADESCOPE.fullmatch(part):
            return _gradescope(metadata.get(PurePath(*path.parts[:depth])), path.name)
        if found := MOODLE.fullmatch(part):
            file = found["file"] if last else path.name
            if found["plugin"] != "file" or not file:
                return None
            person = Person(found["student"] or "", found["name"], moodle=True)
            return Found((person,), file)
        if (last or is_unpacked(part)) and (found := CANVAS.fullmatch(part)):
            file = found["file"] if last else path.name
            return Found((Person(found["student"]),), file, late=bool(found["late"]))
    return None


def is_hidden(path: PurePath) -> bool:
    """Return whether a file is a program's own, such as JupyterLab's checkpoints."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


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
        people = tuple(
            Person(
                name=str(each.get(":name") or ""),
                idnumber=str(each.get(":sid") or ""),
                email=str(each.get(":email") or ""),
            )
            for each in entry[":submitters"]
        )
        handed_in = entry.get(":created_at")
    except (TypeError, LookupError, AttributeError):
        return None
    if not people or not all(each.idnumber or each.email for each in people):
        return None
    time = in_utc(handed_in) if isinstance(handed_in, datetime) else None
    return Found(people, file, time)


def in_utc(time: datetime) -> datetime:
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
