"""Put back the cells that were not the student's, and gather written answers.

A written answer's cell that was split or copied is there twice, and some students answer in a new
cell.
"""

import ast
from dataclasses import replace
from textwrap import indent

import nbformat
from nbformat import NotebookNode

from autograde.course.cells import code_cells, exercise_of, grade_id, id_of_text, named_cells
from autograde.grading.limits import LIMITS
from autograde.grading.record import Record
from autograde.grading.submission import Problem
from autograde.rubric.names import names_of

NOT_OF_LESSON = Problem(
    "the notebook is not of this lesson",
    "Nothing of this lesson is in the notebook. Submit the notebook of this lesson.",
)
ORIGINAL = "the original is used"
MORE = "[There is more in the cells below: open the whole notebook.]"


def restore(record: Record, released: NotebookNode) -> Record:
    """Put back what the lesson owns: rubric cells, locked cells, names, types and points.

    The student's answers stay. The record gets a note on each cell that was changed.
    """
    nb = record.nb
    nb.metadata = nbformat.from_dict(released.metadata)
    nb.nbformat, nb.nbformat_minor = 4, 5
    owned = named_cells(released)
    _recognise(nb, owned)
    if not record.problem and not _is_of_lesson(nb, owned):
        record = replace(record, problem=NOT_OF_LESSON)
        nb.cells = []  # none of its texts is a written answer
    _part(nb, owned)
    written = {
        name: cell
        for name, cell in owned.items()
        if cell.cell_type == "markdown" and cell.metadata["nbgrader"].get("grade")
    }
    _join_copies(nb, written)
    _forget_claims(record, set(owned))
    at, place = {name: cells[-1] for name, cells in _by_name(nb).items()}, -1
    lost: set[str] = set()
    for name, original in owned.items():
        if name in at:
            _restore_cell(record, at[name], name, original)
            place = next(i for i, cell in enumerate(nb.cells) if cell is at[name])
            continue
        at[name], then = nbformat.from_dict(original), ORIGINAL
        if _is_students(original):  # a stub would bind anew what another cell answers
            at[name].source, then = "", "an answer in another cell counts"
            lost.add(name)
        elif exercise_of(original) in lost:  # its rubric judges what has run by then
            place = max(place, _last_that_binds(nb, exercise_of(original)))
        if not record.problem:
            record.note(name, f"the cell is missing; {then}")
        place += 1
        nb.cells.insert(place, at[name])
    _join_beside(nb, at, written, {cell.source.strip() for cell in released.cells} - {""})
    for number, cell in enumerate(nb.cells):
        cell["id"] = grade_id(cell) or f"cell-{number}"
    return record


def _is_of_lesson(nb: NotebookNode, owned: dict[str, NotebookNode]) -> bool:
    """Return whether a notebook has a cell of the lesson, or an answer to one of its exercises."""
    return not owned.keys().isdisjoint(_by_name(nb)) or any(
        owned.keys() & names_of(cell.source).bound for cell in code_cells(nb)
    )


def _last_that_binds(nb: NotebookNode, name: str) -> int:
    """Return the place of the student's last own cell that binds a name; -1 if there is none."""
    return max(
        (
            place
            for place, cell in enumerate(nb.cells)
            if cell.cell_type == "code"
            and not grade_id(cell)
            and name in names_of(cell.source).bound
        ),
        default=-1,
    )


def _by_name(nb: NotebookNode) -> dict[str, list[NotebookNode]]:
    """Return the cells that have a name, all of one name together."""
    found: dict[str, list[NotebookNode]] = {}
    for cell in nb.cells:
        if name := grade_id(cell):
            found.setdefault(name, []).append(cell)
    return found


def _recognise(nb: NotebookNode, owned: dict[str, NotebookNode]) -> None:
    """Recognise the lesson's cells by their text, if another program dropped their names."""
    there = _by_name(nb)
    lost = {
        cell.source.strip(): name
        for name, cell in owned.items()
        if name not in there and not _is_students(cell)
    }
    for cell in nb.cells:
        if not grade_id(cell) and (name := lost.get(cell.source.strip())):
            cell.metadata["nbgrader"] = {"grade_id": name}


def _part(nb: NotebookNode, owned: dict[str, NotebookNode]) -> None:
    """Move what was merged into a locked cell to its own cell: it may be the next answer."""
    parted = []
    for cell in nb.cells:
        original = owned.get(grade_id(cell) or "")
        before = after = ""
        if original and cell.cell_type == original.cell_type and not _is_students(original):
            own = original.source.strip()
            before, found, after = cell.source.partition(own) if own else ("", "", cell.source)
            before = before if found else ""
        parted += [*_parted(cell, before), cell, *_parted(cell, after)]
    nb.cells = parted


