"""What starts a process as an ordinary user, who can read the interpreter wherever it lies."""

import shlex
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from conftest import HERE

UID = 61000
SWITCH = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
STAY = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"]
"""Root as in most containers, who may not mount."""


def places() -> list[Path]:
    """The checkout, the environment, the interpreter; none lies in another."""
    wanted = {Path(place).resolve() for place in (HERE, sys.prefix, sys.base_prefix)}
    return sorted(place for place in wanted if not wanted & set(place.parents))


def closed(place: Path) -> Path | None:
    """The outermost folder around a place that others may not enter: often that is /root."""
    around = [*reversed(place.parents), place]
    return next((path for path in around if not path.stat().st_mode & stat.S_IXOTH), None)


def opened(hold: Path) -> str:
    """A script that runs a command where each closed folder shows only the places inside it."""
    inside = {place: folder for place in places() if (folder := closed(place))}
    held = {place: hold / str(number) for number, place in enumerate(inside)}
    lines = [["mount", "--make-rprivate", "/"]]
    for place, at in held.items():
        lines += [["mkdir", "-p", at], ["mount", "--bind", place, at]]
    lines += [["mount", "-t", "tmpfs", "-o", "mode=755", "none", to] for to in set(inside.values())]
    for place, at in held.items():
        lines += [["mkdir", "-p", place], ["mount", "--move", at, place]]
    script = [shlex.join(map(str, line)) for line in lines]
    return " && ".join([*script, 'exec "$@"'])


def command(hold: Path, switch: Sequence[str] = SWITCH) -> list[str]:
    """What to write before a command, so that an ordinary user runs it. Only root can."""
    return ["unshare", "--mount", "sh", "-c", opened(hold), "sh", *switch]
