"""The marks in an author's cells: a solution, a marking scheme, code given to be repaired.

Code given to be repaired follows a solution as comments. Students get it in place of a stub.
"""

from copy import deepcopy

from nbformat import NotebookNode

BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
SCHEME_BEGIN, SCHEME_END = "BEGIN MARK SCHEME", "END MARK SCHEME"
GIVEN, END_GIVEN = "### BEGIN GIVEN", "### END GIVEN"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
WRITTEN_STUB = ("YOUR ANSWER HERE",)


def own_answer(source: str) -> str:
    """Return the author's own answer: a cell without marks and without given code."""
    before, _, after = _around_given(source)
    lines = (before + after.removeprefix("\n")).split("\n")
    marks = (f"### {BEGIN}", f"### {END}")
    return "\n".join(line for line in lines if line.strip() not in marks) + "\n"


def code_of(line: str) -> str:
    """Return a line without its indent and its comment."""
    return line.split("  #")[0].strip()


def kept_back(source: str, students: str) -> set[str]:
    """Return the code of an author's cell that is not in the student's version of it."""
    author, student = (set(map(code_of, text.splitlines())) for text in (source, students))
    return author - student


def without_solution(source: str, stub: tuple[str, ...] = STUB) -> str:
    """Return a cell's text without marking schemes, with a stub or given code for each solution."""
    kept, inside = [], False
    for line in source.split("\n"):
        if BEGIN in line:
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + part for part in stub]
            inside = True
        elif SCHEME_BEGIN in line:
            inside = True
        elif END in line or SCHEME_END in line:
            inside = False
        elif not inside:
            kept.append(line)
    return give("\n".join(kept))


def students_version(nb: NotebookNode) -> NotebookNode:
    """Return a lesson as students get it, as far as its text goes."""
    student = deepcopy(nb)
    for cell in student.cells:
        stub = STUB if cell.cell_type == "code" else WRITTEN_STUB
        cell.source = without_solution(cell.source, stub)
    return student


def give(source: str) -> str:
    """Return a student's cell with given code in place of the stub above it."""
    if GIVEN + "\n" not in source:
        return source
    before, _, after = _around_given(source)
    if before.rstrip().endswith(stub := "\n".join(STUB)):  # blank lines may stand between
        before = before.rstrip().removesuffix(stub)
    return before + "\n".join(given_lines(source)) + after


def given_lines(source: str) -> list[str]:
    """Return the lines of given code in a cell, without their comment signs."""
    _, block, _ = _around_given(source)
    return [line.removeprefix("#").removeprefix(" ") for line in block.splitlines()]


def _around_given(source: str) -> tuple[str, str, str]:
    before, _, rest = source.partition(GIVEN + "\n")
    block, _, after = rest.partition(END_GIVEN)
    return before, block, after
