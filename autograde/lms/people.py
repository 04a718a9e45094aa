"""Find the student of the gradebook whom another system means, or say why that cannot be told.

Moodle numbers its participants anew for each assignment. `.autograde/participants/LESSON.json`
keeps each student's number, for the worksheet that goes back to Moodle.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from nbgrader.api import Gradebook, Student

from autograde.course.lessons import state_folder
from autograde.files import write_whole
from autograde.lms.recognise import Owners, Person
from autograde.lms.worksheet import Worksheet, name_key
from autograde.student_text import named, quoted

PLAIN_ID = re.compile(r"[^\W_][\w.@+'’&~!=-]{0,127}")  # noqa: RUF001 (as some names have it)
"""Ids become names of folders."""
SHEET = "Put Moodle's grading worksheet beside the download"


class Unclear(Exception):
    """It cannot be told who somebody is; the message says why and what to do."""


class Roster:
    """The students of a gradebook, and one lesson's worksheet and numbers."""

    def __init__(
        self, students: Iterable[Student], numbers: dict[str, str], sheet: Worksheet
    ) -> None:
        self.students = {str(student.id): student for student in students}
        self.sheet = sheet
        self.numbers = dict(numbers)
        known = [row.person.name for row in sheet.rows.values()]
        self._names = Counter(map(name_key, known))

    def see(self, people: Iterable[Person]) -> None:
        """Note which names a download has; one that several people have says nothing."""
        moodles = (name_key(person.name) for person in people if person.moodle)
        for name, number in Counter(moodles).items():
            self._names[name] = max(self._names[name], number)

    def find(self, owners: Owners) -> dict[str, Person]:
        """Return whom a submission is from, by the ids that they have or get in the gradebook.

        Raises:
            Unclear: it cannot be told.
        """
        people = self._members(*owners) if owners[0].moodle else owners
        found = {self.student_of(person): person for person in people}
        for student in found:
            if not PLAIN_ID.fullmatch(student):
                raise Unclear(f"{quoted(student)} is not a valid student id")
        return found

    def _members(self, person: Person) -> Owners:
        """Return the people whom a folder of Moodle's stands for: one, or a group's members."""
        if row := self.sheet.rows.get(person.number):
            # where names are hidden, the folder has a word that stands for everybody
            own = row.person.name or (person.name if row.says(person.name) else "")
            return (replace(row.person, name=own),)
        group = name_key(person.name)
        members = [
            row.person for row in self.sheet.rows.values() if name_key(row.group) == group != ""
        ]
        if members:
            return tuple(members)
        if not person.number:
            raise Unclear(f"it is from a group of students. {SHEET}: it says who is in which group")
        if self.known(person) is None:
            raise Unclear(
                f"nobody in the gradebook is called that, so it is a new student or a group. "
                f"{SHEET}, or add the student with nbgrader db student add"
            )
        return (person,)

    def student_of(self, person: Person) -> str:
        """Return the id of somebody, a new one if need be.

        Raises:
            Unclear: several students may be meant.
        """
        if known := self.known(person):
            return known
        ids = [each for each in (person.idnumber, person.email, person.number) if each]
        new = next((each for each in ids if PLAIN_ID.fullmatch(each)), ids[0])
        if new in self.students:
            raise Unclear(
                f"somebody else has the id {quoted(new)} in the gradebook. {SHEET}, with ID "
                "numbers or email addresses in it"
            )
        return new

    def known(self, person: Person) -> str | None:
        """Return the id of a student in the gradebook; None if there is no such student.

        The ID number counts first, then the email address, then Moodle's number in this lesson,
        then the full name, then the number for a student whose name the gradebook does not have.

        Raises:
            Unclear: several students may be meant.
        """
        email, name = person.email.casefold(), name_key(person.name)
        moodle, by_number = person.moodle, not (person.moodle and person.idnumber)

        def same_name(s: Student) -> bool:
            return moodle and name != "" and name in _names(s)

        steps: tuple[Callable[[Student], bool], ...] = (
            lambda s: person.idnumber != "" and person.idnumber in (s.id, s.lms_user_id),
            lambda s: email != "" and email in ((s.email or "").casefold(), s.id.casefold()),
            lambda s: moodle and person.number != "" and self.numbers.get(s.id) == person.number,
            same_name,
            lambda s: by_number and person.number in (s.id, s.lms_user_id)
            and not (moodle and _names(s)),
        )  # fmt: skip
        for step in steps:
            found = [id_ for id_, student in self.students.items() if step(student)]
            if found and step is same_name:
                self._require_clear(person, name, found)
            if len(found) > 1:
                raise Unclear(f"{named(found)} have the same id, email address or number there")
            if found:
                return found[0]
        return None

    def _require_clear(self, person: Person, name: str, found: list[str]) -> None:
        if len(found) > 1 or self._names[name] > 1:
            who = named(found)
            raise Unclear(
                f"several students have this name (in the gradebook: {who}). {SHEET}, with ID "
                "numbers or email addresses in it that the gradebook has too"
            )
        other = self.students[found[0]].email or ""
        if person.email and other and other.casefold() != person.email.casefold():
            raise Unclear(
                f"the student of this name in the gradebook, {named(found)}, has another email "
                f"address: {quoted(other)} there, {quoted(person.email)} in Moodle. Correct one"
            )


def _names(student: Student) -> set[str]:
    """Return a student's full name for comparing, in both orders."""
    first, last = student.first_name, student.last_name
    return {name_key(first, last), name_key(last, first)} - {""}


def remember(gradebook: Gradebook, found: dict[str, Person]) -> None:
    """Put new students into the gradebook, and the names and addresses that it lacks.

    A full name is split, because Formgrader shows last names first, and "None" for a missing one.
    """
    for student, person in found.items():
        known = gradebook.update_or_create_student(student)
        if person.name and not (known.first_name or known.last_name):
            known.first_name, _, known.last_name = person.name.rpartition(" ")
        known.email = known.email or person.email or None
    gradebook.db.commit()


def read_numbers(root: Path, lesson: str) -> dict[str, str]:
    """Return Moodle's number of each student in a lesson, as far as it is known."""
    try:
        found = json.loads(_kept(root, lesson).read_bytes())
        return {str(student): str(number) for student, number in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def keep_numbers(root: Path, lesson: str, numbers: dict[str, str]) -> None:
    """Keep Moodle's numbers in a lesson, beside those that were known before."""
    known = read_numbers(root, lesson)
    if numbers.items() - known.items():
        write_whole(_kept(root, lesson), json.dumps({**known, **numbers}, indent=1).encode())


def _kept(root: Path, lesson: str) -> Path:
    return state_folder(root) / "participants" / f"{lesson}.json"
