"""A student's questions: a hint, the belief behind a mistake, a failing case, the progress."""

import difflib
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from autograde.notebook import judgements, lesson_here, practice
from autograde.notebook.judgements import Judgement
from autograde.progress import Standing
from autograde.rubric.judge import Failure, as_failure
from autograde.rubric.key import Key
from autograde.rubric.kinds import outcomes_of, wrong_cases
from autograde.rubric.panel import advice, example, repair_first
from autograde.rubric.recording import Case, Line, Recording
from autograde.values.dispatch import live

_hints_shown: Counter[str] = Counter()


def hint(exercise: str = "") -> None:
    """Show the next hint for an exercise; after the last hint, begin again.

    The default is the exercise whose rubric failed last.
    """
    if name := _exercise(exercise):
        hints = lesson_here.lesson_keys(name)[name].hints
        place = _hints_shown[name] % len(hints)
        _hints_shown[name] += 1
        practice.show(f"{name}: hint {place + 1} of {len(hints)}", [hints[place]])


def why(exercise: str = "") -> None:
    """Say what may be behind the last failed run of an exercise's rubric."""
    if not (name := _exercise(exercise)):
        return
    if todo := _not_judged(name):
        said = [todo]
    elif (verdict := judgements.last[name].verdict).passed:
        said = ["It is right."]
    elif not verdict.attempted:
        said = ["It is not written yet. `hint()` helps to begin."]
    elif earlier := lesson_here.unfinished(name):
        said = [repair_first(earlier)]
    else:
        said = advice(verdict, named=True)
        if verdict.leading and not verdict.beliefs:
            said.append(
                "This is not one of the mistakes that the course knows. Look at the first wrong "
                "line: `case()` gives its arguments, its result and what was expected."
            )
    practice.show(f"{name}: why", said)


@dataclass(frozen=True)
class Example:
    """A case of a rubric line to play with. At the end of a cell it is shown as a small page."""

    title: str
    call: str
    arguments: Any
    result: Any
    expected: Any
    failure: Failure

    def __repr__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        said = ["To go on with it: `c = case()`, then `c.arguments`, `c.result`, `c.expected`."]
        return example(self.title, self.failure, said)


def case(exercise: str = "", line: int | None = None) -> Example | None:
    """Return a case of a rubric line to play with: the smallest that fails.

    It has a `call` as text, its `arguments`, its `result`, and what was `expected`.

    Where several results are right, nothing is expected but what the line says: it is None.

    Args:
        exercise: by default, the exercise whose rubric failed last.
        line: number of the line, counted from 1; by default, the first wrong line.
    """
    if not (name := _exercise(exercise)):
        return None
    if todo := _not_judged(name):
        practice.show(f"{name}: case", [todo])
        return None
    key, judgement = lesson_here.lesson_keys(name)[name], judgements.last[name]
    lines = judgement.verdict.lines
    wrong = (each for each in lines if not each.passed)
    leading = judgement.verdict.leading or next(wrong, lines[0])
    place = lines.index(leading) if line is None else line - 1
    if not 0 <= place < len(lines):
        practice.show(f"{name}: case", [f"There is no line {line}; there are {len(lines)}."])
        return None
    return _example(key, judgement, place)


def _example(key: Key, judgement: Judgement, place: int) -> Example:
    """Return the first case of a line that is wrong, or else the first one."""
    line, judged = key.expected.lines[place], judgement.verdict.lines[place]
    outcomes = outcomes_of(judgement.recording, key.expected)[place]
    first = line.cases[0], outcomes[0], None
    known, outcome, _ = next(wrong_cases(line, outcomes, key.tolerances[place]), first)
    error = f"{outcome.error}: {outcome.message}".removesuffix(": ")
    result = error if outcome.error else _returned(judgement.recording, line, known)
    # changes must not reach the key
    before, gave, wanted = map(live, deepcopy((known.before, result, known.outcome.value)))
    shown = judged.failure
    if not (shown and shown.sentence):
        shown = as_failure(known, judged, judgement.verdict.note)
    return Example(f"{key.exercise}: {line.name}", known.call, before, gave, wanted, shown)


def _returned(recording: Recording, line: Line, case: Case) -> Any:
    """Return what a call gave back; its outcome is what a check has read off that."""
    (own,) = (each for each in recording.lines if each.name == line.name)
    return own.cases[[each is case for each in line.cases].index(True)].outcome.value


def progress() -> None:
    """Show how far you are in this lesson and in the course."""
    if not lesson_here.lesson_is_known():
        practice.show("Progress", ["Run a rubric cell first."])
        return
    here, course = lesson_here.standing_here()
    title, state = f"This lesson: {here.in_words()}", "idle" if here.next else "right"
    practice.show(title, in_paragraphs(here, course), state)


def in_paragraphs(here: Standing, course: list[Standing]) -> list[str]:
    """Return what the panel of a lesson says below its title: its exercises, then other lessons."""
    wrong = [name for name in here.worth if name in here.points and name not in here.solved]
    new = [name for name in here.worth if name not in here.points]
    states = {"Right": here.solved, "Not right": wrong, "Not tried": new}
    said = [
        f"{state}: {', '.join(f'`{name}`' for name in names)}"
        for state, names in states.items()
        if names
    ]
    said += [f"Next: `{here.next}`"] if here.next else []
    others = (lesson for lesson in course if lesson.lesson != here.lesson)
    return said + [f"{lesson.lesson}: {lesson.in_words()}" for lesson in others]


def _not_judged(exercise: str) -> str:
    """Return what has to be done before there is anything to say of an answer, or ""."""
    if exercise in judgements.refused:
        return "Its cell ended with an error. Fix that, run the cell, then its rubric cell."
    return "" if exercise in judgements.last else "Run its rubric cell first."


def _exercise(asked: object) -> str:
    """Return an exercise's name; if no exercise has that name, say so and return "".

    Students also pass the function or class itself.
    """
    name = str(getattr(asked, "__name__", asked))
    if not name:
        wrong = [n for n, each in judgements.last.items() if not each.verdict.passed]
        if known := [*judgements.refused] or wrong or list(judgements.last):
            return known[-1]
        practice.show("Which exercise?", ['Run a rubric cell first, or name one: `hint("name")`.'])
        return ""
    keys = lesson_here.lesson_keys(name)
    if name in keys:
        return name
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.4)
    meant = f"Did you mean `{near[0]}`?" if near else f"The exercises are: {', '.join(keys)}."
    practice.show(f"No exercise is called {name}", [meant])
    return ""
