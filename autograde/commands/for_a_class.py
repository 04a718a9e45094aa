"""The commands for a teacher who has a class."""

import os
import sys
from pathlib import Path

import click

from autograde.commands.chosen import FURTHER, SOME, chosen
from autograde.course.lessons import CourseError, find_root
from autograde.student_text import printable

commands = click.Group("For teachers, a class")


@commands.command()
@click.argument("lesson")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def collect(lesson: str, files: tuple[Path, ...]) -> None:
    """Sort downloads from an LMS into submitted/.

    FILES are downloads, and Moodle's grading worksheet; without them, what lies in
    downloaded/LESSON/archive/.
    """
    (wanted,) = chosen((lesson,))
    from autograde.lms import collect as collecting

    lines, complete = collecting.collect(wanted, files)
    print("\n".join(lines))
    sys.exit(0 if complete else 1)


@commands.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--student", help="Grade this student only.")
@click.option("--workers", type=click.IntRange(1), help="Number of processes; default: all cores.")
@click.option("--scheduler", default="", help="Run on the Dask cluster at this address.")
@click.option("--regrade", is_flag=True, help="Grade unchanged submissions again too.")
@click.option("--no-wall", is_flag=True, help="Run without a sandbox, under your own account.")
def grade(
    lessons: tuple[str, ...],
    student: str | None,
    workers: int | None,
    scheduler: str,
    regrade: bool,
    no_wall: bool,
) -> None:
    """Grade what is in submitted/, write feedback."""
    from autograde.commands import terminal
    from autograde.grading.batch import How, require_wall
    from autograde.grading.submission import submissions

    wanted = chosen(lessons)
    root = wanted[0].root
    found = submissions(root, wanted, student)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    how = How(workers or cores or 1, not no_wall, regrade, scheduler)
    if how.wall and not scheduler:
        require_wall(root)
    sys.exit(terminal.grade_and_show(found, how))


@commands.command(context_settings={"ignore_unknown_options": True})
@click.argument("lesson")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar=FURTHER)
def mark(lesson: str, options: tuple[str, ...]) -> None:
    """Mark answers by hand, one question at a time.

    What follows LESSON is passed on to the Jupyter server: --no-browser, say.
    """
    (wanted,) = chosen((lesson,))
    if not wanted.written:
        raise CourseError(f"{lesson} has no question to mark by hand")
    from autograde.marking.page import open_page

    open_page(wanted, options)


@commands.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--anonymous", is_flag=True, help="Replace names and ids with numbers.")
@click.option(
    "--csv",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write CSV files to this folder.",
)
def report(lessons: tuple[str, ...], anonymous: bool, folder: Path | None) -> None:
    """Write a report on the class for each lesson."""
    from autograde.report.class_report import write_report
    from autograde.report.classdata import NothingGraded

    written = failed = 0
    for lesson in chosen(lessons):
        try:
            page = write_report(lesson, anonymous=anonymous, csv_folder=folder)
            written += 1
            print(f"{lesson.name}: open {page}")
        except CourseError as error:
            print(printable(f"{lesson.name}: {error}"))
            # of all lessons, some may not have been taught yet
            failed += bool(lessons) or not isinstance(error, NothingGraded)
    sys.exit(1 if failed or not written else 0)


@commands.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--format", "form", required=True, type=click.Choice(["csv", "canvas", "moodle"]))
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Default: grades.csv, grades-canvas.csv or grades-moodle.csv in the course's folder.",
)
def export(lessons: tuple[str, ...], form: str, file: Path | None) -> None:
    """Export grades for another system."""
    from autograde.lms.exports import export_grades

    print(export_grades(find_root(Path.cwd()), form, lessons, file))


@commands.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar=FURTHER)
def instructor(options: tuple[str, ...]) -> None:
    """Open JupyterLab with Formgrader on a course.

    What follows is passed on to JupyterLab: --no-browser, say.
    """
    wanted = chosen(())
    from autograde.authoring.sources import sync
    from autograde.marking.instructor import open_lab

    for lesson in wanted:
        sync(lesson)
    open_lab(wanted[0].root, options)
