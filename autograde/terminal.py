"""A class being graded, on the terminal: a bar, a line for each problem, a summary."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from autograde.grading.batch import How, grade_class
from autograde.grading.task import Done

INTERRUPTED = 130


class _Rate(ProgressColumn):
    """Submissions a minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed * 60:.0f}/min" if task.speed else "")


def grade(found: list[tuple[str, Lesson]], how: How) -> int:
    """Grade, and show how it goes; the exit code."""
    console = Console()
    counts: Counter[tuple[str, str]] = Counter()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(),
        TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with _ctrl_c() as stopped, Progress(*columns, console=console) as progress:
        bar = progress.add_task("starting", total=len(found))

        def say(step: str) -> None:
            progress.update(bar, description=step)

        try:
            for done in grade_class(found, how, stopped, say):
                counts[done.lesson, _kind(done)] += 1
                say(f"grading {done.lesson}")
                if done.problem:
                    progress.print(_line(done), soft_wrap=True, highlight=False)
                progress.advance(bar)
        except KeyboardInterrupt:
            progress.stop()
            _summarise(found, counts)
            number = sum(counts.values())
            print(
                f"stopped: {number} of {len(found)} are done. Run autograde grade again to go on."
            )
            return INTERRUPTED
    _summarise(found, counts)
    if how.wall:
        print("wall:      every notebook ran behind a wall of its own")
    else:
        print("NO WALL: students' code ran as you and could reach what you can")
    print(f"feedback:  {found[0][1].root / 'feedback'}")
    return 1 if any(kind == "not graded" for _, kind in counts) else 0


def _kind(done: Done) -> str:
    if done.failed:
        return "not graded"
    return "unchanged" if done.unchanged else "graded"


def _line(done: Done) -> str:
    head = "[bold]not graded:[/] " if done.failed else ""
    return f"{head}{escape(done.student)} {done.lesson}: {escape(done.problem)}"


def _summarise(found: list[tuple[str, Lesson]], counts: Counter[tuple[str, str]]) -> None:
    """Print one line for each lesson."""
    from autograde.course_config import course_config
    from autograde.grading.gradebook import open_gradebook, standing

    lessons = dict.fromkeys(lesson for _, lesson in found)
    with open_gradebook(course_config(found[0][1].root)) as gradebook:
        for lesson in lessons:
            said = [
                f"{counts[lesson.name, kind]} {kind}"
                for kind in ("graded", "unchanged", "not graded")
                if counts[lesson.name, kind]
            ]
            here = standing(gradebook, lesson)
            if here.mean is not None:
                said.append(f"mean {here.mean:.1f} of {here.points:g}")
            if here.waiting:
                answers = "answer waits" if here.waiting == 1 else "answers wait"
                said.append(f"{here.waiting} {answers} in Formgrader")
            said.append(f"report: autograde report {lesson.name}")
            print(f"{lesson.name}: {', '.join(said)}")


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Whether somebody wants it to stop; whoever asks a second time gets it at once."""
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
