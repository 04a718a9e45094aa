"""Read what was handed in: its files, and which of them is the notebook."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from nbformat import NotebookNode

from autograde.course.cells import exercise_of, named_cells
from autograde.course.data_files import data_files
from autograde.course.versions import checksums
from autograde.files import File, visible_files
from autograde.grading.limits import LIMITS
from autograde.grading.reading.parse import WANTED, parse, too_large
from autograde.grading.submission import TIMESTAMP, Place, Problem, Submission
from autograde.student_text import named, quoted

LAST_NUMBER = re.compile(r"(\d+)\D*$")
REASONS = ("it is from this lesson", "it has the most answers", "it has something of the student's")
LATER, BY_NAME = "the number in its name is the highest", "it has the name of the lesson's"


def read_submission(
    place: Place,
    ignore: list[str],
    handed_out: Sequence[NotebookNode] = (),
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
    files, left_out = read_files(clear)
    more = len(found) - len(files) - len(left_out)
    notebooks = {name: content for name, content in files.items() if is_notebook(name, content)}
    files = {name: content for name, content in files.items() if name not in notebooks}
    problem, remarks = None, []
    if picked := _pick(notebooks, right, handed_out):
        files[right], said = picked
        remarks += [said, f"Too large, so left out: {named(left_out)}." if left_out else ""]
    else:
        problem = _no_notebook(list(notebooks), list(files), left_out, right)
        files[right] = problem.words.encode()
    if more:
        remarks.append(f"{len(found)} files were handed in; {more} were left out.")
    files |= {name: path.read_bytes() for name, path in own.items()}
    return Submission(place, files, " ".join(filter(None, remarks)), problem)


def _pick(
    notebooks: Mapping[str, bytes], right: str, handed_out: Sequence[NotebookNode]
) -> tuple[bytes, str] | None:
    """Return the notebook that is graded, and a remark on the choice; None if it cannot be told."""
    chosen = choose(notebooks, right, handed_out) if notebooks else None
    if chosen is None:
        return None
    name, said = chosen
    if not said and name != right:
        said = f"The file was called {named([name])}; it was graded as {right}."
    return notebooks[name], said


def _in_the_way(name: str, taken: list[Path]) -> bool:
    """Return whether a file clashes with a taken name: one of them would have to be a folder."""
    path = Path(name)
    return any(path in other.parents or other in path.parents for other in taken)


def _notebooks_first(file: File) -> tuple[bool, int, str]:
    """Return the place of a file in the order of reading: notebooks, those near the top first."""
    name = file[1]
    return not name.lower().endswith(".ipynb"), name.count("/"), name


def read_files(paths: Iterable[File]) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the contents of files by name, and the sizes of those that were left out.

    A file is left out if it is too large together with those read before. Notebooks come first.
    Files beyond the allowed number are not looked at.
    """
    files: dict[str, bytes] = {}
    left_out: dict[str, int] = {}
    room = LIMITS.together_bytes
    for path, name in sorted(paths, key=_notebooks_first)[: LIMITS.files]:
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
        "no notebook of that name was handed in",
        f"{right} was not handed in (found: {found}). {WANTED}",
    )


def is_notebook(name: str, content: bytes) -> bool:
    """Return whether a file is a notebook: it says so itself, or its name does."""
    text = content.replace(b"\0", b"") if b"\0" in content[:4] else content  # UTF-16
    inside = text.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"{") and all(
        word in text for word in (b'"nbformat"', b'"cells"')
    )
    return inside or name.lower().endswith(".ipynb")


def choose(
    files: Mapping[str, bytes], right: str, handed_out: Sequence[NotebookNode]
) -> tuple[str, str] | None:
    """Choose among the notebooks of a submission; return a name, and a sentence on the others.

    The sentence is empty if there are no others. Return None if it cannot be told.

    A notebook made from this lesson comes before others, then the one with the most answers, then
    the one with the highest number, as in "mask-Copy2.ipynb" or "mask (1).ipynb".

    Args:
        files: notebooks by name.
        right: the name that the lesson's notebook has.
        handed_out: the notebook that students got, in each version.
    """
    if len(set(files.values())) == 1:
        return (right if right in files else min(files)), ""
    facts = {name: _facts(content, handed_out) for name, content in files.items()}
    if not any(kin for kin, *_ in facts.values()):
        return (right, _said(right, files, BY_NAME)) if right in files else None

    def order(name: str) -> tuple[int, ...]:
        return *facts[name], _number(name, right), int(name == right), -name.count("/")

    *_, second, best = sorted(sorted(files), key=order)
    pairs = zip(order(best), order(second), (*REASONS, LATER), strict=False)
    why = next((reason for one, other, reason in pairs if one != other), BY_NAME)
    return best, _said(best, files, why)


def _facts(content: bytes, handed_out: Iterable[NotebookNode]) -> tuple[int, int, int]:
    """Return how sure a notebook is from this lesson, its answers, whether it has anything new."""
    record = parse(content)
    if record.problem:
        return 0, 0, 0
    nb, found = record.nb, (0, 0, 0)
    mine, cells = checksums(nb), named_cells(nb)
    texts = {cell.source.strip() for cell in nb.cells} - {""}
    for original in handed_out:
        theirs, given = checksums(original), named_cells(original)
        lost = any(exercise_of(c) and c.source.strip() in texts for c in original.cells)
        kin = 2 if mine.items() & theirs.items() else int(bool(mine.keys() & theirs.keys()) or lost)
        new = texts - {cell.source.strip() for cell in original.cells}
        answers = sum(
            name in cells and cells[name].source.strip() in new
            for name, cell in given.items()
            if cell.metadata["nbgrader"].get("solution")
        )
        found = max(found, (kin, answers if cells else len(new), int(bool(new))))
    return found if found[0] else (0, 0, 0)


def _number(name: str, right: str) -> int:
    """Return the last number that was added to a notebook's name."""
    stem = PurePosixPath(name).name.partition(".")[0]
    found = LAST_NUMBER.search(stem.removeprefix(right.removesuffix(".ipynb")))
    return int(found[1][:9]) if found else 0


def _said(best: str, files: Mapping[str, bytes], why: str) -> str:
    others = [name for name in sorted(files) if files[name] != files[best]]
    return f"{quoted(best)} was graded, because {why}; not graded: {named(others)}."
