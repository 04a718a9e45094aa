"""Read what was handed in: its files, and which of them is the notebook."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from nbformat import NotebookNode

from autograde.course.data_files import data_files
from autograde.files import File, visible_files
from autograde.grading.limits import LIMITS, Limits
from autograde.grading.reading.choice import choose, is_notebook
from autograde.grading.submission import TIMESTAMP, Place, Problem, Submission, too_large
from autograde.words import named


def read_submission(
    place: Place,
    ignore: list[str],
    handed_out: Sequence[NotebookNode] = (),
    limits: Limits = LIMITS,
) -> Submission:
    """Read a submission's regular files, then lay the lesson's data files over them.

    Nothing moves on disk. The notebook that is chosen gets the right name; others are left out.

    Args:
        ignore: nbgrader's `CourseDirectory.ignore`, patterns for data files to leave out.
        handed_out: the notebook that students got, in each version.

    Raises:
        OSError: a file cannot be read.
    """
    student, lesson = place
    folder = lesson.root / "submitted" / student / lesson.name
    linked = folder.is_symlink() or folder.parent.is_symlink()  # perhaps to another student's work
    own = data_files(lesson, ignore)
    right = f"{lesson.notebook}.ipynb"
    taken = [Path(name) for name in (right, f"{lesson.notebook}.html", *own)]
    found = [] if linked else list(visible_files(folder))
    clear = [file for file in found if not _in_the_way(file[1], taken)]
    files, left_out = read_files(clear, limits)
    more = len(found) - len(files) - len(left_out)
    notebooks = {name: content for name, content in files.items() if is_notebook(name, content)}
    chosen = choose(notebooks, right, handed_out) if notebooks else None
    files = {name: content for name, content in files.items() if name not in notebooks}
    problem, remarks = None, []
    if chosen is None:
        problem = _no_notebook(list(notebooks), list(files), left_out, right)
        files[right] = problem.words.encode()
    else:
        name, said = chosen
        files[right] = notebooks[name]
        if said:
            remarks.append(said)
        elif name != right:
            remarks.append(f"The file was called {named([name])}; it was graded as {right}.")
    if problem is None and left_out:
        remarks.append(f"Too large, so left out: {named(left_out)}.")
    if more:
        remarks.append(f"{len(found)} files were handed in; {more} were left out.")
    files |= {name: path.read_bytes() for name, path in own.items()}
    return Submission(place, files, " ".join(remarks), problem)


def _in_the_way(name: str, taken: list[Path]) -> bool:
    """Return whether a file clashes with a taken name: one of them would have to be a folder."""
    path = Path(name)
    return any(path in other.parents or other in path.parents for other in taken)


def _notebooks_first(file: File) -> tuple[bool, int, str]:
    """Return the place of a file in the order of reading: notebooks, those near the top first."""
    name = file[1]
    return not name.lower().endswith(".ipynb"), name.count("/"), name


def read_files(
    paths: Iterable[File], limits: Limits = LIMITS
) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the contents of files by name, and the sizes of those that were left out.

    A file is left out if it is too large together with those read before. Notebooks come first.
    Files beyond the allowed number are not looked at.
    """
    files: dict[str, bytes] = {}
    left_out: dict[str, int] = {}
    room = limits.together_bytes
    for path, name in sorted(paths, key=_notebooks_first)[: limits.files]:
        size = path.stat().st_size
        if size > room:
            left_out[name] = size
        else:
            files[name] = path.read_bytes()
            room -= size
    return files, left_out


def _no_notebook(
    notebooks: list[str], others: list[str], left_out: dict[str, int], right: str
) -> Problem:
    """Return the reason that there is no notebook to grade."""
    if large := [size for name, size in left_out.items() if is_notebook(name, b"")]:
        return too_large(large[-1])
    others = [name for name in others if name != TIMESTAMP]
    found = named(notebooks) or f"no notebook{', only ' if others else ''}{named(others)}"
    return Problem(
        "no notebook of that name was handed in", f"{right} was not handed in (found: {found})."
    )
