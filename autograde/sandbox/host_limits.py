"""Limits that Linux counts for all processes of a user: one kernel can use them up for others.

ZeroMQ, through which a kernel and its client talk, aborts its process where it gets no more.
"""

import resource
import select
import socket


def watches_used_up() -> str:
    """Return "epoll watches" if this user gets no more of them, else ""."""
    try:
        with select.epoll() as some, socket.socket(socket.AF_UNIX) as each:
            some.register(each)
    except OSError:
        return "epoll watches"
    return ""


def used_up(files: int) -> str:
    """Return what this user gets no more of, with so many open files a process; "" if enough.

    Call it in a process of one thread: for a moment that limit holds for this process itself.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(ours, [b"+"], [theirs.fileno()])
    except OSError:
        return "descriptors on their way"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    return watches_used_up()
