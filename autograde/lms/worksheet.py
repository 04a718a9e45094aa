"""Read Moodle's grading worksheet: who has which number in this assignment, and handed in when."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from unicodedata import normalize

from dateutil import parser as dates

from autograde.lms.archives import FILE_BYTES
from autograde.lms.recognise import Person, in_utc
from autograde.student_text import quoted

HEADINGS = {
    "name": (
        "Full name", "Vollständiger Name", "Nom complet", "Nombre completo", "Nome completo",
        "Volledige naam", "Fullständigt namn",
    ),
    "idnumber": (
        "ID number", "ID-Nummer", "Numéro d'identification", "Número de ID",
        "Codice identificativo", "Número de identificação", "ID-nummer",
    ),
    "email": (
        "Email address", "E-Mail-Adresse", "Adresse de courriel", "Dirección de correo",
        "Indirizzo email", "Endereço de email", "Endereço de e-mail", "E-mailadres", "E-postadress",
    ),
    "group": ("Group", "Gruppe", "Groupe", "Grupo", "Gruppo", "Groep", "Grupp"),
    "time": (
        "Last modified (submission)", "Zuletzt geändert (Abgabe)",
        "Dernière modification (travail remis)", "Última modificación (entrega)",
        "Ultima modifica (consegna)", "Última modificação (envio)",
        "Última atualização (submissão)", "Laatst gewijzigd (inzending)",
        "Senast modifierat (inlämning)",
    ),
}  # fmt: skip
"""The columns that are read, as Moodle's language packs call them: mod/assign/lang, lang/moodle.

The first column is always Moodle's Identifier: the word for a participant, and a number.
"""
IDENTIFIER = re.compile(r"\D*(\d+)\s*")
SEPARATORS = (",", ";", "\t")
IN_ENGLISH = "Download it with Moodle in English"


def name_key(*parts: str | None) -> str:
    """Return a name for comparing; Moodle leaves some characters out of the names of files."""
    text = normalize("NFKC", "".join(part or "" for part in parts)).casefold()
    return "".join(letter for letter in text if letter.isalnum())


@dataclass(frozen=True)
class Row:
    """One student of the worksheet, with their group, and when they handed in."""

    person: Person
    group: str = ""
    handed_in: datetime | None = None
    cells: tuple[str, ...] = field(default=(), compare=False)

    def says(self, name: str) -> bool:
        """Return whether a cell holds this name, in whatever column."""
        return name_key(name) in map(name_key, self.cells)


@dataclass
class Worksheet:
    """The rows by Moodle's number, and what could not be read, in sentences."""

    rows: dict[str, Row] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def read_worksheets(folder: Path, zone: tzinfo) -> Worksheet:
    """Read the grading worksheets in a folder, whose times are in this zone."""
    sheet, unread = Worksheet(), []
    csv.field_size_limit(FILE_BYTES)  # it may hold the texts that students typed
    for path in sorted(each for each in folder.iterdir() if each.is_file()):
        if path.suffix.lower() != ".csv":
            continue
        rows = list(_rows(path.read_bytes()))
        found = [(match[1], cells, about) for cells, about in rows
                 if (match := IDENTIFIER.fullmatch(cells[0]))]  # fmt: skip
        columns = rows[0][1].keys() if rows else set()
        if not found or not {"name", "idnumber", "email", "time"} & columns:
            sheet.said.append(
                f"no row of {quoted(path.name)} is understood, so it tells neither who handed in "
                f"nor when. If it is Moodle's grading worksheet: {IN_ENGLISH}"
            )
            continue
        if "time" not in columns:
            sheet.said.append(
                f"{quoted(path.name)} has no column that is understood as the time of submission: "
                f"nobody counts as late. {IN_ENGLISH}"
            )
        for number, cells, about in found:
            time, group = about.pop("time", ""), about.pop("group", "")
            try:
                given = time not in ("", "-")
                when = in_utc(dates.parse(time).replace(tzinfo=zone)) if given else None
            except (ValueError, OverflowError):
                unread.append(time)
                when = None
            sheet.rows[number] = Row(
                Person(number, **about, moodle=True), group, when, tuple(cells)
            )
    if unread:
        sheet.said.append(
            f"{len(unread)} times in Moodle's worksheet cannot be read, such as {quoted(unread[0])}"
            f": these students do not count as late. {IN_ENGLISH}"
        )
    return sheet


def _rows(content: bytes) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the rows of a table: all cells, and those that are read by the keys of `HEADINGS`."""
    try:
        text = content.decode(json.detect_encoding(content))  # UTF-8, UTF-16, with a mark or not
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # as older spreadsheets save
    head, _, _ = text.partition("\n")
    reader = csv.reader(StringIO(text, newline=""), delimiter=max(SEPARATORS, key=head.count))
    keys = {heading.casefold(): key for key, names in HEADINGS.items() for heading in names}
    columns = [keys.get(heading.strip().casefold(), "") for heading in next(reader, [])]
    for row in reader:
        if row:
            cells = [cell.strip() for cell in row]
            about = zip_longest(columns[1:], cells[1:], fillvalue="")
            yield cells, {key: cell for key, cell in about if key}
