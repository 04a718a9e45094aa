"""Practice: a rubric cell is judged at once, by the practice data that came with the lesson."""

import os
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from IPython.core.getipython import get_ipython
from IPython.display import display

from autograde.cards import write_notes
from autograde.installed import installed
from autograde.notebook.saved_notebook import Cells, binds, cells_in, still_to_come
from autograde.notebook.tables import in_columns
from autograde.progress import (
    INDEX,
    NOT_RUN,
    PRACTICE_FILE,
    STATE,
    Standing,
    digest_of_cell,
    following,
    how_to_submit,
    note,
    of_course,
    record,
    write_page,
)
from autograde.rubric import runs, session
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.lesson_names import given_in
from autograde.rubric.names import names_of
from autograde.rubric.panel import (
    Help,
    advice,
    panel,
    plain,
    repair_first,
    to_display,
    with_edits_noticed,
)
from autograde.rubric.recording import Recording
from autograde.values.base import BadData, shorten
from autograde.values.text import number, visible

HEADER = ("exercise", "points", "first wrong line")
ASKS = "Your cell calls `input()`. In grading nobody answers, and the cell fails: take it out."
NOT_JUDGED = "not judged; its answer or rubric failed, or is gone"

verdicts: dict[str, Verdict] = {}
"""The last verdict on each exercise in this kernel, the newest last."""
recordings: dict[str, Recording] = {}
"""The recordings that those verdicts judge, by exercise."""
judged: dict[str, str] = {}
"""The cells that those verdicts judge, by exercise."""
unjudged: set[str] = set()
"""The exercise whose rubric ran last, if its answer cell had ended with an error."""


class RubricFailed(session.CellEnded):
    """A rubric line failed; the panel above has said which."""

    shown = True


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
    last = next(reversed(verdicts), None)
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


def answer(recording: Recording) -> None:
    """Show the verdict below the rubric cell.

    The first failing run shows only the symptoms, so that the student can think. A belief is
    named when the next run shows it again, or when the student calls `why`.

    Raises:
        RubricFailed: a line failed; nbgrader's Validate sees the failure by this exception.
    """
    if recording.stopped is not None and recording.stopped.error == "KeyboardInterrupt":
        return
    key = lesson_keys(recording.exercise)[recording.exercise]
    run = runs.last_run_of(recording.exercise)
    verdict = judge(recording, key, trusted=True)
    before = verdicts.pop(recording.exercise, None)
    verdicts[recording.exercise], recordings[recording.exercise] = verdict, recording
    judged[recording.exercise] = run.source if run else ""
    named = before is not None and bool(verdict.beliefs) and before.beliefs == verdict.beliefs
    _remember(verdict, judged[recording.exercise])
    said = _lines_so_far(verdict, before) + advice(verdict, named=named)
    said += _next_steps(verdict)
    if run is not None:
        said.append(f"Judged: your cell as run in [{run.number}].")
        if "input" in names_of(run.source).needed:
            said.append(ASKS)
    helps = [] if verdict.passed else _helps(verdict, key, named=named)
    ask = "" if verdict.passed else _how_to_ask(verdict, named=named)
    display(with_edits_noticed(to_display(verdict, said, helps, ask)), raw=True)
    if not verdict.passed:
        raise RubricFailed(f"{recording.exercise} is not right: {first_wrong(verdict)}")


def require_run(exercise: str) -> None:
    """Show the error that ended the answer cell, if one did; nothing older is judged, nor run.

    Raises:
        RubricFailed: the last run of the answer failed.
    """
    unjudged.clear()
    run = runs.last_run_of(exercise)
    if run is None or not run.error:
        return
    unjudged.add(exercise)
    said = (
        f"The cell of `{exercise}`, run as [{run.number}], ended with an error; nothing is judged:"
    )
    then = "Fix the cell, run it, then run this one again."
    show(f"{exercise}: not judged", [said, f"`{run.error}`", then], "wrong")
    raise RubricFailed(f"{exercise}: not judged, its cell ended with {run.error}")


def _lines_so_far(verdict: Verdict, before: Verdict | None) -> list[str]:
    """Return a sentence on how many lines are right, and on how many were at the run before."""
    right, most = sum(line.passed for line in verdict.lines), len(verdict.lines)
    if verdict.passed or not verdict.called or most == 1:
        return []
    change = right - sum(line.passed for line in before.lines) if before else 0
    than = f", {abs(change)} {'more' if change > 0 else 'fewer'} than before" if change else ""
    return [f"Right so far: {right} of {most} lines{than}."]


def _helps(verdict: Verdict, key: Key, *, named: bool) -> list[Help]:
    """Return what can be asked below a wrong answer: why, the hints one by one, the case."""
    helps = []
    if verdict.beliefs and not named:
        helps.append(Help("Why?", tuple(advice(replace(verdict, note=""), named=True))))
    then: tuple[Help, ...] = ()
    for place, hint in reversed([*enumerate(key.hints, start=1)]):
        then = (Help(f"Hint {place} of {len(key.hints)}", (hint,), then),)
    helps += then
    if (leading := verdict.leading) and leading.failure and leading.failure.call:
        said = (
            f"The call is `{leading.failure.call}`. In a cell of your own, `c = case()` fetches "
            "it: `c.arguments` is what goes in, `c.result` what came back, `c.expected` what was "
            "expected."
        )
        helps.append(Help("Case", (said,)))
    return helps


def show(title: str, said: list[str], state: str = "idle") -> None:
    display(panel(state, title, said), raw=True)


