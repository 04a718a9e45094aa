"""The namespaces and mounts of one kernel, in the order in which they are made."""

import fcntl
import os
import socket
import struct
import tarfile
from pathlib import Path
from typing import BinaryIO

from autograde.sandbox.both_sides import HOME, SOCKETS
from autograde.sandbox.inside import system

STUDENT = 1000
INODES = 20_000
SOCKET_FOLDER_BYTES = 65536
TERMINALS = 32
MOST = {
    # each namespace within this one would need a user namespace first
    "user/max_user_namespaces": "0",
    "user/max_inotify_instances": "8",
    "user/max_inotify_watches": "8192",
    # what the connections of all kernels and of the host hold together has one limit
    "net/ipv4/tcp_rmem": "4096 16384 16384",
    "net/ipv4/tcp_wmem": "4096 16384 16384",
}
"""Limits of this kernel's namespaces, so that it cannot use up what the host's users share."""
QUIET = system.NO_SETUID | system.NO_DEVICES
SET_FLAGS, GET_FLAGS, UP = 0x8914, 0x8913, 1


def become_nobody(uid: int) -> None:
    """As root, mount /proc, so that kernels can mount theirs; then become an unprivileged user.

    It keeps the right to give each kernel a user of its own.
    """
    system.mount("proc", "/proc", "proc", QUIET | system.NO_PROGRAMS)
    system.prctl(system.PR_SET_KEEPCAPS, 1)
    become(uid)
    system.keep_capabilities(system.CHANGE_USER)
    system.prctl(system.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root


def become(uid: int) -> None:
    """Become another user; the group has the same number."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def become_kernel_user(uid: int) -> None:
    """Become the user whom Linux counts this kernel's use of things for, and stay it."""
    become(uid)
    system.keep_capabilities(0)
    system.prctl(system.PR_SET_DUMPABLE, 1)


def leave() -> None:
    """Leave every namespace of the template; what this process forks is alone in the new ones."""
    outer_user, outer_group = os.getuid(), os.getgid()
    system.unshare(
        system.NEW_USER | system.NEW_MOUNTS | system.NEW_PIDS
        | system.NEW_IPC | system.NEW_NET | system.NEW_UTS
    )  # fmt: skip
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{STUDENT} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{STUDENT} {outer_group} 1")


def furnish(scratch_bytes: int) -> None:
    """Mount what belongs to this kernel alone; called by the first process of its namespace."""
    system.mount("none", "/", None, system.RECURSIVE | system.PRIVATE)
    system.mount("proc", "/proc", "proc", QUIET | system.NO_PROGRAMS)
    for name, value in MOST.items():
        Path("/proc/sys", name).write_text(value)
    scratch = f"size={scratch_bytes},nr_inodes={INODES},mode=755"
    system.mount("scratch", "/scratch", "tmpfs", QUIET, scratch)
    for folder, place in (("home", HOME), ("tmp", "/tmp"), ("shm", "/dev/shm")):  # noqa: S108
        os.mkdir(f"/scratch/{folder}", 0o700)
        system.mount(f"/scratch/{folder}", place, None, system.BIND)
    system.unmount("/scratch")
    terminals = f"newinstance,ptmxmode=0666,max={TERMINALS}"
    system.mount("terminals", "/dev/pts", "devpts", system.NO_SETUID, terminals)
    system.mount(
        "sockets", SOCKETS, "tmpfs", QUIET | system.NO_PROGRAMS,
        f"size={SOCKET_FOLDER_BYTES},nr_inodes=16,mode=700",
    )  # fmt: skip
    _loopback_up()


def _loopback_up() -> None:
    """Switch on the kernel's own loopback, which leads nowhere else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        name = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(some, GET_FLAGS, name))[1]
        fcntl.ioctl(some, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))


def lock_sockets() -> None:
    """Make the folder of the kernel's sockets read-only, once they exist."""
    flags = system.REMOUNT | system.BIND | system.READ_ONLY | QUIET | system.NO_PROGRAMS
    system.mount("none", SOCKETS, None, flags)


def unpack(files: BinaryIO) -> None:
    """Put the files that came with the notebook where the kernel starts."""
    with tarfile.open(fileobj=files) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                place = Path(HOME, member.name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read())
