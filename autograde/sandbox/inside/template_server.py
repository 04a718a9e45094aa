"""The warm template: one process, one thread, no secrets; forks a kernel for each request.

    python -m autograde.sandbox.inside.template_server SOCKET UID FIRST COUNT PACKAGE [try]

SOCKET is the number of an open socket on which requests arrive, each with descriptors: the line
between the kernel and the grader, and cgroup.procs of the kernel's control group if it has one.
If root starts it, it becomes the user UID, and kernels become COUNT users from FIRST on in turn.
It ends when no grader is left at the other end.
PACKAGE is that of the course, or empty; it is imported.
With `try` it only looks whether a kernel could be walled here.
"""

import errno
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

from autograde.sandbox.both_sides import KernelLimits
from autograde.sandbox.host_limits import used_up
from autograde.sandbox.imports import many_imports
from autograde.sandbox.inside import namespaces, supervisor
from autograde.sandbox.inside.confine import confine

MAX_REQUEST = 65536
MAX_DESCRIPTORS = 2
ITSELF = b"0"
OF_A_CLASS = 4
"""With this request, counted from 0, a class is graded: two workers ask for two kernels at first.

From then on it is worth importing what only some kernels need.
"""


def main() -> None:
    uid, first_uid, uids = map(int, sys.argv[2:5])
    if os.getuid() == 0:
        namespaces.become_nobody(uid)
    else:
        uids = 0
    _try_wall(first_uid if uids else None)
    package, *options = sys.argv[5:]
    if "try" in options:
        return
    requests = socket.socket(fileno=int(sys.argv[1]))
    with many_imports():
        from autograde.sandbox.inside import warm

        warm.import_late()
        warm.import_lesson(package)
    _settle()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in count():
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST, MAX_DESCRIPTORS)
        if not message:
            return
        own_uid = first_uid + number % uids if uids else None
        if _fork_or_say(descriptors[0]) == 0:
            _become_kernel(json.loads(message), own_uid, *descriptors, requests=requests)
        for descriptor in descriptors:
            os.close(descriptor)
        if number == OF_A_CLASS:  # a single submission should not wait for this
            warm.try_the_rest()
            _settle()


def _fork_or_say(line: int) -> int | None:
    """Fork; if there may be no more processes now, tell the grader so."""
    try:
        return os.fork()
    except OSError as error:
        _say_failed(socket.socket(fileno=os.dup(line)), error)
        return None


def _say_failed(line: socket.socket, error: BaseException) -> None:
    with line, suppress(OSError):  # the grader is gone
        line.send(json.dumps({"failed": repr(error)}).encode())


def _settle() -> None:
    """Prepare for forks: the garbage collector never touches what is here now, so it stays shared.

    Raises:
        SystemExit: there is more than one thread.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit("the template has more than one thread, so nothing can be forked from it")
    gc.disable()
    gc.freeze()


def _try_wall(uid: int | None) -> None:
    """End with the reason when a kernel cannot be walled here."""
    child = os.fork()
    if child == 0:
        try:
            if uid is not None:
                namespaces.become_kernel_user(uid)
            namespaces.leave()
            if (inner := os.fork()) == 0:
                namespaces.furnish(2**20)
                namespaces.lock_sockets()
                confine(KernelLimits())
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit("a kernel cannot be given a wall of its own here")


def _become_kernel(
    request: dict[str, Any], uid: int | None, number: int, *procs: int, requests: socket.socket
) -> None:
    """In the child: leave the template's namespaces; the grandchild is first in the new ones."""
    line = socket.socket(fileno=number)
    try:
        for each in procs:
            with suppress(OSError):  # this Linux does not let it in; its other limits hold
                os.write(each, ITSELF)
            os.close(each)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), stream)
        if uid is not None:
            namespaces.become_kernel_user(uid)
        namespaces.leave()
        if os.fork() != 0:
            os._exit(0)
        limits = KernelLimits(**request["limits"])
        if what := used_up(limits.files_a_process):  # a kernel would abort
            raise OSError(errno.ENOSPC, f"the {what} of its user are used up")
        namespaces.furnish(limits.scratch_bytes)
        from autograde.sandbox.inside import kernel  # long imported, by the template

        started = supervisor.start(lambda ready: kernel.run(request, limits, ready))
        supervisor.serve(line, *started, limits)
    except BaseException as error:
        _say_failed(line, error)
    os._exit(0)


if __name__ == "__main__":
    main()
