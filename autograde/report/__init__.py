"""The class report: scores, misconceptions and rubric lines of a whole class.

classdata     what a class has earned, from the gradebook and the graded notebooks
itemstats     what the marks say of an exercise
charts        its pictures; actions: what a teacher may want to do
class_report  the page, and its tables for a terminal; a new column stands in both
"""
