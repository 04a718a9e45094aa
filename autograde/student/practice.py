"""Practice: a rubric cell compares at once, with the practice data that came with the lesson."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from IPython.display import display

from autograde.verdict.judge import Verdict, judge
from autograde.verdict.key import Key, unpack_keys
from autograde.verdict.panel import advice, repair_first, to_html, to_text
from autograde.verdict.recording import INTERRUPTED, Recording

PRACTICE_FILE = "practice.safetensors.gz"

_last: dict[str, Verdict] = {}
_hints_shown: dict[str, int] = {}


class RubricFailed(Exception):
    """A rubric line failed; the panel above has said which."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@cache
def keys(path: str) -> dict[str, Key]:
    """The answer keys in a file of practice data, by exercise.

    Raises:
        FileNotFoundError: the file is not there; the message says where it belongs.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"{path} is missing. It comes with the lesson and belongs in the notebook's folder; "
            "fetch the lesson again."
        )
    return unpack_keys(Path(path).read_bytes())


def key_of(exercise: str) -> Key:
    """The practice key of an exercise of the lesson in the current folder.

    Raises:
        KeyError: the lesson has no such exercise; the message lists those it has.
    """
    known = keys(str(Path(PRACTICE_FILE).resolve()))
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
    verdict = judge(recording, key_of(recording.exercise))
    before = _last.get(recording.exercise)
    if _unfinished(verdict):
        verdict = replace(verdict, misconception=None)  # it would be that of the earlier exercise
    named = before is not None and before.misconception == verdict.misconception
    _last[recording.exercise] = verdict
    _show(verdict, advice(verdict, named=named) + _next_steps(verdict, named=named))
    if not verdict.passed:
        raise RubricFailed(f"{recording.exercise}: {_count(verdict)}")


def _count(verdict: Verdict) -> str:
    if not verdict.attempted:
        return "not attempted yet"
    wrong = sum(not line.passed and not line.held for line in verdict.lines)
    return f"{wrong} of {len(verdict.lines)} lines wrong; run the rubric cell to see which"


def _show(verdict: Verdict, said: list[str]) -> None:
    display({"text/plain": to_text(verdict, said), "text/html": to_html(verdict, said)}, raw=True)


def _next_steps(verdict: Verdict, *, named: bool) -> list[str]:
    if verdict.passed:
        return []
    said = []
    if verdict.attempted and (earlier := _unfinished(verdict)):
        said.append(repair_first(earlier))
    if verdict.misconception is not None and not named:
        said.append(f'Ask why("{verdict.exercise}") for what seems to be behind it.')
    another = "another" if named and verdict.misconception is not None else "a"
    said.append(f'Ask hint("{verdict.exercise}") for {another} hint.')
    return said


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
