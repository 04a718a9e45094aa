"""The values that a rubric can record: to plain data and back, compared, and shown."""
