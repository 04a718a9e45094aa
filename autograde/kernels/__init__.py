"""Starts the kernels that notebooks of the course run in."""
