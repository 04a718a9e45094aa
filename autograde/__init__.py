"""Teaching notebooks on attention, and the grader behind them.

The folder says which code is in which zone of trust:

student/    what a lesson imports; runs in the student's kernel
verdict/    data in, data out; used on both sides
kernels/    starts kernels and limits them; around untrusted code
grader/     trusted: expected values, execution, judging, the gradebook, feedback
working/    the student's commands on the working copy
authoring/  lesson text to notebooks, and the checks on both
"""

__version__ = "0.1.0"
