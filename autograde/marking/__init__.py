"""Marking written answers, question by question, on a page of the Jupyter server.

answers   what the gradebook and the graded notebooks hold of a question; saves a mark
page      the page's handlers, a Jupyter server extension, and the server of `autograde mark`
"""

from autograde.marking.page import _jupyter_server_extension_points

__all__ = ["_jupyter_server_extension_points"]
