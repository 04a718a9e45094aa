"""A course's folder: its lessons and their files, its package, its configuration of nbgrader.

lessons        the curriculum, read: lessons, exercises, points, and where their files lie
cells          the cells of a notebook that the lesson has named
lesson_files   the files of a lesson, read; data_files: those that travel with its notebook
versions       the versions of a lesson that this course has built; built: whether it was since
package        what the lessons import beside the grader
config         nbgrader's configuration, and its converters
"""
