"""Keep and find the versions of a lesson that this course has built.

nbgrader writes a checksum into each rubric cell when a lesson is built. Each build is kept under
`.autograde/released/LESSON/DIGEST`, a digest of those checksums. It is a small course with all that
grading needs: curriculum, text, tolerances, built notebook, practice data. If two builds have the
same rubrics, the later one is kept.
"""

import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from autograde.course import (
    CURRICULUM,
    CourseError,
    Lesson,
    exercise_of,
    lessons,
    named_cells,
    parse_text,
)
from autograde.files import write_folder
from autograde.words import named

if TYPE_CHECKING:  # slow to import
    from nbformat import NotebookNode

ELSEWHERE = (
    "Grade it with `autograde grade`, in a course that has built that version; docs/grading.md "
    "says how."
)


@dataclass(frozen=True)
class Version:
    """A lesson as it was built once, as plain data that can be sent to another machine.

    `practice` may be empty: then no misconception is recognised.
    """

    lesson: Lesson
    digest: str
    text: bytes = field(compare=False, repr=False)
    tolerances: bytes = field(compare=False, repr=False)
    released: bytes = field(compare=False, repr=False)
    practice: bytes = field(compare=False, repr=False)
    kept: bool = False


def versions(lesson: Lesson) -> tuple[Version, ...]:
    """Return the version that is built now, then the earlier ones that are kept.

    Raises:
        CourseError: the lesson is not built here, or its rubric was changed since.
    """
    now = _read(lesson)
    _require_built(now)
    found = [now]
    for path in sorted(_kept(lesson).glob(f"[!.]*/{CURRICULUM}")):
        home = path.parent.parent
        if home.name != _number(notebook(now)):
            found.append(_read(lessons(home)[lesson.name], kept=True))
    return tuple(found)


def keep(lesson: Lesson, nb: "NotebookNode", practice: bytes) -> None:
    """Keep the version that was just built, whole or not at all."""
    import nbformat

    files = {
        lesson.text: lesson.text.read_bytes(),
        lesson.root / CURRICULUM: (lesson.root / CURRICULUM).read_bytes(),
        lesson.released_notebook: nbformat.writes(nb).encode(),
        lesson.practice_file: practice,
        lesson.tolerance_file: _content(lesson.tolerance_file),
    }
    copies = {str(path.relative_to(lesson.root)): content for path, content in files.items()}
    write_folder(_kept(lesson) / _number(nb), copies)


def _require_built(now: Version) -> None:
    """Raises CourseError when a rubric of the lesson's text differs from the one that was built.

    Otherwise its lines would be judged by what another rubric recorded.
    """
    from nbgrader.utils import compute_checksum  # students do not need nbgrader

    lesson, built = now.lesson, rules(notebook(now))
    kept = _kept(lesson) / _number(notebook(now)) / lesson.text.relative_to(lesson.root)
    if kept.is_file() and kept.read_bytes() == now.text:
        return  # seen without parsing the text
    cells = named_cells(parse_text(now.text.decode()))
    written = {n: compute_checksum(cell) for n, cell in cells.items() if n.startswith("test_")}
    if changed := sorted({name for name, _ in written.items() ^ built.items()}):
        raise CourseError(
            f"{lesson.name} was not built since the rubric of "
            f"{named(name.removeprefix('test_') for name in changed)} was changed in "
            f"{lesson.text.name}. Run: autograde build {lesson.name}"
        )


def _read(lesson: Lesson, *, kept: bool = False) -> Version:
    if not lesson.released_notebook.is_file():
        raise CourseError(f"{lesson.name} is not built here. Run: autograde build {lesson.name}")
    places = {
        "text": lesson.text,
        "tolerances": lesson.tolerance_file,
        "released": lesson.released_notebook,
        "practice": lesson.practice_file,
    }
    files = {name: _content(path) for name, path in places.items()}
    facts = {**asdict(lesson), "root": ""}
    digest = sha256(json.dumps(facts, sort_keys=True).encode())
    for content in files.values():
        digest.update(sha256(content).digest())
    return Version(lesson, digest.hexdigest(), kept=kept, **files)


@lru_cache(maxsize=16)
def notebook(version: Version) -> "NotebookNode":
    """Return the notebook that students got."""
    import nbformat

    nb: NotebookNode = nbformat.v4.reads(version.released.decode())
    return nb


def rules(nb: "NotebookNode") -> dict[str, str]:
    """Return nbgrader's checksum of each rubric cell, as it was when the notebook was built.

    It is the digest of the cell's text, its name and its points, and stays when a student edits
    the cell.
    """
    kinds = {name: cell.metadata["nbgrader"] for name, cell in named_cells(nb).items()}
    sums = {name: kind.get("checksum") for name, kind in kinds.items() if name.startswith("test_")}
    return {name: str(checksum) for name, checksum in sums.items() if checksum}


def other_rubrics(nb: "NotebookNode", released: "NotebookNode") -> list[str]:
    """Name the exercises whose rubric differs between a notebook and a released one."""
    now = rules(released)
    others = {name for name, checksum in rules(nb).items() if now.get(name) != checksum}
    return sorted(name.removeprefix("test_") for name in others)


def version_of(nb: "NotebookNode", among: tuple[Version, ...]) -> Version:
    """Find the version that a submission was made from, by the checksums in it.

    Raises:
        CourseError: there is none, or its exercises have other names or points than the
            gradebook's.
    """
    now, found = among[0], _made_from(nb, among)
    if found is None and not rules(nb).keys() & rules(notebook(now)).keys():
        exercises = named(name.removeprefix("test_") for name in rules(nb))
        raise CourseError(f"not the notebook of {now.lesson.name}: its exercises are {exercises}")
    if found is None:
        raise CourseError(
            f"made from another version of {now.lesson.name}: since it was handed out, the rubric "
            f"of {named(other_rubrics(nb, notebook(now)))} was changed. {ELSEWHERE}"
        )
    if changed := sorted(found.lesson.worth.items() ^ now.lesson.worth.items()):
        names = ", ".join(dict.fromkeys(name for name, _ in changed))
        raise CourseError(
            f"made from an earlier version of {now.lesson.name}, in which other points were given "
            f"for {names}. {ELSEWHERE}"
        )
    return found


def _made_from(nb: "NotebookNode", among: tuple[Version, ...]) -> Version | None:
    mine = rules(nb)
    if not mine:  # its cells have lost their names, but not their text
        texts = {cell.source for cell in nb.cells}
        rubrics = {each: filter(exercise_of, notebook(each).cells) for each in among}
        return max(among, key=lambda each: sum(cell.source in texts for cell in rubrics[each]))
    known = {name for version in among for name in rules(notebook(version))}
    own = {item for item in mine.items() if item[0] in known}
    fitting = (each for each in among if own and own <= rules(notebook(each)).items())
    return next(fitting, None)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _number(nb: "NotebookNode") -> str:
    return sha256(json.dumps(rules(nb), sort_keys=True).encode()).hexdigest()[:16]


def _kept(lesson: Lesson) -> Path:
    return lesson.root / ".autograde" / "released" / lesson.name
