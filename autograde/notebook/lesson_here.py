"""The lesson of this kernel: its folder, its data, its notebook, and how far its exercises are."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from IPython.core.getipython import get_ipython

from autograde.installed import installed
from autograde.notebook import judgements
from autograde.notebook.saved_notebook import Cells, binds, cells_in
from autograde.progress import PRACTICE_FILE, Standing, digest_of_cell, last_attempt, of_course
from autograde.rubric import runs, session
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.lesson_names import given_in
from autograde.rubric.names import names_of
from autograde.values.base import BadData


def folder() -> Path:
    """Return the notebook's folder: where its kernel started, wherever a cell has gone since.

    A kernel that started elsewhere, as in some hosted services, may have gone there.
    """
    started = Path(getattr(get_ipython(), "starting_dir", ".")).absolute()
    return started if (started / PRACTICE_FILE).is_file() else Path.cwd()


def lesson_folder(exercise: str | None = None) -> Path:
    """Return the folder of the lesson's files: the notebook's, or that of an installed lesson.

    Where the notebook stands alone, as in a hosted service, the installed lesson is known by its
    exercises, this one or the one whose rubric ran last, and by its set-up cell.
    """
    here = folder()
    if (here / PRACTICE_FILE).is_file():
        return here
    last = next(reversed(judgements.last), None)
    set_up = given_in(runs.namespace()).source

    def fits(lesson: Path) -> tuple[bool, bool, bool]:
        its, cells = keys(lesson / PRACTICE_FILE), cells_in(lesson)
        alike = bool(set_up) and any(cell["source"] == set_up for cell in cells)
        return exercise in its, last in its, alike

    files = (file for each in installed() for file in each.lessons.glob(f"*/{PRACTICE_FILE}"))
    lessons = [lesson for lesson in sorted(file.parent for file in files) if any(fits(lesson))]
    return max(lessons, key=fits, default=here)


@cache
def keys(path: Path) -> dict[str, Key]:
    """Return the keys in a file of practice data, by exercise.

    Raises:
        CellEnded: the file cannot be read; the message says what to do.
    """
    try:
        return unpack_keys(path.read_bytes())
    except (BadData, OSError) as error:
        raise session.CellEnded(
            f"{path} cannot be read ({error}). Run autograde update in a terminal, or fetch the "
            "lesson again."
        ) from error


def lesson_keys(exercise: str | None = None) -> dict[str, Key]:
    """Return the practice keys of this notebook's lesson, which may have the exercise.

    Raises:
        CellEnded: there are none that can be read; the message says where they belong.
    """
    path = lesson_folder(exercise) / PRACTICE_FILE
    if path.is_file():
        return keys(path)
    raise session.CellEnded(
        f"{path} is missing. It comes with the lesson and belongs in the notebook's folder. "
        "Fetch the lesson again, or install the package that your teacher gives you."
    )


def lesson_is_known() -> bool:
    """Return whether this kernel can tell which lesson it is in."""
    return (lesson_folder() / PRACTICE_FILE).is_file()


def lesson_cells() -> Cells:
    """Return the cells of this kernel's notebook as it was saved."""
    return cells_in(folder())


def unsolved() -> set[str]:
    """Return the exercises of this lesson that are not known to be right as they are now."""
    try:
        return {name for name, key in lesson_keys().items() if not _is_right(name, key)}
    except session.CellEnded:  # the lesson is not known, which a rubric says; here is less to say
        return set()


def _is_right(exercise: str, key: Key) -> bool:
    """Return whether a rubric found an answer right, as it is now.

    Where the rubric has not run in this kernel, what it said in an earlier one counts.
    """
    if judgement := judgements.last.get(exercise):
        return judgement.verdict.passed and judgements.is_as_judged(exercise)
    run = runs.last_run_of(exercise)
    if run is None or (last := last_attempt(folder(), exercise)) is None:
        return False
    return last.points >= key.points and last.answer == digest_of_cell(run.source)


def unfinished(exercise: str) -> list[str]:
    """Return the earlier exercises not yet right that an exercise's answer or rubric calls."""
    wrong = {name for name, each in judgements.last.items() if not each.verdict.passed}
    blamed = wrong & runs.called_by(exercise)
    return [name for name in lesson_keys(exercise)[exercise].needs if name in blamed]


def has_not_run(name: str) -> bool:
    """Return whether a name is not here because a cell of the lesson has not run to its end.

    One that waits for an exercise is another matter.
    """
    run = runs.last_run_of(name)
    ended = run is not None and (not run.error or bool(run.waits_for))
    return not ended and name not in runs.namespace() and binds(lesson_cells(), name)


def not_run(exercise: str) -> str:
    """Return the first name that an answer needs and a cell that has not run here binds, or ""."""
    run = runs.last_run_of(exercise)
    source = run.source if run else ""
    return min(filter(has_not_run, names_of(source).needed), key=source.find, default="")


def standing_here() -> tuple[Standing, list[Standing]]:
    """Return the standing in this lesson, with what this kernel's rubrics earned, and the course's.

    Outside a working copy the lesson has no title, and the course no lessons.
    """
    place = folder()
    course = of_course(place.parent)
    unknown = Standing(place.name, {}, {})
    here = next((lesson for lesson in course if lesson.lesson == place.name), unknown)
    worth = {name: key.points for name, key in lesson_keys().items()}
    verdicts = {name: each.verdict for name, each in judgements.last.items()}
    now = {name: each.points for name, each in verdicts.items() if judgements.counts(each)}
    return replace(here, worth=worth, points={**here.points, **now}), course
