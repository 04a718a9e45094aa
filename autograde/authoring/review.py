"""Say what is wrong with a lesson, as far as its text and its variants show.

`autograde build` refuses these faults and `autograde check` names them. Only a build runs the cells
without a name as well, and only `check` tries more inputs than those of practice.
"""

import re
from collections.abc import Callable, Iterator

from nbformat import NotebookNode

from autograde.authoring import lint
from autograde.authoring.check import Result
from autograde.authoring.expected import practice_keys
from autograde.authoring.marks import students_version
from autograde.cards import read_card
from autograde.course import CourseError, Lesson
from autograde.data_files import misplaced


def review(
    lesson: Lesson, nb: NotebookNode, judged: Callable[[Lesson], list[Result]]
) -> tuple[list[Result], list[str]]:
    """Return what was found of each exercise, and every fault of the lesson once.

    Faults of the files or the text come alone, because what follows needs a faultless text.

    Args:
        judged: judges the variants.
    """
    if faults := [*misplaced(lesson), *_lint_card(lesson), *lint.lint_source(lesson, nb)]:
        return [], faults
    try:
        practice_keys(lesson)
        results = judged(lesson)
    except CourseError as error:
        return [], re.split(r"\n(?! )", str(error))
    faults = [*lint.lint_variants(lesson), *lint.lint_stubs(lesson, nb)]
    faults += lint.lint_student(nb, students_version(nb))
    faults += [f"{each.exercise}: {fault}" for each in results for fault in each.faults]
    return results, faults


def _lint_card(lesson: Lesson) -> Iterator[str]:
    """Yield the fault of a damaged card."""
    try:
        read_card(lesson.folder)
    except ValueError as error:
        yield str(error)
