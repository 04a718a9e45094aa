"""Take rights from the kernel's own process before it runs anything of the student's."""

import ctypes
import errno
import os
import platform
import resource
import struct

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
"""sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr: of the first process, which
watches the others, nobody may change when and where it runs."""
PRIORITIES = (((141, 140), 0), ((251, 30), 1))
"""setpriority and ioprio_set, each with the first argument that stands for a single process.

For all processes of a user or group both are refused: the first process may be one of them.
"""
FADVISE, MADVISE = (221, 223), (28, 233)
COLD, PAGEOUT = 20, 21
"""Advice that makes Linux forget parts of files that all kernels can read."""
PREADV2, NOWAIT = (327, 286), 8
"""To read only what is in memory says what that is."""
SETSOCKOPT = (54, 208)
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF = 1, 7, 8
FAMILIES = (1, 2, 10, 16)
"""Allowed sockets: local, IPv4, IPv6 and netlink, all confined by the network namespace."""
NAMESPACES = 0x7E020000

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 24, 32
SIXTH_ARGUMENT = 56


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
    for numbers in FORBIDDEN.values():
        steps += _refused(numbers[column], errno.EPERM)
    # a filter cannot see clone3's flags; without it, libraries fall back to clone
    steps += _refused(CLONE3[column], errno.ENOSYS)
    namespaces = [_step(LOAD, FIRST_ARGUMENT), _step(ANY_BIT, NAMESPACES, 0, 1)]
    steps += _when(CLONE[column], [*namespaces, _error(errno.EPERM), _allow()])
    families = [_step(EQUAL, family, len(FAMILIES) - n, 0) for n, family in enumerate(FAMILIES)]
    family_test = [_step(LOAD, FIRST_ARGUMENT), *families, _error(errno.EAFNOSUPPORT), _allow()]
    for call in (SOCKET, SOCKETPAIR):
        steps += _when(call[column], family_test)
    # a process may change its own limits, not those of others
    others = [_step(LOAD, FIRST_ARGUMENT), _step(EQUAL, 0, 1, 0), _error(errno.EPERM), _allow()]
    steps += _when(PRLIMIT[column], others)
    for call in SCHEDULING:
        steps += _when(call[column], [_step(LOAD, FIRST_ARGUMENT), *_refused_for(FIRST_PROCESS)])
    for call, one_process in PRIORITIES:
        kind = [_step(LOAD, FIRST_ARGUMENT), _step(EQUAL, one_process, 1, 0), _error(errno.EPERM)]
        who = [_step(LOAD, SECOND_ARGUMENT), *_refused_for(FIRST_PROCESS)]
        steps += _when(call[column], [*kind, *who])
    # nobody has to follow advice: it succeeds, and does nothing
    steps += _refused(FADVISE[column], 0)
    steps += _when(MADVISE[column], [
        _step(LOAD, THIRD_ARGUMENT), _step(EQUAL, COLD, 2, 0), _step(EQUAL, PAGEOUT, 1, 0),
        _allow(), _error(0),
    ])  # fmt: skip
    nowait = [_step(LOAD, SIXTH_ARGUMENT), _step(ANY_BIT, NOWAIT, 0, 1)]
    steps += _when(PREADV2[column], [*nowait, _error(errno.EOPNOTSUPP), _allow()])
    # what sockets hold is no process's memory: asking for larger buffers succeeds, and does nothing
    steps += _when(SETSOCKOPT[column], [
        _step(LOAD, SECOND_ARGUMENT), _step(EQUAL, SOL_SOCKET, 0, 3),
        _step(LOAD, THIRD_ARGUMENT), _step(EQUAL, SO_SNDBUF, 2, 0),
        _step(EQUAL, SO_RCVBUF, 1, 0), _allow(), _error(0),
    ])  # fmt: skip
    return [*steps, _allow()]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _error(number: int) -> bytes:
    return _step(RETURN, REFUSE | number)


def _allow() -> bytes:
    return _step(RETURN, ALLOW)


def _refused_for(value: int) -> list[bytes]:
    return [_step(EQUAL, value, 0, 1), _error(errno.EPERM), _allow()]


def _when(number: int, steps: list[bytes]) -> list[bytes]:
    return [_step(EQUAL, number, 0, len(steps)), *steps]


def _refused(number: int, error: int) -> list[bytes]:
    return _when(number, [_error(error)])
