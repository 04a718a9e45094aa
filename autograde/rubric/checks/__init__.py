"""Checks of outcomes that can be right in many ways.

Each is a pure function from a recorded outcome to readings: a number measured, the number wanted,
and the limit of their difference. The same functions serve practice and grading.
"""

from importlib import import_module

from autograde.rubric.checks.readings import CHECKS, Check

MODULES = ("of_dropout", "of_results", "of_tokens")


def all_checks() -> dict[str, Check]:
    """Return every check by its name; their modules, which need torch, are imported here."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
    return CHECKS
