"""Practice: a rubric cell is judged at once, by the practice data that came with the lesson."""

from contextlib import suppress
from dataclasses import replace

from IPython.display import display

from autograde.cards import write_notes
from autograde.notebook import judgements
from autograde.notebook.judgements import Judgement
from autograde.notebook.lesson_here import (
    folder,
    lesson_cells,
    lesson_keys,
    not_run,
    standing_here,
    unfinished,
)
from autograde.notebook.saved_notebook import still_to_come
from autograde.progress import (
    INDEX,
    NOT_RUN,
    STATE,
    following,
    how_to_submit,
    keep_attempt,
    write_page,
)
from autograde.rubric import runs, session
from autograde.rubric.judge import INCOMPLETE, Verdict, judge
from autograde.rubric.key import Key
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
from autograde.values.base import shorten
from autograde.values.text import visible

ASKS = "Your cell calls `input()`. In grading nobody answers, and the cell fails: take it out."


class RubricFailed(session.CellEnded):
    """A rubric line failed; the panel above has said which."""

    shown = True


def answer(recording: Recording) -> None:
    """Show the verdict below the rubric cell.

    The first failing run shows only the symptoms, so that the student can think. A belief is
    named when the next run shows it again, or when the student calls `why`.

    Raises:
        RubricFailed: a line failed; nbgrader's Validate sees the failure by this exception.
    """
    if recording.stopped is not None and recording.stopped.error == "KeyboardInterrupt":
        return
    exercise = recording.exercise
    key = lesson_keys(exercise).get(exercise)
    if key is None:
        raise session.CellEnded(f"{exercise}: {INCOMPLETE}")
    run = runs.last_run_of(exercise)
    verdict, source = judge(recording, key, trusted=True), run.source if run else ""
    last = judgements.last.pop(exercise, None)
    judgements.last[exercise] = Judgement(verdict, recording, source)
    _remember(verdict, source)
    before = last.verdict if last else None
    named = _shows_again(verdict, before)
    said = _lines_so_far(verdict, before) + advice(verdict, named=named) + _next_steps(verdict)
    said += _about_the_run(run) if run else []
    helps = [] if verdict.passed else _helps(verdict, key, named=named)
    ask = "" if verdict.passed else _how_to_ask(verdict, named=named)
    display(with_edits_noticed(to_display(verdict, said, helps, ask)), raw=True)
    if not verdict.passed:
        raise RubricFailed(f"{exercise} is not right: {first_wrong(verdict)}")


def _shows_again(verdict: Verdict, before: Verdict | None) -> bool:
    """Return whether a wrong answer shows the same beliefs as the run before."""
    shown, earlier = ([b.belief for b in v.beliefs] if v else [] for v in (verdict, before))
    return bool(shown) and shown == earlier


def _about_the_run(run: runs.Run) -> list[str]:
    said = [f"Judged: your cell as run in [{run.number}]."]
    return said + [ASKS] * ("input" in names_of(run.source).needed)


def require_run(exercise: str) -> None:
    """Show the error that ended the answer cell, if one did; nothing older is judged, nor run.

    Raises:
        RubricFailed: the last run of the answer failed.
    """
    judgements.refused.clear()
    run = runs.last_run_of(exercise)
    if run is None or not run.error:
        return
    judgements.refused.add(exercise)
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
        for name, number in runs.rebound(verdict.exercise).items()
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
    if not judgements.counts(verdict) or session.run_by_nbgrader():
        return
    if not (lesson.parent / STATE / INDEX).is_file():
        return
    with suppress(OSError):  # a full or read-only disk is no reason to fail the rubric
        keep_attempt(lesson, verdict.exercise, verdict.points, judged)
        write_notes(lesson.parent)
        write_page(lesson.parent)


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


session.practise(require_run, answer)
