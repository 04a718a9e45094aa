"""Checks of outcomes that can be right in many ways.

Each is a pure function from a recorded outcome to readings: a number measured, the number wanted,
and the limit of their difference. The same functions serve practice and grading.
"""

from autograde.rubric.checks import of_dropout, of_results
from autograde.rubric.checks.readings import CHECKS

__all__ = ["CHECKS", "of_dropout", "of_results"]
