"""Merge three notebooks: as handed out, as the student has it, as the lesson is now.

nbgitpuller's rules, for each cell: what only the lesson changed is taken, what only the student
changed is kept. Where both changed a cell, the student's text stays and the lesson's is shown
below it; in a locked cell the lesson's stays and the student's is shown.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import count

import nbformat
from nbformat import NotebookNode

from autograde.course import grade_id
from autograde.rubric.text import digest

YOURS = "**Changed twice.** The lesson changed the cell above, and so did you. Your text was:"
LESSONS = (
    "**Changed twice.** You changed the cell above, and so did the lesson. Yours was kept. "
    "The lesson's new text is:"
)
ALIKE = 0.5
"""How much of its text a cell must keep to be the same cell, rewritten."""
GONE = "The cell above is no longer part of the lesson. It stays because you changed it."


@dataclass
class Merged:
    """The merged notebook, and the names of the cells that were taken, or that changed twice."""

    nb: NotebookNode
    taken: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def merge(handed_out: NotebookNode, students: NotebookNode, lesson: NotebookNode) -> Merged:
    """Bring a lesson's new version into a student's notebook; no text of theirs is lost.

    The lesson's cells stand in the lesson's order. A cell that the student added stays after the
    lesson's cell that it followed.
    """
    old, new = ({_key(cell): cell for cell in nb.cells} for nb in (handed_out, lesson))
    rewritten = _rewritten(old, new)
    new = {rewritten.get(key, key): cell for key, cell in new.items()}
    keyed = _keyed(students, old, new, rewritten)
    mine = {key: cell for key, cell in keyed if key}
    merged = Merged(_with_metadata_of(lesson, handed_out, students))
    places: dict[str, list[NotebookNode]] = {"": []}
    for key, cell in new.items():
        places[key] = _merge_cell(merged, old.get(key), mine.get(key), cell)
    place = ""
    for key, cell in keyed:
        if key in new:
            place = key
        elif not key:
            places[place].append(cell)
        elif _text(cell) == _text(old[key]):
            merged.taken.append(name_of(cell))
        else:
            cell.metadata.pop("nbgrader", None)
            places[place] += [cell, _note(GONE)]
            merged.conflicts.append(name_of(old[key]))
    cells = [cell for group in places.values() for cell in group]
    merged.nb.cells = _each_once(cells)
    return merged


def name_of(cell: NotebookNode) -> str:
    """Return a name for a cell: its grade_id, or how it begins."""
    first = next((line for line in cell.source.splitlines() if line.strip()), "")
    return grade_id(cell) or f"“{first.strip()[:50]}”"


def _key(cell: NotebookNode) -> str:
    """Return the key of a lesson's cell: its grade_id, or the id that `autograde build` gave it."""
    return f"name {name}" if (name := grade_id(cell)) else f"id {cell.get('id')}"


def _rewritten(old: dict[str, NotebookNode], new: dict[str, NotebookNode]) -> dict[str, str]:
    """Return the old key of each rewritten cell: without a name, new text means a new id."""
    found = {}
    steps = SequenceMatcher(None, list(old), list(new), autojunk=False).get_opcodes()
    for _, start, end, new_start, new_end in (step for step in steps if step[0] == "replace"):
        for was, now in zip(list(old)[start:end], list(new)[new_start:new_end], strict=False):
            (kind, before), (new_kind, after) = _text(old[was]), _text(new[now])
            alike = SequenceMatcher(None, before, after, autojunk=False).ratio() > ALIKE
            unnamed = was.startswith("id ") and now.startswith("id ")
            if unnamed and alike and kind == new_kind and was not in new:
                found[now] = was
    return found


def _text(cell: NotebookNode) -> tuple[str, str]:
    return cell.cell_type, cell.source


def _keyed(
    students: NotebookNode,
    old: dict[str, NotebookNode],
    new: dict[str, NotebookNode],
    rewritten: dict[str, str],
) -> list[tuple[str, NotebookNode]]:
    """Return the student's cells in order, each with the key of its lesson's cell, or "".

    Some programs drop ids; such a cell is found by its text. If a cell occurs twice, the last one
    counts, as in grading.
    """
    by_text = {_text(cell): key for key, cell in old.items() if key.startswith("id ")}
    keyed: list[tuple[str, NotebookNode]] = []
    for original in students.cells:
        cell = NotebookNode(nbformat.from_dict(original))
        key = rewritten.get(_key(cell), _key(cell))
        if key not in old and key not in new:
            key = "" if grade_id(cell) else by_text.get(_text(cell), "")
        keyed.append((key, cell))
    last = {key: number for number, (key, _) in enumerate(keyed)}
    for number, (key, cell) in enumerate(keyed):
        if key and last[key] != number:
            cell.metadata.pop("nbgrader", None)
            keyed[number] = "", cell
    return keyed


def _merge_cell(
    merged: Merged, old: NotebookNode | None, mine: NotebookNode | None, new: NotebookNode
) -> list[NotebookNode]:
    """Return the cells that take the place of one cell of the lesson."""
    new = NotebookNode(nbformat.from_dict(new))
    unchanged = old is not None and _text(old) == _text(new)
    if mine is None:
        if unchanged:
            return []  # the student deleted it
        merged.taken.append(name_of(new))
        return [new]
    if unchanged or _text(mine) == _text(new):
        return [_named_as(new, old, mine)]
    if old is not None and _text(mine) == _text(old):
        merged.taken.append(name_of(new))
        return [new]
    merged.conflicts.append(name_of(new))
    if new.metadata.get("nbgrader", {}).get("locked"):
        return [new, _note(YOURS, mine)]
    return [_named_as(new, old, mine), _note(LESSONS, new)]


def _named_as(new: NotebookNode, old: NotebookNode | None, mine: NotebookNode) -> NotebookNode:
    """Return the student's cell with the id, points, tags and checksum that the lesson gives it."""
    mine["id"] = new.id
    if old is None or old.metadata != new.metadata:
        mine.metadata = NotebookNode({**mine.metadata, **new.metadata})
    return mine


def _with_metadata_of(
    lesson: NotebookNode, handed_out: NotebookNode, students: NotebookNode
) -> NotebookNode:
    nb = NotebookNode(nbformat.from_dict({**students, "cells": []}))
    if lesson.metadata != handed_out.metadata:
        nb.metadata = NotebookNode({**students.metadata, **lesson.metadata})
    nb.nbformat, nb.nbformat_minor = 4, max(5, students.nbformat_minor)
    return nb


def _note(said: str, cell: NotebookNode | None = None) -> NotebookNode:
    """Return a text cell that says what happened, and quotes a cell's text."""
    if cell is not None:
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", cell.source + "`")))
        kind = "python" if cell.cell_type == "code" else ""
        said = f"{said}\n\n{fence}{kind}\n{cell.source}\n{fence}"
    return NotebookNode(nbformat.v4.new_markdown_cell(said, id=f"note-{digest(said)[:12]}"))


def _each_once(cells: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return the cells with distinct ids, each note only once."""
    kept: list[NotebookNode] = []
    ids: set[str] = set()
    notes: set[tuple[str, str]] = set()
    for cell in cells:
        name = str(cell.get("id") or "cell")
        if name.startswith("note-"):
            if (name, cell.source) in notes:
                continue
            notes.add((name, cell.source))
        cell["id"] = next(fresh for fresh in _numbered(name) if fresh not in ids)
        ids.add(cell["id"])
        kept.append(cell)
    return kept


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name[:50]}-{number}" for number in count(2))
