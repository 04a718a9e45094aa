"""Make Validate show one table, where nbgrader would list each cell that failed."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

FIRST = "from autograde.notebook import validated; validated.begin()"
LAST = """\
# Every exercise of this lesson, on its practice inputs
from autograde.notebook import validated; validated.say()"""


def ask_for_table(notebook: NotebookNode) -> None:
    """Add a first cell that starts to collect results, and a last one that fails with the table.

    nbgrader calls this before it validates a notebook of any course. The added cells are not
    saved.
    """
    if any("autograde.notebook" in cell.source for cell in notebook.cells):
        about = {"grade": True, "solution": False, "locked": False, "points": 1, "grade_id": "all"}
        last = new_code_cell(LAST, metadata={"nbgrader": about})
        notebook.cells = [new_code_cell(FIRST), *notebook.cells, last]
