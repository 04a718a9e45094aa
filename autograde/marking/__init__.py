"""Marking written answers, question by question, on a page of the Jupyter server."""