def _parted(cell: NotebookNode, text: str) -> list[NotebookNode]:
    new = {**cell, "metadata": {}, "source": text}
    return [nbformat.from_dict(new)] if text.strip() else []


def _forget_claims(record: Record, owned: set[str]) -> None:
    """Clear cell names that are not the lesson's or occur twice."""
    seen: set[str] = set()
    for cell in reversed(record.nb.cells):
        if not (name := grade_id(cell)):
            cell.metadata.pop("nbgrader", None)
        elif name not in owned or name in seen:
            if name in seen:
                record.note(name, "the cell is there twice; the last one is used")
            del cell.metadata["nbgrader"]
        else:
            seen.add(name)


def _is_students(original: NotebookNode) -> bool:
    return bool(original.metadata["nbgrader"].get("solution"))


def _restore_cell(record: Record, cell: NotebookNode, name: str, original: NotebookNode) -> None:
    if cell.cell_type != original.cell_type:
        record.note(
            name,
            f"the cell had become {cell.cell_type}; it is treated as {original.cell_type}",
        )
        source = cell.source
        cell.clear()
        cell.update(nbformat.from_dict(original))
        cell.source = source
    handed_out = cell.metadata["nbgrader"].get("checksum")
    cell.metadata = nbformat.from_dict(original.metadata)
    if not _is_students(original) and cell.source != original.source:
        from nbgrader.utils import compute_checksum  # slow to import, and seldom needed

        if handed_out != compute_checksum(cell):  # else the lesson was changed, not the cell
            record.note(name, f"the cell was changed; {ORIGINAL}")
        cell.source = original.source


def _join_copies(nb: NotebookNode, written: dict[str, NotebookNode]) -> None:
    """Join cells that have the name of the same written answer; the last one holds the text."""
    there = _by_name(nb)
    for name, original in written.items():
        copies = there.get(name, [])
        if len(copies) > 1:
            _join([copies[-1], *copies[:-1]], copies, original)
            earlier = {id(cell) for cell in copies[:-1]}
            nb.cells = [cell for cell in nb.cells if id(cell) not in earlier]


def _join_beside(
    nb: NotebookNode,
    at: dict[str, NotebookNode],
    written: dict[str, NotebookNode],
    handed_out: set[str],
) -> None:
    """Move the student's own text cells around a written answer into its cell.

    These are the cells from the lesson's cell before it to the lesson's next cell. Code stays where
    it is, because later answers may need it; where it is no program, its text is copied.
    """

    def is_students(cell: NotebookNode) -> bool:
        if "nbgrader" in cell.metadata or cell.source.strip() in handed_out:
            return False
        # what an earlier build handed out has the id of its text
        return str(cell.get("id", "")).partition("-")[0] != id_of_text(cell)

    for name, original in written.items():
        place = next(n for n, cell in enumerate(nb.cells) if cell is at[name])
        start, end = place, place + 1
        while start > 0 and is_students(nb.cells[start - 1]):
            start -= 1
        while end < len(nb.cells) and is_students(nb.cells[end]):
            end += 1
        answer, around = nb.cells[place], nb.cells[start:end]
        beside = [cell for cell in around if cell is not answer]
        read = {id(cell) for cell in _join([answer, *beside], around, original)}
        nb.cells[start:end] = [
            cell
            for cell in around
            if cell is answer or cell.cell_type == "code" or id(cell) not in read
        ]


def _join(
    parts: list[NotebookNode], in_order: list[NotebookNode], original: NotebookNode
) -> list[NotebookNode]:
    """Put the text of all parts into the first one, as far as there is room; return those read.

    A part that says nothing, or what was handed out, does not count. The first part stays as it is
    if no other one says anything.
    """
    says = {id(cell): _text(cell) for cell in parts}
    texts: dict[int, str] = {}
    room = LIMITS.text_cell_chars
    for part, text in says.items():
        if text.strip() and text.strip() != original.source.strip() and len(text) <= room:
            texts[part] = text
            room -= len(text)
    left = any(len(says[id(cell)]) > room and id(cell) not in texts for cell in parts[1:])
    if texts.keys() - {id(parts[0])}:
        found = dict.fromkeys(texts[id(cell)] for cell in in_order if id(cell) in texts)
        parts[0].source = "\n\n".join([*found, *([MORE] if left else [])])
    return [cell for cell in parts if id(cell) in texts]


def _text(cell: NotebookNode) -> str:
    """Return what a cell says to a reader: nothing if it is a program."""
    if cell.cell_type != "code":
        return str(cell.source).strip("\n")
    return "" if _is_program(cell.source) else indent(str(cell.source).strip("\n"), "    ")


def _is_program(source: str) -> bool:
    """Return whether code does something; comments and strings alone are words.

    What is too long for an answer is not read: for `import a.a.a…` Python's memory grows
    quadratically.
    """
    if len(source) > LIMITS.text_cell_chars:
        return True
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)) for line in body
    )
