"""System calls that Python does not offer; each raises OSError when it fails."""

import ctypes
import os

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NET = 0x10000000, 0x20000000, 0x40000000

READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8
NO_LINKS = 256
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP = 1, 4, 8, 22
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITIES_VERSION_3 = 0x20080522
CHANGE_USER = 1 << 6 | 1 << 7
"""The capabilities CAP_SETGID and CAP_SETUID."""

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that the C library has no function for."""
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *plain))
    _checked(result, f"system call {number}")
    return result


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _checked(_libc.unshare(flags), "new namespaces")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount a file system, or change a mount."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(result, f"mounting {target}")


def unmount(target: str) -> None:
    """Take a mount away; what is open in it stays open."""
    _checked(_libc.umount2(target.encode(), DETACH), f"unmounting {target}")


def prctl(option: int, *arguments: int | ctypes.c_void_p) -> None:
    """Change an attribute of this process."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    longs = [a if isinstance(a, ctypes.c_void_p) else ctypes.c_ulong(a) for a in padded]
    _checked(_libc.prctl(option, *longs), f"prctl {option}")


def drop_capabilities() -> None:
    """Give up every capability of this thread, for good."""
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(last + 1):
        prctl(PR_CAPBSET_DROP, capability)
    keep_capabilities(0)


def keep_capabilities(few: int) -> None:
    """Give up the capabilities of this thread but these few."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)(few, few)), "dropping capabilities")
