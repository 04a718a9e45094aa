"""This course's own package: what its lessons import beyond the grader's words.

The grader knows nothing of it: nothing in `autograde` imports it.
"""
