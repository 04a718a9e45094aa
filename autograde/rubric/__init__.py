"""What a rubric asks and records, and how that is judged and shown. Needs nothing of the grader."""
