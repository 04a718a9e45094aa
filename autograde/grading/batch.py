"""Grade many submissions: workers do each from bytes to page, this process alone saves."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograde.course.lessons import CourseError, read_course
from autograde.grader import GRADER, read_grader
from autograde.grading import state, workers
from autograde.grading.submission import Done, Place
from autograde.sandbox.imports import many_imports
from autograde.sandbox.wall import exposed, missing


@dataclass(frozen=True)
class How:
    """Options for grading: the number of processes or a cluster, the wall, grading all again."""

    workers: int
    wall: bool = True
    regrade: bool = False
    scheduler: str = ""


def grade_class(
    places: list[Place],
    how: How,
    report: Callable[[Done], None] = lambda done: None,
    say: Callable[[str], None] = lambda step: None,
) -> None:
    """Grade the submissions of one course that lie in these places.

    If a call is killed at any moment, the next one goes on from what is stored.

    Args:
        report: is told of each submission when it is done.
        say: is told the steps before the first submission.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; running notebooks are ended, finished ones saved. A
            second one does not wait for the submission that is being saved.
        Halted: nothing (more) can be graded, whatever the submission.
        CourseError: the cluster cannot be used, or nbgrader's configuration is missing.
    """
    root, package = places[0].lesson.root, places[0].lesson.package
    with state.one_run(root):
        state.clear_the_way(root)
        if how.scheduler:
            started = workers.on_cluster(how.scheduler, how.wall, package)
        else:
            require_one_grader(root)
            number = min(how.workers, len(places))
            now = how.regrade or any(state.read_entry(place) is None for place in places)
            started = workers.on_this_machine(number, how.wall, package, now=now)
        with started as executors:
            say("starting workers")
            with many_imports():  # nbgrader takes a second, in which the workers start
                from autograde.course.config import course_config
                from autograde.grading import gradebook as book
                from autograde.grading.coordinator import Coordinator
            say("reading the gradebook")
            config = course_config(root)
            book.copy_gradebook(root, config)
            with book.open_gradebook(config) as gradebook:
                say("first submissions")
                coordinator = Coordinator(
                    root, config, gradebook, executors, wall=how.wall, regrade=how.regrade
                )
                asyncio.run(coordinator.grade_all(places, report))


def require_one_grader(root: Path) -> None:
    """Raises CourseError when a course, such as a clone, has a grader of its own that differs.

    Workers of this machine would import that one: they find the course's package in its folder.
    """
    held, run = root.resolve() / "autograde", Path(__file__).resolve().parent.parent
    if held != run and (held / "grader.py").is_file() and read_grader(held) != GRADER:
        raise CourseError(
            f"{held} differs from the grader that you run, {run}. "
            f"Put {root / '.venv' / 'bin'} first on the path, or run: pip install -e {root}"
        )


def require_wall(root: Path) -> None:
    """Raises CourseError when students' code cannot be kept away from this course."""
    state.require_locks()  # without a wall it would be refused all the same
    problem = missing(read_course(root).package) or exposed(root)
    if problem:
        raise CourseError(
            f"{problem}\nWithout a wall students' code can do whatever you can. "
            "If you trust it, grade with --no-wall (nbgrader: --Run.wall=False)."
        )
