"""Rubrics: their questions, recordings, verdicts and panels. Independent of the grader.

probes/         what a rubric cell can ask; each call adds a line
  lines         `rubric`, which runs a cell, and the probes of functions; layers: those of layers
  recorder      calls the answer and records each outcome; calls: arguments, their text, errors
  draws         inputs from a seed; weights: loads drawn ones into a layer
  package_calls notices an answer that has a package do its work; torch_functions: torch's
session         where a recording goes: to practice, or to the grader
lesson_names    the lesson's own names, as a rubric reads them; names: those that a cell uses
runs            the cells that have run in this kernel
recording       lines, cases and outcomes as plain data
key             the same of the reference, with tolerances and known mistakes
kinds           how each kind of line is compared; checks: results that can be right in many ways
judge           from a recording and a key to a verdict
misconceptions  the beliefs behind a wrong answer, from the lesson's wrong variants
slips           those that any answer can have, whatever the exercise
panel           shows a verdict as text and HTML
"""
