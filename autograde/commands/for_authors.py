"""The commands for a teacher who writes lessons and hands them out."""

import sys
from pathlib import Path
from shlex import quote

import click

from autograde.commands.chosen import SOME, chosen, the_course
from autograde.course.lessons import CURRICULUM, Lesson, choose_exercises, read_course
from autograde.installed import manual

PLAIN = "An exercise on lists, without NumPy."

commands = click.Group("For teachers, lessons")


@commands.command()
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


@commands.command()
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


@commands.command()
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


@commands.command()
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
        print("No faults. Cells without a name, such as figures, are run by autograde build.")
    sys.exit(1 if faulty else 0)


@commands.command()
@click.argument("exercise")
@click.argument("name")
def variant(exercise: str, name: str) -> None:
    """Print one variant of an exercise in full."""
    from autograde.authoring.variants import find_variant

    print(find_variant(the_course(), exercise, name).code, end="")


@commands.command()
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


@commands.command()
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


@commands.command()
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