def first_wrong(verdict: Verdict) -> str:
    """Return in one line why an answer is not right, or "" if it is."""
    if not verdict.attempted:
        return "not written yet"
    wrong = [verdict.leading, *(line for line in verdict.lines if not line.passed)]
    said = verdict.note or next((line.name for line in wrong if line), "")
    return visible(shorten(plain(said)))


def say_all() -> None:
    """Raises CellEnded with Validate's table, unless all exercises of the lesson are right.

    nbgrader shows a cell's error, so the table is the text of one.
    """
    table = [HEADER]
    for name, key in lesson_keys().items():
        verdict = verdicts.get(name)
        points = f"{number(verdict.points if verdict else 0)} of {number(key.points)}"
        table.append((name, points, first_wrong(verdict) if verdict else NOT_JUDGED))
    if any(wrong for _, _, wrong in table[1:]):
        raise session.CellEnded("\n".join(in_columns(table)))


def _how_to_ask(verdict: Verdict, *, named: bool) -> str:
    if verdict.beliefs and not named:
        return "Ask `why()` for what may be behind it, `hint()` for a hint."
    return f"Ask `hint()` for {'another' if verdict.beliefs else 'a'} hint."


def _next_steps(verdict: Verdict) -> list[str]:
    if verdict.passed:
        return [_so_far()]
    if name := not_run(verdict.exercise):
        return [NOT_RUN.format(name=name)]
    said = [
        f"Your code uses `{name}`, and your cell run as [{number}] gave that name to something "
        "else. Choose another name there, then restart the kernel and run all cells."
        for name, number in verdict.rebound.items()
    ]
    if verdict.attempted and (earlier := unfinished(verdict.exercise)):
        said.append(repair_first(earlier))
    return said


def _remember(verdict: Verdict, judged: str) -> None:
    """Keep the points of a rubric that has just run, for the next kernel.

    Only a working copy keeps them; elsewhere the notebook stands by itself. Points from a run by
    nbgrader are not kept.
    """
    lesson = folder()
    if not _counts(verdict) or "NBGRADER_EXECUTION" in os.environ:
        return
    if not (lesson.parent / STATE / INDEX).is_file():
        return
    with suppress(OSError):  # a full or read-only disk is no reason to fail the rubric
        note(lesson, verdict.exercise, verdict.points, judged)
        write_notes(lesson.parent)
        write_page(lesson.parent)


def standing_here() -> tuple[Standing, list[Standing]]:
    """Return the standing in this lesson, with what this kernel's rubrics earned, and the course's.

    Outside a working copy the lesson has no title, and the course no lessons.
    """
    place = folder()
    course = of_course(place.parent)
    unknown = Standing(place.name, {}, {})
    here = next((lesson for lesson in course if lesson.lesson == place.name), unknown)
    worth = {name: key.points for name, key in lesson_keys().items()}
    now = {name: each.points for name, each in verdicts.items() if _counts(each)}
    return replace(here, worth=worth, points={**here.points, **now}), course


def _counts(verdict: Verdict) -> bool:
    """Return False where a rubric found no answer, as in a new kernel: what was earned stays."""
    return verdict.called or not verdict.note or not verdict.attempted


def _so_far() -> str:
    here, course = standing_here()
    if here.next:
        return f"This lesson: {here.in_words()}. Next: `{here.next}`."
    said = [f"This lesson: {here.in_words()}."]
    if left := still_to_come(lesson_cells(), here.worth):
        said.append(f"Still to come here: {', '.join(left)}.")
    said.append("At the end save the notebook and press Validate.")
    if here.title:
        said.append(how_to_submit(here.lesson))
        said += [f"Then go on with {lesson.title}." for lesson in following(course, here.lesson)]
    return " ".join(said)


def unfinished(exercise: str) -> list[str]:
    """Return the earlier exercises not yet right that an exercise's answer or rubric calls."""
    wrong = {name for name, verdict in verdicts.items() if not verdict.passed}
    blamed = wrong & runs.called_by(exercise)
    return [name for name in lesson_keys(exercise)[exercise].needs if name in blamed]


def lesson_is_known() -> bool:
    """Return whether this kernel can tell which lesson it is in."""
    return (lesson_folder() / PRACTICE_FILE).is_file()


def lesson_cells() -> Cells:
    """Return the cells of this kernel's notebook as it was saved."""
    return cells_in(folder())


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


def unsolved() -> set[str]:
    """Return the exercises of this lesson that are not known to be right as they are now."""
    try:
        return {name for name, key in lesson_keys().items() if not _is_right(name, key)}
    except session.CellEnded:  # the lesson is not known, which a rubric says; here is less to say
        return set()


def wrong() -> set[str]:
    """Return the exercises whose answers, as they are now, were judged and are not right."""
    return {name for name, verdict in verdicts.items() if not verdict.passed and _as_judged(name)}


def _is_right(exercise: str, key: Key) -> bool:
    """Return whether a rubric found an answer right, as it is now.

    Where the rubric has not run in this kernel, what it said in an earlier one counts.
    """
    if verdict := verdicts.get(exercise):
        return verdict.passed and _as_judged(exercise)
    run = runs.last_run_of(exercise)
    if run is None or (noted := record(folder(), exercise)) is None:
        return False
    return noted.points >= key.points and noted.answer == digest_of_cell(run.source)


def _as_judged(exercise: str) -> bool:
    """Return whether an answer's cell is still the one that its rubric judged."""
    run = runs.last_run_of(exercise)
    return run is None or run.source == judged.get(exercise)


session.practise(require_run, answer)
