"""Checks of outcomes that can be right in many ways.

Each is a pure function from a recorded outcome to readings: a number measured, the number wanted,
and the limit of their difference. The same functions serve practice and grading.
"""

from importlib import import_module

from autograde.rubric.checks.readings import CHECKS, Check


def check_called(name: str) -> Check:
    """Return a check: one of a course's package, once that is imported, or one of the grader's.

    Raises:
        KeyError: there is none of this name.
    """
    import_module("autograde.rubric.checks.of_generators")
    return CHECKS[name]
