"""What a lesson imports. Runs in the student's kernel; never imports the grader."""

from autograde.student.canvas import show
from autograde.student.heatmaps import heatmap, panels
from autograde.student.pictures import chart
from autograde.student.practice import hint, progress, why
from autograde.student.query_picture import attention_picture
from autograde.student.rubric import rubric
from autograde.student.sliders import explore
from autograde.student.stubs import explain_stubs
from autograde.student.tables import beside, table
from autograde.student.traces import trace

explain_stubs()

__all__ = [
    "attention_picture",
    "beside",
    "chart",
    "explore",
    "heatmap",
    "hint",
    "panels",
    "progress",
    "rubric",
    "show",
    "table",
    "trace",
    "why",
]
