"""The command `autograde`."""

import os
import shutil
import sys
import sysconfig
import webbrowser
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from autograde.course.lessons import (
    CURRICULUM,
    CourseError,
    Lesson,
    choose,
    choose_exercises,
    find_root,
    read_course,
)
from autograde.course.package import make_importable
from autograde.installed import manual
from autograde.student_text import INTERRUPTED, printable

if TYPE_CHECKING:
    from autograde.workspace.project import Project


FURTHER = "[JUPYTER'S OPTION]..."
SOME = "[LESSON]..."
PLAIN = "An exercise on lists, without NumPy."
GROUPS = {
    "For students": ("lab", "update", "progress", "self", "submit"),
    "For teachers, a class": ("collect", "grade", "mark", "report", "export", "instructor"),
    "For teachers, lessons": (
        "init", "new", "build", "check", "variant", "dist", "release", "site",
    ),
}  # fmt: skip
"""The commands in the order of their use, as the help lists them."""


class Commands(click.Group):
    """Ends a command with a readable message when something cannot be done."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            about = {name: self.commands[name].get_short_help_str(limit=60) for name in names}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), said) for name, said in about.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort) as error:
            if isinstance(error.__context__, EOFError):  # a question that nobody is there to answer
                raise
            print("Stopped.", file=sys.stderr)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            raise  # click ends quietly when the pipe's reader is gone
        except (CourseError, OSError) as error:
            raise click.ClickException(reason(error)) from error


def reason(error: CourseError | OSError) -> str:
    """Return an error as text for the terminal; parts of it may come from a student."""
    said = str(error)
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):  # of a whole folder
        *_, said = error.args[0][0]
    elif isinstance(error, OSError) and error.filename:
        said = f"{error.filename}: {error.strerror}"
    return "\n".join(map(printable, said.splitlines()))


@click.group(cls=Commands, epilog=f"\b\nThe manual: {manual()}")
@click.option("--course", "name", default="", help="Which of several installed courses is meant.")
@click.pass_context
def main(ctx: click.Context, name: str) -> None:
    """Study lessons; build, check and grade them.

    LESSON is the name of a lesson's folder.
    """
    ctx.obj = name
    # nbgrader starts `alembic` by name when it makes a gradebook
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    if isinstance(sys.stdout, TextIOWrapper):  # on Windows a file may not hold every letter
        sys.stdout.reconfigure(errors="replace")


def the_course() -> Path:
    """Return the folder of the course around this one; from now on its package can be imported."""
    root = find_root(Path.cwd())
    make_importable(root)
    return root


def chosen(names: tuple[str, ...]) -> list[Lesson]:
    """Return the named lessons of this folder's course, or all."""
    return choose(the_course(), names)


def the_project() -> "Project":
    """Return the project that this folder belongs to."""
    from autograde.workspace.project import find_project

    project = find_project(Path.cwd(), click.get_current_context().obj)
    if (project.root / CURRICULUM).is_file():  # its author's own folder
        make_importable(project.root)
    return project


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--plain", is_flag=True, help=PLAIN)
def init(folder: Path, plain: bool) -> None:
    """Make a course that builds and grades as it is."""
    from autograde.authoring.new import init as make

    lesson = make(folder, plain=plain)
    print(f"{folder} holds the course {read_course(folder).title!r} with {lesson.name}.")
    print(f"Next: cd {quote(str(folder))}; autograde build. Then write your own lesson in")
    print(f"{lesson.folder.relative_to(folder)}, over all that says REPLACE.")
    print(f"How to write a lesson: {manual() / 'authoring.md'}")


@main.command()
@click.argument("lesson")
@click.option("--plain", is_flag=True, help=PLAIN)
def new(lesson: str, plain: bool) -> None:
    """Create a lesson that builds and grades as it is."""
    from autograde.authoring.new import new as make

    root = the_course()
    folder = make(root, lesson, plain=plain).folder.relative_to(root)
    print(f"{folder}/ holds the lesson; {CURRICULUM} has its entry.")
    print(f"Next: autograde build {lesson}; then write over what says REPLACE.")
    print(f"How to add an exercise: {manual() / 'authoring.md'}")


@main.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--check", is_flag=True, help="Change nothing; fail if out of date.")
def build(lessons: tuple[str, ...], check: bool) -> None:
    """Build notebooks/ and solutions/ from source/.

    Without names, what is unchanged since it was built is left as it is.
    """
    wanted = chosen(lessons)  # report a wrong name before importing anything slow
    from autograde.authoring import build as building
    from autograde.authoring.check import drafts

    if check:
        if stale := [why for lesson in wanted if (why := building.out_of_date(lesson))]:
            print("\n".join(stale))
            raise click.ClickException("out of date; run: autograde build")
        return
    for lesson in wanted:
        if lessons or building.out_of_date(lesson):
            said = ["built", *building.build(lesson)]
        else:
            said = ["unchanged"]
            building.recognise(lesson)
        for each in (*said, *drafts(lesson)):
            print(f"{lesson.name}: {each}")


@main.command()
@click.argument("names", metavar="[LESSON|EXERCISE]...", nargs=-1)
@click.option("--measure", is_flag=True, help="Measure tolerances first.")
def check(names: tuple[str, ...], measure: bool) -> None:
    """Test the rubrics on right and wrong answers."""
    wanted = choose_exercises(the_course(), names)  # report a wrong name at once
    from autograde.authoring.check import check_and_show
    from autograde.authoring.measure import measure as measure_lesson

    faulty = 0
    for lesson, named in wanted.items():
        if measure:
            measure_lesson(lesson, named)
            print(f"{lesson.name}: measured")
        faulty += not check_and_show(lesson, named)
    if not faulty:
        print("No faults. Cells without an ID, such as figures, are run by autograde build.")
    sys.exit(1 if faulty else 0)


