"""The marks in an author's cells: a solution, a marking scheme, code given to be repaired.

Code given to be repaired follows a solution as comments. Students get it in place of a stub.
"""

from copy import deepcopy

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import ClearMarkScheme, ClearSolutions

from autograde.course.lessons import CourseError

BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
SCHEME_BEGIN = "BEGIN MARK SCHEME"
GIVEN, END_GIVEN = "### BEGIN GIVEN", "### END GIVEN"
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"


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


def without_solution(source: str) -> str:
    """Return a code cell's text as students get it."""
    cells = [new_code_cell(source, metadata={"nbgrader": {"solution": True}})]
    return str(students_version(new_notebook(cells=cells)).cells[0].source)


def students_version(nb: NotebookNode) -> NotebookNode:
    """Return a lesson as students get it, as far as its text goes: by nbgrader's own steps.

    Raises:
        CourseError: the marks do not fit together.
    """
    student = deepcopy(nb)
    for step in (ClearSolutions(), ClearMarkScheme()):
        step.enforce_metadata = False  # a cell's type follows from its name
        try:
            student, _ = step.preprocess(student, {})
        except RuntimeError as error:
            raise CourseError(f"in a cell with an answer or a marking scheme: {error}") from error
    for cell in student.cells:
        cell.source = give(cell.source)
    return student


def give(source: str) -> str:
    """Return a student's cell with given code in place of the stub above it."""
    if GIVEN + "\n" not in source:
        return source
    before, _, after = _around_given(source)
    if before.rstrip().endswith(STUB):  # blank lines may stand between
        before = before.rstrip().removesuffix(STUB)
    return before + "\n".join(given_lines(source)) + after


def given_lines(source: str) -> list[str]:
    """Return the lines of given code in a cell, without their comment signs."""
    _, block, _ = _around_given(source)
    return [line.removeprefix("#").removeprefix(" ") for line in block.splitlines()]


def _around_given(source: str) -> tuple[str, str, str]:
    before, _, rest = source.partition(GIVEN + "\n")
    block, _, after = rest.partition(END_GIVEN)
    return before, block, after
