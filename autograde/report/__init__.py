"""The class report: scores, misconceptions and rubric lines of a whole class.

classdata     a class in two tables, students and their lines, from gradebook and graded notebooks
counts        all that is counted over them
charts        its pictures
class_report  the page, and the tables as CSV
"""
