"""The warm template: one process, one thread, no secrets; forks a kernel for each request.

    python -m autograde.sandbox.inside.template_server SOCKET UID [try]

SOCKET is the number of an open socket on which requests arrive, each with descriptors: the line
between the kernel and the grader, and the door of the kernel's control group if it has one.
It ends when no grader is left at the other end.
With `try` it only looks whether a kernel could be walled here.
"""

import gc
import json
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from itertools import count
from typing import Any

from autograde.sandbox.agreed import KernelLimits
from autograde.sandbox.imports import many_imports
from autograde.sandbox.inside import enter, first
from autograde.sandbox.inside.confine import confine

MAX_REQUEST = 65536
MAX_DESCRIPTORS = 2
ITSELF = b"0"
MORE = 4
"""The index of the first request that only a class makes: two workers ask for two kernels each."""


def main() -> None:
    if os.getuid() == 0:
        enter.become_nobody(int(sys.argv[2]))
    _try_wall()
    if "try" in sys.argv:
        return
    requests = socket.socket(fileno=int(sys.argv[1]))
    with many_imports():
        from autograde.sandbox.inside import warm

        warm.import_late()
        warm.try_lesson()
    _settle()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in count():
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST, MAX_DESCRIPTORS)
        if not message:
            return
        if os.fork() == 0:
            _become_kernel(json.loads(message), *descriptors, requests=requests)
        for descriptor in descriptors:
            os.close(descriptor)
        if number == MORE:  # a single submission should not wait for this
            warm.try_the_rest()
            _settle()


def _settle() -> None:
    """Prepare for forks: the garbage collector never touches what is here now, so it stays shared.

    Raises:
        SystemExit: there is more than one thread.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit("the template has more than one thread, so nothing can be forked from it")
    gc.disable()
    gc.freeze()


def _try_wall() -> None:
    """End with the reason when a kernel cannot be walled here."""
    child = os.fork()
    if child == 0:
        try:
            enter.leave()
            if (inner := os.fork()) == 0:
                enter.furnish(2**20)
                enter.lock_sockets()
                confine(KernelLimits())
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit("a kernel cannot be given a wall of its own here")


def _become_kernel(
    request: dict[str, Any], number: int, *door: int, requests: socket.socket
) -> None:
    """In the child: leave the template's namespaces; the grandchild is first in the new ones."""
    line = socket.socket(fileno=number)
    try:
        for each in door:
            with suppress(OSError):  # this Linux does not let it in; its other limits hold
                os.write(each, ITSELF)
            os.close(each)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), stream)
        enter.leave()
        if os.fork() != 0:
            os._exit(0)
        limits = KernelLimits(**request["limits"])
        enter.furnish(limits.scratch_bytes)
        from autograde.sandbox.inside import kernel  # long imported, by the template

        started = first.start(lambda ready: kernel.run(request, limits, ready))
        first.serve(line, *started, limits)
    except BaseException as error:
        line.send(json.dumps({"failed": repr(error)}).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
