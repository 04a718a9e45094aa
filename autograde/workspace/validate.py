"""Make Validate show one table, where nbgrader would list each cell that failed."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

TABLE = """\
# Every exercise of this lesson, on its practice inputs
from autograde.notebook import practice; practice.say_all()"""


def ask_for_table(notebook: NotebookNode) -> None:
    """Add a last cell that fails with the table; of the rubrics, let only changed ones count.

    nbgrader calls this before it validates a notebook of any course. Nothing of it is saved.
    nbgrader itself names a question without an answer, which the table leaves out.
    """
    from nbgrader.utils import compute_checksum  # only nbgrader's own process needs it

    rubrics = [cell for cell in notebook.cells if "@rubric(" in cell.source]
    if not rubrics:
        return
    for cell in rubrics:
        kind = cell.metadata.get("nbgrader", {})
        if kind.get("grade") and kind.get("checksum") == compute_checksum(cell):
            del cell.metadata["nbgrader"]
    about = {"grade": True, "solution": False, "locked": False, "points": 1, "grade_id": "all"}
    notebook.cells.append(new_code_cell(TABLE, metadata={"nbgrader": about}))
