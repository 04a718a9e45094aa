"""Data in, data out: recordings, comparing them, the verdict. Imports nothing of the grader."""