@main.command()
@click.argument("exercise")
@click.argument("name")
def variant(exercise: str, name: str) -> None:
    """Print one variant of an exercise in full."""
    from autograde.authoring.variants import find_variant

    print(find_variant(the_course(), exercise, name).code, end="")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("lessons", metavar=SOME, nargs=-1)
def release(folder: Path, lessons: tuple[str, ...]) -> None:
    """Copy the lessons for students to a new folder."""
    from autograde.authoring import release as releasing

    wanted = chosen(lessons)
    releasing.release(wanted[0].root, wanted, folder)
    _print_drafts(wanted)
    print(f"released to {folder}: {', '.join(lesson.name for lesson in wanted)}")
    if not (folder / releasing.PACKAGE).is_dir():
        print("It does not hold the grader: students install that and run `autograde lab` there.")


@main.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--apart", is_flag=True, help="Build the grader's wheel apart from the course's.")
def dist(lessons: tuple[str, ...], apart: bool) -> None:
    """Build the wheel that a student installs.

    It goes to dist/, and the grader is in it. For two courses on one machine the grader is in a
    wheel of its own, in dist/apart/.
    """
    from autograde.authoring import dist as building

    wanted = chosen(lessons)
    root = wanted[0].root
    target = root / "dist" / "apart" if apart else root / "dist"
    wheels = building.dist(root, wanted, target, apart=apart)
    _print_drafts(wanted)
    print(*wheels, sep="\n")


def _print_drafts(lessons: list[Lesson]) -> None:
    from autograde.authoring.check import drafts

    for lesson in lessons:
        for draft in drafts(lesson):
            print(f"{lesson.name}: {draft}")


@main.command()
@click.argument("target", type=click.Path(path_type=Path), required=False)
def site(target: Path | None) -> None:
    """Write the lessons as pages to build/site.

    TARGET is another folder to write them to.
    """
    from autograde.authoring.site import build_site

    root = the_course()
    target = target or root / "build" / "site"
    build_site(root, target)
    print(f"Open {target / 'index.html'}")


@main.command()
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


@main.command()
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
    from autograde import terminal
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


@main.command(context_settings={"ignore_unknown_options": True})
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


@main.command(context_settings={"ignore_unknown_options": True})
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


@main.command()
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


@main.command()
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


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar=FURTHER)
def lab(options: tuple[str, ...]) -> None:
    """Open JupyterLab on your copy of the lessons.

    What follows is passed on to JupyterLab: --no-browser, say.
    """
    from autograde.server import is_root
    from autograde.workspace.lab import open_lab
    from autograde.workspace.update import prepare

    project = the_project()
    newer = prepare(project)
    print(f"your copy of the lessons: {project.work}")
    if newer:
        print(f"new versions of {', '.join(newer)} are available; run: autograde update")
    if is_root():
        print("you are root, so all code in these notebooks runs as root; another user is safer")
    open_lab(project, options)


@main.command()
def update() -> None:
    """Update your lessons; your answers are kept."""
    from autograde.workspace.update import update as bring

    project = the_project()
    changes = bring(project)
    for change in changes:
        print(f"{change.lesson}: {change.said}")
    if not changes:
        print("nothing new")
    sys.exit(1 if any(change.failed for change in changes) else 0)


@main.command()
def progress() -> None:
    """Show your progress, lesson by lesson."""
    from autograde.progress import of_course

    lessons = of_course(the_project().work)
    for lesson in lessons:
        print(f"{lesson.lesson}: {lesson.in_words()}")
    if not lessons:
        print("you have not opened the lessons yet; run: autograde lab")


@main.command("self")
@click.argument("lesson", metavar="LESSON|FILE")
@click.option("--no-open", is_flag=True, help="Write the page without opening it.")
def grade_self(lesson: str, no_open: bool) -> None:
    """Grade a saved notebook as your teacher will.

    Name a lesson, or a file. It uses the practice inputs. Your teacher's grader draws different
    ones; a correct answer passes both.
    """
    from autograde.workspace.grade_self import grade_self

    project = the_project()
    said, page = grade_self(project, project.saved(lesson))
    print("\n".join(said))
    print(f"feedback: {page}")
    if not no_open:
        webbrowser.open(page.as_uri())


@main.command()
@click.argument("lessons", metavar=SOME, nargs=-1)
@click.option("--yes", is_flag=True, help="Submit without asking about warnings.")
@click.option("--exchange", is_flag=True, help="Submit through nbgrader's exchange.")
def submit(lessons: tuple[str, ...], yes: bool, exchange: bool) -> None:
    """Check lessons and pack them for submission.

    Without names, it takes the lessons that you have begun.
    """
    from autograde.workspace import submit as handing_in

    project = the_project()
    checked = handing_in.choose(project, lessons)
    for each in checked:
        print("\n".join(each.in_words))
    if refused := [each.lesson for each in checked if each.refused]:
        raise click.ClickException(f"not submitted: {', '.join(refused)} could not be graded")
    if any(each.warnings for each in checked) and not yes and not click.confirm("Submit anyway?"):
        raise click.ClickException("nothing was submitted; run `autograde submit` again when ready")
    if not exchange:
        print(f"packed: {handing_in.pack(project, checked)}")
        print("Upload this file where your teacher collects the work, for example in Moodle.")
    elif failed := handing_in.exchange(project, checked):
        raise click.ClickException(f"nbgrader did not take {', '.join(failed)}; see above")


if __name__ == "__main__":
    main()
