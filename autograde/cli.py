"""The command `autograde`."""

import os
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autograde import course


@click.group()
def main() -> None:
    """Build, check, release and grade lessons."""
    # nbgrader starts `alembic` by name when it makes a gradebook
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def chosen(names: tuple[str, ...]) -> list[course.Lesson]:
    """The named lessons of the course in this folder; a wrong name is a usage error."""
    try:
        return course.choose(course.find_root(Path.cwd()), names)
    except course.CourseError as error:
        raise click.UsageError(str(error)) from error


@main.command()
@click.argument("lesson")
def new(lesson: str) -> None:
    """Make a lesson to start from: it builds, checks and grades as it is."""
    from autograde.authoring import new as making

    try:
        root = course.find_root(Path.cwd())
        folder = making.new(root, lesson).folder.relative_to(root)
    except course.CourseError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error
    print(f"{folder}/ holds the lesson; {course.CURRICULUM} ends with its entry.")
    print(f"Next: autograde build {lesson}; then write over what says REPLACE.")
    print("How to add an exercise: docs/authoring.md")


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--check", is_flag=True, help="Change nothing; fail if anything is out of date.")
def build(lessons: tuple[str, ...], check: bool) -> None:
    """Make notebooks/ and solutions/ from source/."""
    from autograde.authoring import build as building

    stale = []
    for lesson in chosen(lessons):
        try:
            if check:
                stale += building.out_of_date(lesson)
            else:
                building.build(lesson)
                print(f"{lesson.name}: built")
        except course.CourseError as error:
            raise click.ClickException(str(error)) from error
    for change in stale:
        print(change)
    if stale:
        raise click.ClickException("out of date; run: autograde build")


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--measure", is_flag=True, help="Measure the tolerances anew first.")
def check(lessons: tuple[str, ...], measure: bool) -> None:
    """The grader's own test: judge every variant, right and wrong."""
    from autograde.authoring import check as checking

    faults = 0
    for lesson in chosen(lessons):
        try:
            if measure:
                checking.measure(lesson)
            results = checking.check(lesson)
        except course.CourseError as error:
            raise click.ClickException(str(error)) from error
        heads = ["exercise", "points", "lines", "right", "wrong", "margin", "ms", "faults"]
        table = Table(*heads, title=lesson.name)
        for row in checking.table_rows(results):
            table.add_row(*map(str, row))
        Console().print(table)
        for result in results:
            for fault in result.faults:
                print(f"{result.exercise}: {fault}")
                faults += 1
    sys.exit(1 if faults else 0)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("lessons", nargs=-1)
def release(folder: Path, lessons: tuple[str, ...]) -> None:
    """Write what students may have to a new folder: lessons, practice data, environment."""
    from autograde.authoring import release as releasing

    wanted = chosen(lessons)
    try:
        releasing.release(wanted[0].root, wanted, folder)
    except course.CourseError as error:
        raise click.ClickException(str(error)) from error
    print(f"released to {folder}: {', '.join(lesson.name for lesson in wanted)}")


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--student", help="Grade this student only.")
@click.option(
    "--workers", type=click.IntRange(1), help="Processes to run on; all cores if left out."
)
@click.option("--scheduler", default="", help="Run on the Dask cluster at this address.")
@click.option("--regrade", is_flag=True, help="Run and grade again what has not changed, too.")
@click.option("--no-wall", is_flag=True, help="Run students' code as you, with all you can reach.")
def grade(
    lessons: tuple[str, ...],
    student: str | None,
    workers: int | None,
    scheduler: str,
    regrade: bool,
    no_wall: bool,
) -> None:
    """Grade submitted/ of this course into nbgrader's gradebook, and write feedback."""
    from autograde.grader import grade as grading
    from autograde.grader import handed_in, screen
    from autograde.grader.guard import Stop
    from autograde.grader.preprocessors import require_wall

    wanted = chosen(lessons)
    root = wanted[0].root
    try:
        grading.check_released(wanted)
        found = handed_in.submissions(root, wanted, student)
    except Stop as error:
        raise click.ClickException(str(error)) from error
    except course.CourseError as error:
        raise click.UsageError(str(error)) from error
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    how = grading.How(workers or cores or 1, not no_wall, regrade, scheduler)
    try:
        if how.wall and not scheduler:
            require_wall(root)
        sys.exit(screen.grade(found, how))
    except course.CourseError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--anonymous", is_flag=True, help="Numbers in place of students' names and ids.")
@click.option(
    "--csv", "folder", type=click.Path(path_type=Path, file_okay=False), help="CSV files too."
)
def report(lessons: tuple[str, ...], anonymous: bool, folder: Path | None) -> None:
    """Write report/LESSON.html: what a class knows and does not know, on one page a lesson."""
    from autograde.grader.report import write_report

    wanted, written = chosen(lessons), 0
    for lesson in wanted:
        try:
            page = write_report(lesson, anonymous=anonymous, csv_folder=folder)
            written += 1
            print(f"{lesson.name}: {page}")
        except course.CourseError as error:
            print(f"{lesson.name}: {error}")
    # of all lessons, some may not have been taught yet
    sys.exit(0 if written == len(wanted) or (written and not lessons) else 1)


FORMATS = ["csv", "canvas", "moodle", "gradescope"]


@main.command()
@click.argument("lessons", nargs=-1)
@click.option("--format", "kind", required=True, type=click.Choice(FORMATS))
@click.option("--to", "file", type=click.Path(path_type=Path, dir_okay=False))
def export(lessons: tuple[str, ...], kind: str, file: Path | None) -> None:
    """Write the grades of the gradebook to a file for another system."""
    from autograde.grader.exports import export_grades

    chosen(lessons)  # a wrong name is a usage error
    try:
        print(export_grades(course.find_root(Path.cwd()), kind, lessons, file))
    except (course.CourseError, OSError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
