"""From a lesson's text to its notebooks, and the checks on both.

sources     the lesson's text and the notebook made from it; marks: BEGIN SOLUTION and the others
variants    right and wrong answers; mutants: near misses made from the lesson's own
measure     tolerances, from how far apart right answers lie
expected    the practice data: the key of each exercise, with its known mistakes
lint        the rules of a lesson
check       judges all variants; what `autograde check` shows, and a build refuses
build       student version and solution, by nbgrader, where the lesson has changed
new         a lesson or a course to start from
release     what students get, as a folder; dist: as a wheel; site: as pages to read
"""
