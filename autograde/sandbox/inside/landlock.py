"""Keep the kernel's process from files a second time, independently of the mounts.

Landlock is a part of Linux by which a process gives up rights to files for good
(https://docs.kernel.org/userspace-api/landlock.html). Should something writable ever be mounted
by mistake, this still keeps the kernel from it.
"""

import os
import struct

from autograde.sandbox.agreed import HOME, SOCKETS
from autograde.sandbox.inside import system

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


def version() -> int:
    """Return the version of Landlock that this Linux has; 0 where it has none."""
    try:
        return system.call(CREATE, None, 0, ASK_VERSION)
    except OSError:
        return 0


def restrict() -> None:
    """Limit this process and its children to ALLOWED; does nothing where Linux lacks Landlock."""
    if not (has := version()):
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
