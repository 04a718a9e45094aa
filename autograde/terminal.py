"""A class being graded, on the terminal: a bar, a line for each problem, a summary."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from types import FrameType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from autograde.course import Lesson
from autograde.course import lessons as lessons_of
from autograde.grading.batch import How, grade_class
from autograde.grading.state import (
    INPUTS,
    OUTPUTS,
    again,
    course_secret,
    fingerprint,
    keep_settled,
    settled,
)
from autograde.grading.submission import FAILED, OUTCOMES, Done, Place
from autograde.words import printable

INTERRUPTED = 130
NO_WALL = "NO WALL: students' code ran as you and could reach what you can\n"


class _Rate(ProgressColumn):
    """Submissions a minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed * 60:.0f}/min" if task.speed else "")


def grade(found: list[Place], how: How, *, whole: bool) -> int:
    """Grade, show the progress, and return the exit code.

    Args:
        whole: these are all submissions of their lessons.
    """
    root, lessons = found[0][1].root, list(dict.fromkeys(lesson for _, lesson in found))
    names = [lesson.name for lesson in lessons]
    course_secret(root)  # one of the inputs; made now if this is the first run
    before = fingerprint(root, names, INPUTS)
    asked: list[object] = [names, how.wall]
    whole = whole and not how.regrade
    if whole and (said := settled(root, asked, [before, fingerprint(root, names, OUTPUTS)])):
        print(f"nothing has changed since the last run\n{said}")
        return 0
    for line in [] if how.regrade else again(found):
        print(line)
    counts, stopped = _run(found, how)
    said, up_to_date = _summary(lessons, counts)
    said += "wall:      every notebook ran behind a wall of its own\n" if how.wall else NO_WALL
    said += f"feedback:  {root / 'feedback'}"
    print(said)
    if stopped:
        print(
            f"stopped: {sum(counts.values())} of {len(found)} are done. "
            "Run autograde grade again to go on."
        )
        return INTERRUPTED
    failed = any(kind == FAILED for _, kind in counts)
    if whole and up_to_date and not failed:
        keep_settled(root, asked, [before, up_to_date], said)
    return 1 if failed else 0


def _run(found: list[Place], how: How) -> tuple[Counter[tuple[str, str]], bool]:
    """Grade; return counts by lesson and outcome, and whether Ctrl-C ended the run."""
    counts: Counter[tuple[str, str]] = Counter()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(),
        TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with _ctrl_c() as stopped, Progress(*columns, console=Console()) as progress:
        bar = progress.add_task("starting", total=len(found))

        def say(step: str) -> None:
            progress.update(bar, description=step)

        try:
            for done in grade_class(found, how, stopped, say):
                counts[done.place.lesson.name, done.outcome] += 1
                say(f"grading {done.place.lesson.name}")
                if done.problem:
                    progress.print(_line(done), soft_wrap=True, highlight=False)
                progress.advance(bar)
        except KeyboardInterrupt:
            return counts, True
    return counts, False


def _line(done: Done) -> str:
    head = f"[bold]{FAILED}:[/] " if done.outcome == FAILED else ""
    student, problem = escape(printable(done.place.student)), escape(printable(done.problem))
    return f"{head}{student} {done.place.lesson.name}: {problem}"


def _summary(lessons: list[Lesson], counts: Counter[tuple[str, str]]) -> tuple[str, str]:
    """Return one line for each lesson, and a fingerprint of the outputs or "".

    There is a fingerprint only if the outputs show what the gradebook holds.
    """
    from autograde.course_config import course_config
    from autograde.grading.coordinator import shown
    from autograde.grading.gradebook import as_recorded, marks_of_class, open_gradebook

    root, said, all_shown = lessons[0].root, "", True
    outputs = fingerprint(root, [lesson.name for lesson in lessons], OUTPUTS)
    config = course_config(root)
    with open_gradebook(config) as gradebook:
        for lesson in lessons:
            facts = [f"{n} {kind}" for kind in OUTCOMES if (n := counts[lesson.name, kind])]
            marks = marks_of_class(gradebook, lesson)
            waits = [name for each in marks.values() for name in each.waits]
            written = {each.name for each in lesson.written}
            texts = sum(name in written for name in waits)
            if marks:
                mean = fmean(each.total() for each in marks.values())
                so_far = " so far" if waits else ""
                facts.append(
                    f"mean {mean:.1f} of {as_recorded(gradebook, lesson).points:g}{so_far}"
                )
            if texts:
                facts.append(f"{texts} to be graded by hand: autograde mark {lesson.name}")
            if looks := len(waits) - texts:
                facts.append(f"{looks} to be looked at again in Formgrader")
            facts.append(f"report: autograde report {lesson.name}")
            said += f"{lesson.name}: {', '.join(facts)}\n"
            all_shown = all_shown and shown(config, lesson, marks)
    there = {path.name for path in (root / "submitted").glob("*/[!.]*") if path.is_dir()}
    if unknown := sorted(there - lessons_of(root).keys()):
        said += f"no lesson of this course, so not graded: {printable(', '.join(unknown))}\n"
    return said, outputs if all_shown else ""


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed; a second Ctrl-C stops at once."""
    wishes: list[int] = []

    def wish(number: int, frame: FrameType | None) -> None:
        if wishes:
            raise KeyboardInterrupt
        wishes.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, wish) for number in numbers}
    try:
        yield lambda: bool(wishes)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
