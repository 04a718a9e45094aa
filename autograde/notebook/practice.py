"""Practice: a rubric cell compares at once, with the practice data that came with the lesson."""

import os
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from IPython.display import display

from autograde.notebook import standing
from autograde.rubric import session
from autograde.rubric.judge import Verdict, judge
from autograde.rubric.key import Key, unpack_keys
from autograde.rubric.panel import advice, repair_first, to_html, to_text
from autograde.rubric.recording import INTERRUPTED, Recording

PRACTICE_FILE = "practice.safetensors.gz"
INSTALLED = "practice_data"
"""The folder of the installed package that holds every lesson's file, for a notebook alone."""

_last: dict[str, Verdict] = {}
_hints_shown: dict[str, int] = {}


class RubricFailed(Exception):
    """A rubric line failed; the panel above has said which."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@cache
def keys(path: str) -> dict[str, Key]:
    """The answer keys in a file of practice data, by exercise."""
    return unpack_keys(Path(path).read_bytes())


def lesson_keys(exercise: str | None = None) -> dict[str, Key]:
    """The practice keys of the lesson in the current folder.

    Where the notebook is alone there, as in a hosted service, the installed package has them: of
    the lesson that has the exercise, or else of the one whose rubric ran last.

    Raises:
        FileNotFoundError: they are nowhere; the message says where they belong.
    """
    beside = Path(PRACTICE_FILE).resolve()
    if beside.is_file():
        return keys(str(beside))
    wanted = exercise or next(reversed(_last), None)
    found = [keys(str(path)) for path in _installed()]
    for lesson in found:
        if wanted in lesson:
            return lesson
    if found:
        return {name: key for lesson in found for name, key in lesson.items()}
    raise FileNotFoundError(
        f"{beside} is missing. It comes with the lesson and belongs in the notebook's folder; "
        "fetch the lesson again, or install the package that your teacher gives you."
    )


def _installed() -> list[Path]:
    folder = Path(str(resources.files("autograde.notebook"))) / INSTALLED
    return sorted(folder.glob("*.safetensors.gz"))


def key_of(exercise: str) -> Key:
    """The practice key of an exercise of the lesson in the current folder.

    Raises:
        KeyError: the lesson has no such exercise; the message lists those it has.
    """
    known = lesson_keys(exercise)
    if exercise not in known:
        raise KeyError(f"no exercise is called {exercise!r}; there are {', '.join(known)}")
    return known[exercise]


def answer(recording: Recording) -> None:
    """Show the verdict below the rubric cell.

    The first failing run shows the symptoms alone, so that the student can think; the
    misconception is named when the same one shows again, or by `why`.

    Raises:
        RubricFailed: a line failed, so that nbgrader's Validate sees it.
    """
    if recording.stopped == INTERRUPTED:
        return
    key = key_of(recording.exercise)
    _same_version(recording, key)
    verdict = judge(recording, key)
    before = _last.get(recording.exercise)
    if _unfinished(verdict):
        verdict = replace(verdict, misconception=None)  # it would be that of the earlier exercise
    named = before is not None and before.misconception == verdict.misconception
    _last[recording.exercise] = verdict
    validating = os.environ.get("NBGRADER_EXECUTION") == "validate"
    standing.remember(verdict.exercise, verdict.points, keep=not validating)
    said = advice(verdict, named=named) + _next_steps(verdict, named=named)
    _show(verdict, said)
    if not verdict.passed:
        # Validate shows the error alone, so there it says what the panel says
        in_full = to_text(verdict, said) if validating and verdict.attempted else ""
        raise RubricFailed(in_full or f"{recording.exercise}: {_count(verdict)}")


def _same_version(recording: Recording, key: Key) -> None:
    """Raises RubricFailed when a notebook and the practice data are of different versions."""
    known = {line.name for line in key.expected.lines}
    if others := [line.name for line in recording.lines if line.name not in known]:
        raise RubricFailed(
            f"{recording.exercise}: the practice data know no line “{others[0]}”. The notebook and "
            "the practice data, or the installed package, are of different versions; get both anew"
        )


def _count(verdict: Verdict) -> str:
    if not verdict.attempted:
        return "not attempted yet"
    wrong = sum(not line.passed and not line.held for line in verdict.lines)
    return f"{wrong} of {len(verdict.lines)} lines wrong; run the rubric cell to see which"


def _show(verdict: Verdict, said: list[str]) -> None:
    display({"text/plain": to_text(verdict, said), "text/html": to_html(verdict, said)}, raw=True)


def _next_steps(verdict: Verdict, *, named: bool) -> list[str]:
    if verdict.passed:
        return [_so_far(verdict.exercise)]
    said = []
    if verdict.attempted and (earlier := _unfinished(verdict)):
        said.append(repair_first(earlier))
    if verdict.misconception is not None and not named:
        said.append(f'Ask why("{verdict.exercise}") for what seems to be behind it.')
    another = "another" if named and verdict.misconception is not None else "a"
    said.append(f'Ask hint("{verdict.exercise}") for {another} hint.')
    return said


def _so_far(exercise: str) -> str:
    """The lesson's progress, in a sentence."""
    worth = {name: key.points for name, key in lesson_keys(exercise).items()}
    here = standing.of_lesson(worth)
    then = f"Next: {here.next}." if here.next else "Save the notebook and press Validate."
    return f"This lesson: {here.in_words()}. {then}"


def _unfinished(verdict: Verdict) -> list[str]:
    earlier = key_of(verdict.exercise).needs
    return [name for name in earlier if name in _last and not _last[name].passed]


def hint(exercise: str) -> None:
    """Show the next hint of an exercise, one at a time; after the last, begin again."""
    hints = key_of(exercise).hints
    shown = _hints_shown.get(exercise, 0)
    _hints_shown[exercise] = shown + 1
    place = shown % len(hints)
    print(f"Hint {place + 1} of {len(hints)}: {hints[place]}")


def why(exercise: str) -> None:
    """Say what seems to be behind the last failed run of an exercise's rubric."""
    key_of(exercise)
    verdict = _last.get(exercise)
    if verdict is None:
        print(f"Run the rubric cell of {exercise} first.")
    elif verdict.passed:
        print(f"{exercise} is right.")
    elif verdict.misconception is None:
        print("This is none of the known mistakes. Read the first wrong line, and try a hint.")
    else:
        print("\n".join(advice(verdict, named=True)))


def progress() -> None:
    """Show how far you are in this lesson and in the course."""
    if not Path(PRACTICE_FILE).is_file() and not _last:
        print("Run a rubric cell first.")
        return
    here = standing.of_lesson({name: key.points for name, key in lesson_keys().items()})
    course = standing.of_course(Path.cwd().parent)
    others = [lesson for lesson in course if lesson.lesson != here.lesson]
    panel = {
        "text/plain": standing.to_text(here, others),
        "text/html": standing.to_html(here, others),
    }
    display(panel, raw=True)


session.practise(answer)
