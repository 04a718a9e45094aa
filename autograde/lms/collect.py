"""Collect the submissions in downloads of Canvas, Moodle and Gradescope, and say who has what."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePath
from shutil import copyfile
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nbgrader.api import Gradebook
from traitlets.config import Config

from autograde.course.config import course_config
from autograde.course.lessons import CourseError, Lesson
from autograde.files import write_folder
from autograde.grading.gradebook import (
    due_date,
    names_of_students,
    odd_due_date,
    open_gradebook,
    parse_time,
)
from autograde.grading.submission import TIMESTAMP
from autograde.lms.archives import BadArchive, place_for, unpack
from autograde.lms.assign_files import Handed, Plan, make_plan
from autograde.lms.people import keep_numbers, read_numbers, remember
from autograde.lms.recognise import CANVAS
from autograde.student_text import named, printable, quoted

OF_A_CLASS = re.compile(r"submissions( ?\(\d+\))?$")
"""The end of the name that Canvas gives a class's archive; the course's numbers may precede it."""


def collect(lesson: Lesson, files: Iterable[Path]) -> tuple[list[str], bool]:
    """Collect a lesson's submissions from downloads, or from `downloaded/LESSON/archive/`.

    What was collected before is replaced, unless it was handed in later. Returns what there is to
    say, line by line, and whether all that came was collected.

    Raises:
        CourseError: a download is refused, there is none, or the time zone is none.
    """
    config = course_config(lesson.root)
    given = list(files) or [lesson.root / "downloaded" / lesson.name / "archive"]
    with TemporaryDirectory() as folder, open_gradebook(config) as gradebook:
        said, refused = _unpack_all(_below(given), Path(folder))
        if refused:
            raise CourseError("\n".join(["Refused, so nothing was collected:", *refused]))
        due = due_date(gradebook, lesson.name)
        plan = _plan(lesson, Path(folder), gradebook, _zone(config), due)
        names = names_of_students(gradebook)
        done = {student: _write(lesson, student, handed) for student, handed in plan.handed.items()}
    lines = [f"{lesson.name}: collected from {len(done)}"]
    lines += [_line(who, plan.handed[who], due, done[who]) for who in sorted(done)]
    problems = [*said, *plan.said, *filter(None, [odd_due_date(due)])]
    for title, facts in (
        ("nothing in the download from", [names.get(who, who) for who in sorted(plan.absent)]),
        ("to look at", problems),
        ("NOT COLLECTED", [f"{names.get(who, who)}: {why}" for who, why in plan.failed.items()]),
    ):
        lines += [f"{title}: {len(facts)}", *(f"  {each}" for each in facts)] if facts else []
    if {"new", "replaced"} & {*done.values()}:
        lines.append(f"next: autograde grade {lesson.name}")
    return [printable(line) for line in lines], not plan.failed


def _below(paths: Iterable[Path]) -> Iterator[tuple[Path, PurePath]]:
    """Yield files, and those in folders, with the places that they get; there has to be one."""
    found = 0
    for path in paths:
        top = path if path.is_dir() else path.parent
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if each.is_symlink() or each.is_file():
                found += 1
                yield each, each.relative_to(top)
    if not found:
        raise CourseError(
            f"nothing to collect: name the files that you downloaded, or put them into {path}"
        )


def _write(lesson: Lesson, student: str, handed: Handed) -> str:
    """Write one student's folder whole; return what was done."""
    folder = lesson.root / "submitted" / student / lesson.name
    new = {name: path.read_bytes() for name, path in handed.files.items()}
    if handed.when:
        new[TIMESTAMP] = handed.when.isoformat(" ").encode()
    old = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    if old == new:
        return "as before"
    with suppress(ValueError):
        before = parse_time(old.get(TIMESTAMP, b"").decode())
        if before and handed.when and before > handed.when:
            return "left out: what is there was handed in later"
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_folder(folder, new)
    return "replaced" if old else "new"


def _line(student: str, handed: Handed, due: datetime | None, done: str) -> str:
    when = f", {handed.when:%Y-%m-%d %H:%M:%S} UTC" if handed.when else ""
    late = ", late" if due and handed.when and handed.when > due else ""
    name = f" ({quoted(handed.person.name)})" if handed.person.name else ""
    return f"  {student}{name}: {named(handed.files)}{when}{late}, {done}"


def _zone(config: Config) -> ZoneInfo:
    """Return the time zone of the times in Moodle's worksheet: `c.Lms.time_zone`, or UTC.

    Raises:
        CourseError: there is no such time zone.
    """
    name = config.Lms.get("time_zone", "UTC")
    try:
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise CourseError(
            f"Lms.time_zone is {name!r}, which is no time zone. Write one such as 'Europe/Berlin'"
        ) from error


def _plan(
    lesson: Lesson, folder: Path, gradebook: Gradebook, zone: ZoneInfo, due: datetime | None
) -> Plan:
    """Return the plan for an unpacked download.

    The gradebook gets new students, and those from whom nothing came; the course keeps Moodle's
    numbers.
    """
    numbers = read_numbers(lesson.root, lesson.name)
    plan = make_plan(folder, gradebook.students, numbers, zone, due)
    handed = {student: handed.person for student, handed in plan.handed.items()}
    remember(gradebook, plan.new | handed)
    keep_numbers(lesson.root, lesson.name, plan.numbers)
    return plan


def _unpack_all(
    files: Iterable[tuple[Path, PurePath]], target: Path
) -> tuple[list[str], list[str]]:
    """Copy files to a folder, archives unpacked; return what was left in them, and the refused."""
    left, refused = [], []
    for path, name in files:
        place = target / name
        if path.is_symlink():
            refused.append(printable(f"{path}: it is a link"))
        elif place.exists() or place_for(place).exists():
            refused.append(printable(f"{path}: another file has that name; rename one of them"))
        elif CANVAS.fullmatch(path.stem) and OF_A_CLASS.search(path.stem):
            said = f"{path}: that could be a student's file; call it download.zip"
            refused.append(printable(said))
        elif path.suffix.lower() == ".zip":
            try:
                unpacked = unpack(path, place_for(place))
            except BadArchive as error:
                refused.append(printable(f"{path}: {error}"))
                continue
            left += [f"left in {quoted(path.name)}: {each}" for each in unpacked.left]
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            copyfile(path, place)
    return left, refused
