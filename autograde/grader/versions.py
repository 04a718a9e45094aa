"""Which version of a lesson a submission was made from: its rubric cells carry their checksums."""

from nbformat import NotebookNode

from autograde.course import CourseError, Lesson, grade_id


def rules(lesson: Lesson, nb: NotebookNode) -> dict[str, str]:
    """nbgrader's checksum of each rubric cell, as it was when the notebook was built.

    nbgrader writes it into the cell's metadata. It is the digest of the cell's text, its name
    and its points, and stays when a student edits the cell.
    """
    kinds = {
        name: cell.metadata["nbgrader"]
        for cell in nb.cells
        if (name := grade_id(cell)) and name.startswith("test_")
    }
    return {name: str(kind["checksum"]) for name, kind in kinds.items() if kind.get("checksum")}


def require_same_rules(lesson: Lesson, submitted: NotebookNode, released: NotebookNode) -> None:
    """Refuse to grade work done under one rubric by another one.

    Raises:
        CourseError: rubric cells were changed after the student got the lesson; it names them.
    """
    now, then = rules(lesson, released), rules(lesson, submitted)
    others = sorted(name for name, checksum in then.items() if now.get(name) != checksum)
    if others:
        raise CourseError(
            f"made from another version of {lesson.name}: since it was handed out, the rubric of "
            f"{', '.join(name.removeprefix('test_') for name in others)} was changed. Check out "
            f"the version that students got, run autograde build {lesson.name}, and grade again."
        )
