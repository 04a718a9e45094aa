"""Keep and find the versions of a lesson that this course has built.

nbgrader writes a checksum into each rubric cell when a lesson is built. Each build is kept under
`.autograde/released/LESSON/DIGEST`, a digest of those checksums. It is a small course with all that
grading needs: curriculum, text, tolerances, built notebook, practice data. If two builds have the
same rubrics, the later one is kept. Their order is that of the times in BUILT_FILE.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from autograde.course.built import source_changed
from autograde.course.cells import named_cells
from autograde.course.data_files import readable_files
from autograde.course.lesson_files import parse_text, read_built, read_measured
from autograde.course.lessons import CURRICULUM, CourseError, Lesson, lessons, state_folder
from autograde.files import write_folder
from autograde.student_text import named
from autograde.values.text import digest

if TYPE_CHECKING:  # slow to import
    from nbformat import NotebookNode

WAYS_FILE = "other_ways.json"
"""Right answers in other styles, kept with a version; students who have solved an exercise see them
on their feedback page."""
BUILT_FILE = "built.txt"
"""When a version was kept; 1.0 wrote none. The time of a file would be lost where it is copied."""
ELSEWHERE = (
    "It can be graded in a course that has built that version; "
    "the manual says how, in grading.md (autograde --help says where it is)."
)


@dataclass(frozen=True)
class Version:
    """A lesson as it was built once, as plain data that can be sent to another machine.

    `practice` may be empty: then no misconception is recognised. `text` is empty in a student's
    copy, which has no reference. `ways` are those of WAYS_FILE.
    `files` are what lies beside the lesson today, for submissions of all versions.
    """

    lesson: Lesson
    digest: str
    text: bytes = field(compare=False, repr=False)
    tolerances: bytes = field(compare=False, repr=False)
    released: bytes = field(compare=False, repr=False)
    practice: bytes = field(compare=False, repr=False)
    ways: bytes = field(compare=False, repr=False, default=b"")
    files: tuple[tuple[str, bytes], ...] = field(compare=False, repr=False, default=())
    kept: bool = False


def versions(lesson: Lesson) -> tuple[Version, ...]:
    """Return the version that is built now, then the earlier ones, the one built last first.

    Points and withdrawn lines are the curriculum's in each of them.

    Raises:
        CourseError: the lesson is not built here, or no version has a line that is withdrawn.
    """
    built = read_built(lesson.released_notebook)
    home = _kept(lesson) / _number(built)
    files = readable_files(lesson)
    found = [_read(lesson, home, files)]
    kept = _kept(lesson).glob(f"[!.]*/{CURRICULUM}")
    for path in sorted(kept, key=_when_built, reverse=True):
        if path.parent.parent != home:
            earlier = lessons(path.parent.parent)[lesson.name].as_today(lesson)
            found.append(_read(earlier, earlier.root, files, kept=True))
    _require_lines(lesson, found)
    return tuple(found)


def _require_lines(lesson: Lesson, found: list[Version]) -> None:
    """Raises CourseError when no version has a line that is withdrawn."""
    measured = [read_measured(version.lesson) for version in found]
    for exercise in lesson.exercises:
        known = {line for each in measured for line in each.get(exercise.name, ())}
        if unknown := [line for line in exercise.withdrawn if line not in known]:
            raise CourseError(
                f"{lesson.root / CURRICULUM}: withdrawn: {exercise.name} has no line "
                f"“{unknown[0]}”; there are: {', '.join(sorted(known))}"
            )


def require_built(lesson: Lesson) -> None:
    """Raises CourseError when a lesson was changed since it was built, or a rubric that was built.

    Otherwise the gradebook would have other maxima, and lines would be judged by what another
    rubric recorded. Answers that somebody tries in the notebook do no harm.
    """
    from nbgrader.utils import compute_checksum

    nb = read_built(lesson.released_notebook)
    changed, cells = source_changed(lesson, nb), named_cells(nb)
    if any(compute_checksum(cells[name]) != checksum for name, checksum in checksums(nb).items()):
        changed = f"a rubric in {lesson.released_notebook} was changed since it was built"
    if changed:
        raise CourseError(f"{changed}. Run: autograde build {lesson.name}")


def keep(lesson: Lesson, nb: "NotebookNode", practice: bytes, ways: bytes) -> None:
    """Keep the version that was just built, whole or not at all."""
    import nbformat

    files = {
        lesson.text: lesson.text.read_bytes(),
        lesson.root / CURRICULUM: (lesson.root / CURRICULUM).read_bytes(),
        lesson.released_notebook: nbformat.writes(nb).encode(),
        lesson.practice_file: practice,
        lesson.tolerance_file: _content(lesson.tolerance_file),
        lesson.root / WAYS_FILE: ways,
        lesson.root / BUILT_FILE: datetime.now(UTC).isoformat().encode(),
    }
    copies = {str(path.relative_to(lesson.root)): content for path, content in files.items()}
    write_folder(_kept(lesson) / _number(nb), copies)


def is_kept(lesson: Lesson, nb: "NotebookNode") -> bool:
    """Return whether what was built is kept here; another build with the same rubrics may be."""
    kept = _kept(lesson) / _number(nb) / lesson.released_notebook.relative_to(lesson.root)
    return kept.is_file() and read_built(kept).metadata == nb.metadata


def _read(
    lesson: Lesson, home: Path, beside: tuple[tuple[str, bytes], ...], *, kept: bool = False
) -> Version:
    """Read a version; its other ways are in the folder in which it is kept."""
    places = {
        "text": lesson.text,
        "tolerances": lesson.tolerance_file,
        "released": lesson.released_notebook,
        "practice": lesson.practice_file,
        "ways": home / WAYS_FILE,
    }
    files = {name: _content(path) for name, path in places.items()}
    facts = {**asdict(lesson), "root": ""}
    facts |= {name: sha256(content).hexdigest() for name, content in files.items()}
    facts["files"] = [(name, sha256(content).hexdigest()) for name, content in beside]
    number = digest(json.dumps(facts, sort_keys=True))
    return Version(lesson, number, kept=kept, files=beside, **files)


@lru_cache(maxsize=16)
def notebook_of(version: Version) -> "NotebookNode":
    """Return the notebook that students got, with the points of today."""
    import nbformat

    nb: NotebookNode = nbformat.v4.reads(version.released.decode())
    cells = named_cells(nb)
    for name, points in version.lesson.graded_cells.items():
        if name in cells and cells[name].metadata["nbgrader"]["points"] != points:
            cells[name].metadata["nbgrader"]["points"] = points
    return nb


@lru_cache(maxsize=8)
def source_of(version: Version) -> "NotebookNode":
    """Return the lesson's text as a notebook, with its answers and marking schemes."""
    return parse_text(version.lesson, version.text.decode("utf-8-sig"))


