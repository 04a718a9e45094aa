"""Decide for every file of an unpacked download which student gets it, or say why nobody does."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path, PurePath

from nbgrader.api import Student

from autograde.grading.reading.handed_in import is_notebook
from autograde.lms.archives import UNPACKED
from autograde.lms.people import SHEET, Roster, Unclear
from autograde.lms.recognise import (
    METADATA,
    Found,
    Owners,
    Person,
    is_hidden,
    is_students,
    read_metadata,
    recognise,
)
from autograde.lms.worksheet import read_worksheets
from autograde.student_text import named, quoted

ONLY_ZIP = "only notebooks and zip archives are opened"


@dataclass
class Handed:
    """One student's notebooks by the names that they get, and when they were handed in."""

    person: Person
    files: dict[str, Path] = field(default_factory=dict)
    when: datetime | None = None


@dataclass
class Plan:
    """The files of each student, by the gradebook's ids; from whom nothing is collected, and why.

    `absent` are people of whom there is nothing in the download; those `new` among them, and among
    those from whom nothing is collected, the gradebook does not know yet. `said` are warnings on
    the whole.
    """

    handed: dict[str, Handed] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    new: dict[str, Person] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)


def make_plan(
    folder: Path,
    students: Iterable[Student],
    numbers: dict[str, str],
    zone: tzinfo,
    due: datetime | None,
) -> Plan:
    """Decide for every file in a folder.

    Args:
        numbers: the students' numbers in this lesson, as far as Moodle has given them before.
        zone: the time zone of the times in Moodle's worksheet.
        due: when the lesson is due, in UTC. Canvas marks a file late and does not say when; it
            counts as handed in one second after that.
    """
    plan = Plan()
    metadata, unread = read_metadata(folder)
    for place in unread:
        plan.said.append(
            f"{quoted(place)} cannot be read, so it is not known who handed in the files beside "
            "it. Download the submissions again"
        )
    sheet = read_worksheets(folder, zone)
    plan.said += sheet.said
    roster = Roster(students, numbers, sheet)
    files: dict[Owners, list[tuple[Path, Found]]] = {}
    nobodys = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = path.relative_to(folder)
        if found := recognise(place, metadata):
            files.setdefault(found.owners, []).append((path, found))
        elif _may_be_a_submission(place):
            nobodys.append(place.as_posix().replace(f"{UNPACKED}/", "/"))
    if nobodys:
        plan.said.append(f"the path does not say who handed in {named(nobodys)}")
    roster.see(person for owners in files for person in owners)
    for student, (owners, person) in _takers(plan, roster, files).items():
        _give(plan, student, person, files[owners], due)
        if person.moodle:
            plan.numbers[student] = person.number
            if (handed := plan.handed.get(student)) and (row := sheet.rows.get(person.number)):
                handed.when = row.handed_in
    _note_absent(plan, roster, {person.number for owners in files for person in owners})
    return plan


def _takers(
    plan: Plan, roster: Roster, submissions: Iterable[Owners]
) -> dict[str, tuple[Owners, Person]]:
    """Return which student gets whose files; a student who seems to be several gets none."""
    taken: dict[str, list[tuple[Owners, Person]]] = {}
    for owners in submissions:
        try:
            for student, person in roster.find(owners).items():
                taken.setdefault(student, []).append((owners, person))
        except Unclear as error:
            plan.failed[" and ".join(map(str, owners))] = str(error)
    for student, found in taken.items():
        if len(found) > 1:
            plan.failed[student] = (
                f"{len(found)} submissions seem to be from {named([student])}, those of "
                f"{named(person for _, person in found)}. {SHEET}, with ID numbers or email "
                "addresses in it that the gradebook has too"
            )
    return {student: found[0] for student, found in taken.items() if len(found) == 1}


def _may_be_a_submission(place: PurePath) -> bool:
    """Return whether a file that is nobody's may be somebody's notebook."""
    known = place.name == METADATA or place.suffix.lower() == ".csv"
    return not known and not is_hidden(place) and not is_students(place)


def _give(
    plan: Plan,
    student: str,
    person: Person,
    given: list[tuple[Path, Found]],
    due: datetime | None,
) -> None:
    notebooks = [each for each in given if is_notebook(each[0].name, each[0].read_bytes())]
    if not notebooks:
        what = named(found.file for _, found in given)
        plan.new[student] = person
        plan.failed[student] = f"no notebook in what was handed in, {what}: {ONLY_ZIP}"
        return
    handed = plan.handed[student] = Handed(person)
    times = [found.handed_in for _, found in notebooks if found.handed_in]
    if any(found.late for _, found in notebooks):
        if due is None:
            plan.said.append(f"{named([student])} is late, but the lesson has no due date")
        else:
            times.append(due + timedelta(seconds=1))
    handed.when = max(times, default=None)
    for path, found in notebooks:
        name = found.file
        if name in handed.files:  # the student's folder says which one it is
            name = f"{path.parent.name.removesuffix(UNPACKED)}/{name}"
        if name in handed.files:
            plan.said.append(f"{named([student])} handed in {quoted(name)} twice: one is left out")
        handed.files.setdefault(name, path)


def _enter(plan: Plan, roster: Roster, person: Person) -> None:
    """Note a new student who handed in nothing, if the worksheet says who it is."""
    if not (person.idnumber or person.email):
        return
    with suppress(Unclear):
        for student in roster.find((person,)):
            plan.new[student] = person
            plan.numbers[student] = person.number


def _note_absent(plan: Plan, roster: Roster, there: set[str]) -> None:
    """Note of whom there is nothing, and the number of everybody who is known.

    `there` are the numbers of those who handed in.
    """
    for number, row in roster.sheet.rows.items():
        try:
            student = roster.known(row.person)
        except Unclear:
            student = None
        if student is not None:
            plan.numbers[student] = number
        elif number not in there and number not in plan.numbers.values():
            plan.absent.append(str(row.person))
            _enter(plan, roster, row.person)
    plan.absent += sorted(roster.students.keys() - plan.handed.keys() - plan.failed.keys())
