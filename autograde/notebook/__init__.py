"""The names that a lesson imports. They run in the student's kernel, without the grader.

They compute on one thread. Lessons train small models, which more threads hardly speed up; beside
other busy programs the threads wait for one another, and training takes many times as long. Whoever
wants more calls `torch.set_num_threads` after the import.
"""

from autograde.notebook.asking import case, hint, progress, why
from autograde.notebook.explaining import watch
from autograde.notebook.figures.canvas import chart, show, show_live
from autograde.notebook.figures.sliders import explore
from autograde.notebook.guesses import beside
from autograde.notebook.remembering import recall, remember
from autograde.notebook.tables import table
from autograde.rubric.probes.lines import rubric
from autograde.values.loaded_torch import compute_on_one_thread

watch()
compute_on_one_thread()

__all__ = [
    "beside",
    "case",
    "chart",
    "explore",
    "hint",
    "progress",
    "recall",
    "remember",
    "rubric",
    "show",
    "show_live",
    "table",
    "why",
]
