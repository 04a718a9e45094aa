"""The command `autograde`: its groups of commands, and how each of them ends."""

import os
import shutil
import sys
import sysconfig
from io import TextIOWrapper
from typing import Any

import click

from autograde.commands import for_a_class, for_authors, for_students
from autograde.course.lessons import CourseError
from autograde.installed import manual
from autograde.student_text import INTERRUPTED, printable

GROUPS = (for_students.commands, for_a_class.commands, for_authors.commands)
"""The commands in the order in which the help lists them."""


class Commands(click.Group):
    """Ends a command with a readable message when something cannot be done."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for group in GROUPS:
            about = {name: each.get_short_help_str(60) for name, each in group.commands.items()}
            with formatter.section(str(group.name)):
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


for group in GROUPS:
    for name, command in group.commands.items():
        main.add_command(command, name)


if __name__ == "__main__":
    main()
