"""The commands for students."""

import sys
import webbrowser

import click

from autograde.commands.chosen import FURTHER, SOME, the_project

commands = click.Group("For students")


@commands.command(context_settings={"ignore_unknown_options": True})
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


@commands.command()
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


@commands.command()
def progress() -> None:
    """Show your progress, lesson by lesson."""
    from autograde.progress import of_course

    lessons = of_course(the_project().work)
    for lesson in lessons:
        print(f"{lesson.lesson}: {lesson.in_words()}")
    if not lessons:
        print("you have not opened the lessons yet; run: autograde lab")


@commands.command("self")
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


@commands.command()
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
