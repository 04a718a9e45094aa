"""What a rubric asks and records, how that is judged and shown. Independent of the grader."""
