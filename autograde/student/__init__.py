"""What a lesson imports. Runs in the student's kernel; never imports the grader."""

from autograde.student.figures import show
from autograde.student.practice import hint, why
from autograde.student.rubric import rubric
from autograde.student.stubs import explain_stubs
from autograde.student.tables import beside, table

explain_stubs()

__all__ = ["beside", "hint", "rubric", "show", "table", "why"]
