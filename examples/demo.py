"""The whole way once, in a scratch course: release, collect, grade, feedback, report."""

import os
import shutil
from pathlib import Path

from make_class import make_class

from autograde.authoring.build import adopt
from autograde.authoring.release import ENVIRONMENT, PACKAGE, release
from autograde.cli import main
from autograde.course.config import CONFIG
from autograde.course.lessons import lessons, read_course
from autograde.report.class_report import write_report
from autograde.sandbox.wall import missing

HERE = Path(__file__).resolve().parent.parent
SCRATCH = HERE / "demo-course"


def demo() -> None:
    """Make the scratch course anew, and grade a class in it."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir()
    ours = read_course(HERE).package
    for folder in ("source", "notebooks", "solutions", "docs", PACKAGE, ours):
        shutil.copytree(HERE / folder, SCRATCH / folder)
    for name in (*ENVIRONMENT, CONFIG):
        shutil.copy(HERE / name, SCRATCH)
    course = lessons(SCRATCH)
    for lesson in course.values():
        adopt(lesson)
    release(SCRATCH, list(course.values()), SCRATCH / "released")
    print(f"released to {SCRATCH / 'released'}")
    large = next(iter(course.values()))
    for lesson in course.values():
        students = make_class(lesson, SCRATCH, small=lesson is not large)
        print(f"{len(students)} students submitted {lesson.name}")
    os.chdir(SCRATCH)
    if problem := missing():
        print(f"{problem}\nThe sample class is our own, so it is graded without a wall.")
    try:
        main(["grade", *(["--no-wall"] if problem else [])])
    finally:  # the command ends with an exit code
        print(f"report:    {write_report(large)}")


if __name__ == "__main__":
    demo()
