"""A class being graded, on the terminal: a bar, a line for each problem, a summary."""

import signal
import sys
from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from autograde.course.lessons import Lesson, plain_assignments
from autograde.course.lessons import lessons as lessons_of
from autograde.grading.batch import How, grade_class
from autograde.grading.state import read_entry
from autograde.grading.submission import FAILED, OUTCOMES, Done, Place
from autograde.student_text import INTERRUPTED, named, printable
from autograde.values.text import await_marking

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

NO_WALL = "NO WALL: students' code ran as you and could reach what you can\n"


def grade_and_show(found: list[Place], how: How) -> int:
    """Grade, show the progress, and return the exit code."""
    root, lessons = found[0].lesson.root, list(dict.fromkeys(place.lesson for place in found))
    done, stopped = _run(found, how)
    if done or not stopped:  # else the summary's own imports may have been broken off
        said = _summary(lessons, done)
        said += "wall:      every notebook ran behind a wall of its own\n" if how.wall else NO_WALL
        said += f"feedback:  {root / 'feedback'}"
        print(said)
    if stopped:
        print(f"stopped: {len(done)} of {len(found)} are done. Run autograde grade again to go on.")
        return INTERRUPTED
    return 1 if any(each.outcome == FAILED for each in done) else 0


def _run(found: list[Place], how: How) -> tuple[list[Done], bool]:
    """Grade; return what was done, and whether Ctrl-C or SIGTERM ended the run."""
    finished: list[Done] = []
    console = Console(file=sys.stdout)  # a reference in another thread redirects stdout
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # of what a script begins with `&`, a shell has Ctrl-C ignored, and SIGTERM would do nothing
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(
            signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT)
        ),
    }
    with Progress(*columns, "left", console=console) as progress:
        bar = progress.add_task("starting", total=len(found))

        def say(step: str) -> None:
            progress.update(bar, description=step)

        def report(done: Done) -> None:
            finished.append(done)
            say(f"grading {done.place.lesson.name}")
            if done.problem:
                progress.print(_line(done), soft_wrap=True, highlight=False)
            progress.advance(bar)

        try:
            grade_class(found, how, report, say)
        except KeyboardInterrupt:
            return finished, True
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return finished, False


def _line(done: Done) -> str:
    head = f"[bold]{FAILED}:[/] " if done.outcome == FAILED else ""
    student, problem = escape(printable(done.place.student)), escape(printable(done.problem))
    return f"{head}{student} {done.place.lesson.name}: {problem}"


def _counts(done: list[Done], lesson: Lesson) -> Iterator[str]:
    """Yield how many submissions had each outcome, with the names of those not graded."""
    for outcome in OUTCOMES:
        students = [
            d.place.student for d in done if d.place.lesson == lesson and d.outcome == outcome
        ]
        names = f" ({printable(named(students))})" if outcome == FAILED else ""
        if students:
            yield f"{len(students)} {outcome}{names}"


def _facts(gradebook: "Gradebook", lesson: Lesson, done: list[Done]) -> Iterator[str]:
    """Yield what there is to say of a lesson: of this run, of its marks, and what to do next."""
    from autograde.grading.gradebook import as_recorded, marks_of_class

    yield from _counts(done, lesson)
    earlier = sum(each.earlier for each in done if each.place.lesson == lesson)
    if earlier:
        yield f"{earlier} by the rubrics of an earlier version"
    marks = marks_of_class(gradebook, lesson)
    unmarked = [each.points[n] for each in marks.values() for n in each.unmarked()]
    entries = {student: read_entry(Place(student, lesson)) for student in marks}
    broken = {student for student, entry in entries.items() if entry and entry.broken}
    whole = (each.share() for who, each in marks.items() if who not in broken)
    if shares := [share for share in whole if share is not None]:
        points = f"{as_recorded(gradebook, lesson).points:g} points"
        waits = any(each.waits for each in marks.values())
        marked = "the points marked so far" if waits else points
        without = f" ({len(broken)} broken left out)" if broken else ""
        yield f"mean {fmean(shares):.0%} of {marked}{without}"
    if unmarked:
        waiting = await_marking(sum(unmarked))
        yield f"{waiting} in all: autograde mark {lesson.name}"
    changed = [who for who, each in marks.items() for n in each.waits if each.score(n) is not None]
    if changed:
        whose = printable(named(dict.fromkeys(changed)))
        yield f"{len(changed)} to be looked at again in Formgrader ({whose})"
    if marks:
        yield f"report: autograde report {lesson.name}"


def _summary(lessons: list[Lesson], done: list[Done]) -> str:
    """Return one line for each lesson, and one for each name of another assignment."""
    from autograde.course.config import course_config
    from autograde.grading.gradebook import due_date, odd_due_date, open_gradebook

    root, said = lessons[0].root, ""
    with open_gradebook(course_config(root)) as gradebook:
        for lesson in lessons:
            said += f"{lesson.name}: {', '.join(_facts(gradebook, lesson, done))}\n"
            if odd := odd_due_date(due_date(gradebook, lesson.name)):
                said += f"{lesson.name}: {odd}\n"
    there = {path.name for path in (root / "submitted").glob("*/[!.]*") if path.is_dir()}
    plain = [name for name in plain_assignments(root) if name in there]
    for name in plain:
        said += f"{name}: a plain assignment, left to nbgrader: nbgrader autograde {name}\n"
    if unknown := sorted(there - lessons_of(root).keys() - {*plain}):
        said += f"no lesson of this course, so not graded: {printable(', '.join(unknown))}\n"
    return said
