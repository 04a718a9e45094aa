"""Take rights from the kernel's own process before it runs anything of the student's."""

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Iterator, Sequence

from autograde.sandbox.both_sides import HOME, MACHINES, SOCKETS, KernelLimits
from autograde.sandbox.inside import system


def confine(limits: KernelLimits) -> None:
    """Set limits; give up capabilities, new privileges, files and system calls that lead out."""
    _limit(resource.RLIMIT_CPU, limits.cpu_seconds)
    _limit(resource.RLIMIT_AS, limits.address_bytes_a_process)
    _limit(resource.RLIMIT_NPROC, limits.processes)
    _limit(resource.RLIMIT_NOFILE, limits.files_a_process)
    _limit(resource.RLIMIT_FSIZE, limits.scratch_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    system.drop_capabilities()
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    _restrict_files()
    _filter_calls()


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


# Landlock is a part of Linux by which a process gives up rights to files for good
# (https://docs.kernel.org/userspace-api/landlock.html). Should something writable ever be mounted
# by mistake, it still keeps the kernel from it.
EXECUTE, WRITE, READ, LIST, REMOVE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5
MAKE_SOCKET, TRUNCATE, DEVICE_CONTROL = 1 << 9, 1 << 14, 1 << 15
# The rights that each version added; asking an older one for newer rights is an error.
RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: DEVICE_CONTROL}
SCOPES_SINCE = 6
"""From this version on, signals and abstract sockets of processes outside are out of reach."""
ALLOWED = {
    "/": EXECUTE | READ | LIST,
    "/dev": WRITE | TRUNCATE | DEVICE_CONTROL,
    SOCKETS: MAKE_SOCKET | REMOVE,
    **dict.fromkeys((HOME, "/tmp", "/dev/shm"), -1),  # noqa: S108 (the kernel's own)
}
CREATE, ADD_RULE, RESTRICT = 444, 445, 446
ASK_VERSION, BENEATH = 1, 1


def _restrict_files() -> None:
    """Limit this process and its children to ALLOWED; does nothing where Linux lacks Landlock."""
    try:
        has = system.call(CREATE, None, 0, ASK_VERSION)
    except OSError:
        return
    handled = sum(rights for since, rights in RIGHTS.items() if since <= has)
    scopes = 3 if has >= SCOPES_SINCE else 0
    fields = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    rules = system.call(CREATE, fields, len(fields), 0)
    for folder, allowed in ALLOWED.items():
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed & handled, place)
        system.call(ADD_RULE, rules, BENEATH, rule, 0)
        os.close(place)
    system.call(RESTRICT, rules, 0)
    os.close(rules)


# Numbers of system calls: (x86_64, aarch64). They allocate memory that no limit counts, reach
# other processes or parts of Linux itself, make namespaces and mounts, or tell which parts of a
# file Linux has in memory, as whoever has read it before left it.
FORBIDDEN = {
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "fanotify_init": (300, 262),
    "mincore": (27, 232), "cachestat": (451, 451), "io_setup": (206, 0),
}  # fmt: skip
CLONE, CLONE3, SOCKET, SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
PRLIMIT = (302, 261)
FIRST_PROCESS = 1
SCHEDULING = ((142, 118), (144, 119), (203, 122), (314, 274))
"""sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr: refused for the first
process, so that the others cannot slow what watches them."""
PRIORITIES = (((141, 140), 0), ((251, 30), 1))
"""setpriority and ioprio_set, each with the first argument that stands for a single process.

For all processes of a user or group both are refused: the first process may be one of them.
"""
FADVISE, MADVISE = (221, 223), (28, 233)
COLD, PAGEOUT = 20, 21
"""Advice to madvise that has Linux drop pages of files from memory, for all kernels."""
PREADV2, NOWAIT = (327, 286), 8
"""preadv2, and its flag for reading only what is in memory, which would tell what is."""
SETSOCKOPT = (54, 208)
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF = 1, 7, 8
FAMILIES = (1, 2, 10, 16)
"""Allowed sockets: local, IPv4, IPv6 and netlink, all confined by the network namespace."""
NAMESPACES = 0x7E020000

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 24, 32
SIXTH_ARGUMENT = 56
IS_ONE_OF, IS_NONE_OF, HAS_BIT_OF = "is one of", "is none of", "has a bit of"

