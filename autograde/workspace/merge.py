"""Put a student's work into the newest version of its lesson.

The lesson's cells are the newest, in its order. Answers stay in their places, and so do cells
of the lesson that only the student changed. What else the student wrote stays behind the lesson's
cell that it followed. Changes of locked cells are left out, as in grading.
"""

from uuid import uuid4

import nbformat
from nbformat import NotebookNode

from autograde.course.cells import grade_id
from autograde.values.text import digest

CHANGED_TOO = "You changed the cell above, and so did the lesson. Yours was kept. The lesson's is:"


def merge(handed_out: NotebookNode, students: NotebookNode, lesson: NotebookNode) -> NotebookNode:
    """Return a lesson's new version with what a student wrote into the one that was handed out."""
    nb, own = (NotebookNode(nbformat.from_dict(each)) for each in (lesson, students))
    old = {_key(cell): cell.source for cell in handed_out.cells}
    given = {_text(cell): cell.id for each in (handed_out, lesson) for cell in each.cells}
    for cell in own.cells:
        cell.setdefault("id", given.get(_text(cell), uuid4().hex))  # some programs drop ids
    last = {_key(cell): cell for cell in own.cells}  # of a cell that stands twice, as in grading
    places = {"": [], **{_key(cell): [cell] for cell in nb.cells}}
    place = ""
    for cell in own.cells:
        key = _key(cell)
        if key in places and cell is last[key]:
            place = key
            places[key] = _in_place(old.get(key), cell, places[key][0], last)
        elif _text(cell) not in given:
            cell.metadata.pop("nbgrader", None)
            cell["id"] = uuid4().hex if key in places or cell.id in places else cell.id
            places[place].append(cell)
    nb.cells = [cell for group in places.values() for cell in group]
    nb.metadata = NotebookNode({**nb.metadata, **own.metadata})
    return nb


def _key(cell: NotebookNode) -> str:
    """Return a cell's grade_id, or its id, which for a lesson's cell is a digest of its text."""
    return grade_id(cell) or str(cell.id)


def _text(cell: NotebookNode) -> tuple[str, str]:
    return cell.cell_type, cell.source


def _in_place(
    old: str | None, mine: NotebookNode, new: NotebookNode, there: dict[str, NotebookNode]
) -> list[NotebookNode]:
    """Return what stands in the place of a lesson's cell that the student has, too."""
    locked = new.metadata.get("nbgrader") and not new.metadata.nbgrader.get("solution")
    if mine.source != new.source and (locked or mine.source == old):
        return [new]
    mine["id"], mine.metadata = new.id, NotebookNode({**mine.metadata, **new.metadata})
    if mine.source == new.source or old in (None, new.source):
        return [mine]
    said = f"{CHANGED_TOO}\n\n~~~~python\n{new.source}\n~~~~"
    note = NotebookNode(nbformat.v4.new_markdown_cell(said, id=f"note-{digest(said)[:12]}"))
    return [mine] if note.id in there else [mine, note]