def checksums(nb: "NotebookNode") -> dict[str, str]:
    """Return nbgrader's checksum of each rubric cell, as it was when the notebook was built.

    It is the digest of the cell's text, its name and its points, and stays when a student edits
    the cell.
    """
    return {
        name: str(checksum)
        for name, cell in named_cells(nb).items()
        if name.startswith("test_") and (checksum := cell.metadata["nbgrader"].get("checksum"))
    }


def rubrics(nb: "NotebookNode") -> dict[str, str]:
    cells = named_cells(nb).items()
    return {name: cell.source for name, cell in cells if name.startswith("test_")}


def other_rubrics(nb: "NotebookNode", released: "NotebookNode") -> list[str]:
    """Name the exercises whose rubric differs between a notebook and a released one."""
    now = checksums(released)
    others = {name for name, checksum in checksums(nb).items() if now.get(name) != checksum}
    return sorted(name.removeprefix("test_") for name in others)


def version_of(nb: "NotebookNode", among: tuple[Version, ...]) -> Version:
    """Find the version that a submission was made from, by the checksums in it.

    Raises:
        CourseError: there is none, or it has other exercises than the gradebook.
    """
    now, found = among[0], _made_from(nb, among)
    if found is None and not checksums(nb).keys() & checksums(notebook_of(now)).keys():
        exercises = named(name.removeprefix("test_") for name in checksums(nb))
        raise CourseError(f"not the notebook of {now.lesson.name}: its exercises are {exercises}")
    if found is None:
        raise CourseError(
            f"made from another version of {now.lesson.name}: since it was handed out, the rubric "
            f"of {named(other_rubrics(nb, notebook_of(now)))} was changed. {ELSEWHERE}"
        )
    if changed := sorted(found.lesson.worth.keys() ^ now.lesson.worth.keys()):
        raise CourseError(
            f"made from another version of {now.lesson.name}: since it was handed out, exercises "
            f"were added or left out ({named(changed)}). {ELSEWHERE}"
        )
    return found


def _made_from(nb: "NotebookNode", among: tuple[Version, ...]) -> Version | None:
    """Return the newest version with the rubrics that a submission was made from.

    A checksum tells also where a student has changed a rubric; the text tells where only its
    points were others.
    """
    mine, texts = checksums(nb), rubrics(nb)
    known = {name for version in among for name in checksums(notebook_of(version))}
    own, there = mine.keys() & known, {cell.source for cell in nb.cells}

    def fits(version: Version) -> bool:
        sums, right = checksums(notebook_of(version)), rubrics(notebook_of(version))
        return all(sums.get(n) == mine[n] or right.get(n) == texts[n] for n in own)

    found = next(filter(fits, among), None) if own else None
    if not mine:  # its cells have lost their names, but not their text
        found = max(among, key=lambda v: len(there & {c.source for c in notebook_of(v).cells}))
    if found is None:
        return None
    return next(each for each in among if rubrics(notebook_of(each)) == rubrics(notebook_of(found)))


def _when_built(curriculum: Path) -> tuple[bytes, float, Path]:
    """Return what kept versions are sorted by; one of 1.0 is older than all that have a time."""
    built = _content(curriculum.parent.parent / BUILT_FILE)
    return built, curriculum.stat().st_mtime, curriculum


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _number(nb: "NotebookNode") -> str:
    return digest(json.dumps(checksums(nb), sort_keys=True))[:16]


def _kept(lesson: Lesson) -> Path:
    return state_folder(lesson.root) / "released" / lesson.name
