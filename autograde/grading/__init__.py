"""Trusted: expected values, execution, judging, the gradebook, feedback."""