Condition = tuple[int, str, Sequence[int]]
"""An argument of a system call, how it is tested, and against which numbers."""


def _filter_calls() -> None:
    column, architecture = MACHINES[platform.machine()]
    program = b"".join(_program(column, architecture))
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    filters = ctypes.create_string_buffer(header, len(header))
    system.prctl(system.PR_SET_SECCOMP, 2, ctypes.cast(filters, ctypes.c_void_p))


def _program(column: int, architecture: int) -> list[bytes]:
    """Return the filter: each step is one instruction, or a test that skips what follows it."""
    steps = [_step(LOAD, ARCHITECTURE), _step(EQUAL, architecture, 1, 0), _step(RETURN, KILL)]
    steps += [_step(LOAD, NUMBER), _step(AT_LEAST, 0x40000000, 0, 1), _step(RETURN, KILL)]
    for numbers, error, *conditions in _refusals():
        steps += _refused(numbers[column], error, conditions)
    return [*steps, _step(RETURN, ALLOW)]


def _refusals() -> Iterator[tuple[tuple[int, int], int, *tuple[Condition, ...]]]:
    """Yield a call, the error that it gets, and conditions on its arguments that must all hold."""
    for numbers in FORBIDDEN.values():
        yield numbers, errno.EPERM
    # a filter cannot see clone3's flags; without it, libraries fall back to clone
    yield CLONE3, errno.ENOSYS
    yield CLONE, errno.EPERM, (FIRST_ARGUMENT, HAS_BIT_OF, [NAMESPACES])
    for call in (SOCKET, SOCKETPAIR):
        yield call, errno.EAFNOSUPPORT, (FIRST_ARGUMENT, IS_NONE_OF, FAMILIES)
    # a process may change its own limits, not those of others
    yield PRLIMIT, errno.EPERM, (FIRST_ARGUMENT, IS_NONE_OF, [0])
    for call in SCHEDULING:
        yield call, errno.EPERM, (FIRST_ARGUMENT, IS_ONE_OF, [FIRST_PROCESS])
    for call, one_process in PRIORITIES:
        yield call, errno.EPERM, (FIRST_ARGUMENT, IS_NONE_OF, [one_process])
        yield call, errno.EPERM, (SECOND_ARGUMENT, IS_ONE_OF, [FIRST_PROCESS])
    # nobody has to follow advice: it succeeds, and does nothing
    yield FADVISE, 0
    yield MADVISE, 0, (THIRD_ARGUMENT, IS_ONE_OF, [COLD, PAGEOUT])
    yield PREADV2, errno.EOPNOTSUPP, (SIXTH_ARGUMENT, HAS_BIT_OF, [NOWAIT])
    # what sockets hold is no process's memory: asking for larger buffers succeeds, and does nothing
    of_sockets = SECOND_ARGUMENT, IS_ONE_OF, [SOL_SOCKET]
    yield SETSOCKOPT, 0, of_sockets, (THIRD_ARGUMENT, IS_ONE_OF, [SO_SNDBUF, SO_RCVBUF])


def _refused(number: int, error: int, conditions: Sequence[Condition]) -> list[bytes]:
    """Return the steps that refuse a call if all conditions hold, or else go on with its number."""
    steps = [_step(RETURN, REFUSE | error), _step(LOAD, NUMBER)]
    for argument, how, values in reversed(conditions):
        go_on, tests = len(steps) - 1, [_step(LOAD, argument)]
        for number_of_test, value in enumerate(values, start=1):
            left = len(values) - number_of_test
            if how == IS_NONE_OF:
                tests.append(_step(EQUAL, value, left + go_on, 0))
            else:
                code = ANY_BIT if how == HAS_BIT_OF else EQUAL
                tests.append(_step(code, value, left, 0 if left else go_on))
        steps = tests + steps
    return [_step(EQUAL, number, 0, len(steps)), *steps]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Return an instruction; a test skips `then` steps if it holds, or else `otherwise`."""
    return struct.pack("HBBI", code, then, otherwise, value)
