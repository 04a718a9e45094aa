"""The student's own commands on the working copy of the lessons: lab, update, self, submit.

project     the lessons that a student has, and the folder of the work
update      puts lessons there and brings them up to date; merge: a single notebook
lab         JupyterLab on them
jupyter/    JupyterLab's settings, what each kernel runs first, and the script and style of its page
grade_self  `autograde self`
submit      `autograde submit`
"""
