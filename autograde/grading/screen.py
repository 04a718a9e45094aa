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
from rich.table import Table
from rich.text import Text

from autograde.course import Lesson
from autograde.course_config import course_config
from autograde.grading.grade import Graded, How, grade_class
from autograde.grading.guard import open_gradebook
from autograde.grading.words import printable
from autograde.grading.written import waiting

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
        TextColumn("grading"), BarColumn(), MofNCompleteColumn(), _Rate(),
        TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with _ctrl_c() as stopped, Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(found))
        try:
            for graded in grade_class(found, how, stopped):
                counts[graded.lesson, _kind(graded)] += 1
                if graded.problem:
                    progress.print(_line(graded), soft_wrap=True, highlight=False)
                progress.advance(bar)
        except KeyboardInterrupt:
            progress.stop()
            console.print(_table(counts))
            done = sum(counts.values())
            print(f"stopped: {done} of {len(found)} are done. Run autograde grade again to go on.")
            return INTERRUPTED
    console.print(_table(counts))
    if how.wall:
        print("wall:      every notebook ran behind a wall of its own")
    else:
        print("NO WALL: students' code ran as you and could reach what you can")
    root = found[0][1].root
    with open_gradebook(course_config(root)) as gradebook:
        if by_hand := waiting(gradebook):
            print(f"by hand:   {by_hand}")
    print(f"feedback:  {root / 'feedback'}")
    return 1 if any(kind == "not graded" for _, kind in counts) else 0


def _kind(graded: Graded) -> str:
    if graded.failed:
        return "not graded"
    return "unchanged" if graded.unchanged else "graded"


def _line(graded: Graded) -> str:
    head = "[bold]not graded:[/] " if graded.failed else ""
    student, problem = escape(printable(graded.student)), escape(printable(graded.problem))
    return f"{head}{student} {graded.lesson}: {problem}"


def _table(counts: Counter[tuple[str, str]]) -> Table:
    table = Table("lesson", "graded", "unchanged", "not graded")
    for lesson in sorted({lesson for lesson, _ in counts}):
        kinds = ("graded", "unchanged", "not graded")
        table.add_row(lesson, *(str(counts[lesson, kind]) for kind in kinds))
    return table


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
