"""Rubrics: their questions, recordings, verdicts and panels. Independent of the grader."""
