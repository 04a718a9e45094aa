"""Checks of this course's results that can be right in many ways."""
