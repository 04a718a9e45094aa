"""Lessons as notebooks, and the grader behind them: for any course.

course/     a course's folder: its lessons, their files and versions, its package
values/     the values that a rubric can record: compared, packed and shown
rubric/     what a rubric can ask, what it records, how that is judged and shown
notebook/   what else a lesson imports: practice, progress, pictures, sliders
sandbox/    warm kernels behind a wall, for untrusted code
grading/    a submission's way from its bytes to the gradebook and its feedback
authoring/  lesson text to notebooks, and the checks on both
marking/    written answers, marked one question at a time on a page of the Jupyter server
lms/        submissions from a learning management system, grades back to it
report/     the class report
workspace/  the student's own copy: lab, update, submit, self
commands/   the commands, which leave the work to the other rooms

nbgrader_settings is what a course asks of nbgrader; installed finds courses that came in wheels;
cli is the command, server a Jupyter server in its process; grader says which grader this is;
progress is what a student has solved, cards what to remember of it; files writes whole ones;
student_text escapes what a student may have written.
"""

__version__ = "1.0.0"
