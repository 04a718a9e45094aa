"""The wall around kernels: the bubblewrap command that the template is started with."""

import os
import platform
import secrets
import shutil
import site
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from autograde.course.lessons import CourseError
from autograde.course.package import files_of, folder_of
from autograde.installed import manual
from autograde.sandbox.both_sides import HOME, MACHINES, SOCKETS

PACKAGE = Path(__file__).resolve().parent.parent
PARTS = (
    "__init__.py", "cards.py", "files.py", "installed.py", "progress.py", "values", "rubric",
    "notebook", "sandbox/__init__.py", "sandbox/both_sides.py", "sandbox/imports.py",
    "sandbox/host_limits.py", "sandbox/inside",
)  # fmt: skip
"""The parts of this package that a kernel needs; it sees a copy of them."""
INSIDE = "/opt/lesson"
ENVIRONMENT_INSIDE = Path("/opt/environment")
"""Where a kernel sees the virtual environment, even one in a course or below /tmp."""

SYSTEM = {Path("/usr"), Path("/usr/local")}
OF_THE_SYSTEM = (
    "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
    "/usr/sbin", "/usr/share", "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64",
    "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types",
    "/sys/devices/system/cpu",
)  # fmt: skip
"""What programs need. The rest of /usr/local is the administrator's: nbgrader's exchange, with what
others handed in, lies in its share, and a hub's configuration often in its etc."""
OF_AN_INTERPRETER = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg", "share")
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYS_ADMIN = 21
UNUSED_UIDS = range(61184, 65520)
"""systemd keeps these for services that need a user for a moment."""
KERNEL_UIDS = range(2_001_000_000, 2_147_000_000)
"""No distribution, container or directory of users gives these to anybody."""
UIDS_A_TEMPLATE = 10_000
MOST_FILES = 800
"""The most files of a course's package: each is open while the wall is made, and 1024 may be."""

ENVIRONMENT = {
    "HOME": HOME,
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "NBGRADER_EXECUTION": "autograde",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": INSIDE,
}

NOT_LINUX = (
    "Students' code is walled off on Linux only. Use a Linux machine, or on Windows WSL 2. "
    f"{manual() / 'wall.md'} says more."
)
RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""It holds 1 where AppArmor keeps ordinary users from making user namespaces, as Ubuntu does."""
FORBIDDEN = (
    "bubblewrap is installed, but Ubuntu (23.10 and newer) does not let programs make user "
    f"namespaces. {manual() / 'wall.md'}, “Set it up”, has the lines that allow it for bubblewrap."
)
INSTALL = (
    "On Debian and Ubuntu: sudo apt-get install bubblewrap. In a container, allow user "
    "namespaces when it starts, or use the project's Containerfile."
)
MOVE = "Put the Python environment elsewhere."
READABLE = "If it names a path: kernels run as another user, who must be able to read that path."


class NoWall(CourseError):
    """No kernel can be walled here; the message says what is missing and how to get it."""


def start(
    descriptor: int, package: str, *options: str, errors: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Start the template behind the wall; the open descriptor is the line to it.

    Its kernels see copies of what they need of the grader, and of the package of a course.

    bubblewrap reads the kernel's own files from unnamed temporary files, so none is left behind.

    Raises:
        NoWall: bubblewrap is not installed or cannot be started, a needed path lies in /tmp, or the
            package has too many files.
    """
    files = _own_files(package)
    with ExitStack() as opened:
        numbers, copies = [descriptor], _parents(*files)
        for place, content in files.items():
            file = opened.enter_context(TemporaryFile())
            file.write(content)
            file.seek(0)
            numbers.append(file.fileno())
            copies += ["--perms", "0644", "--file", str(numbers[-1]), str(place)]
        uid = UNUSED_UIDS[os.getpid() % len(UNUSED_UIDS)]  # two templates hardly ever share one
        # root in a container often may not mount, but can become a user who may, in a namespace
        other = os.getuid() == 0 and not root_may_mount()
        numbered = map(str, (descriptor, uid, *_kernel_uids()))
        command = _command(copies, [*numbered, package, *options])
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=numbers,
                process_group=0,  # Ctrl-C is not for it
                user=uid if other else None,
                group=uid if other else None,
                extra_groups=[] if other else None,
            )
        except OSError as error:
            raise NoWall(f"bubblewrap cannot be started by this user: {error}") from error


def _kernel_uids() -> tuple[int, int]:
    """Return the first of the users that the kernels of a template become, and their number."""
    block = range(secrets.choice(KERNEL_UIDS[::UIDS_A_TEMPLATE]), KERNEL_UIDS.stop)[
        :UIDS_A_TEMPLATE
    ]
    for ids in ("uid_map", "gid_map"):
        lines = [
            [*map(int, line.split())] for line in Path("/proc/self", ids).read_text().splitlines()
        ]
        if not any(begin <= block[0] and block[-1] < begin + n for begin, _, n in lines):
            block = UNUSED_UIDS  # a container has the first users only
    return block[0], len(block)


def _own_files(package: str) -> dict[Path, bytes]:
    """Return the files of both packages that a kernel sees, and those that say who it is."""
    files = {}
    for path in (PACKAGE / part for part in PARTS):
        for file in [path] if path.is_file() else path.rglob("*.*"):
            if file.is_file() and file.suffix != ".pyc":
                files[Path(INSIDE, file.relative_to(PACKAGE.parent))] = file.read_bytes()
    if len(own := files_of(package)) > MOST_FILES:
        raise NoWall(
            f"The course's package {package} has {len(own)} files; a kernel can get {MOST_FILES}. "
            "Put its data into fewer files, such as one .zip or .npz."
        )
    for file in own:
        files[Path(INSIDE, file.relative_to(folder_of(package).parent))] = file.read_bytes()
    files[Path("/etc/passwd")] = f"student:x:1000:1000::{HOME}:/bin/sh\n".encode()
    files[Path("/etc/group")] = b"student:x:1000:\n"
    return files


def _command(copies: list[str], arguments: list[str]) -> list[str]:
    """Return the bubblewrap command: what the template sees, and how it is started there."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise NoWall(f"bubblewrap is not installed. {INSTALL}")
    options = ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    for kind in ("ipc", "pid", "net", "uts", "cgroup-try"):
        options += [f"--unshare-{kind}"]
    if root_may_mount():
        # no user namespace is needed; the template uses these once, then stops being root
        for capability in ("SYS_ADMIN", "SETUID", "SETGID"):
            options += ["--cap-add", f"CAP_{capability}"]
        options += ["--dir", "/proc"]
    else:
        options += ["--unshare-user", "--proc", "/proc"]
    for place, path in readable().items():
        if place.is_relative_to("/tmp"):  # noqa: S108
            raise NoWall(f"{path} lies in /tmp, and every kernel has a /tmp of its own. {MOVE}")
        options += [*_parents(place), "--ro-bind", str(path), str(place)]
    for link in map(Path, LINKS):
        if link.is_symlink():
            options += ["--symlink", os.readlink(link), str(link)]
        elif link.is_dir():
            options += ["--ro-bind", str(link), str(link)]
    options += copies
    options += ["--dev", "/dev", "--dir", "/scratch", "--dir", SOCKETS]
    for folder in ("/tmp", HOME):  # noqa: S108 (inside)
        options += ["--perms", "1777", "--tmpfs", folder]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    python = inside(Path(sys.executable))
    programs = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
    for name, value in {**ENVIRONMENT, "PATH": programs}.items():
        options += ["--setenv", name, value]
    module = ["-P", "-s", "-m", "autograde.sandbox.inside.template_server"]
    return [bubblewrap, *options, "--", str(python), *module, *arguments]


def _parents(*paths: Path) -> list[str]:
    """Return options that make the folders above paths, open to every user, not only to root."""
    options = []
    for parent in sorted({parent for path in paths for parent in path.parents[:-1]}):
        options += ["--perms", "0755", "--dir", str(parent)]
    return options


def inside(path: Path) -> Path:
    """Return the path at which a kernel sees a path outside."""
    if sys.prefix != sys.base_prefix and path.is_relative_to(sys.prefix):
        return ENVIRONMENT_INSIDE / path.relative_to(sys.prefix)
    return path


def readable() -> dict[Path, Path]:
    """Return all that a kernel can read: the interpreter, its packages, the system's programs.

    The keys are the paths that the kernel sees, the values those outside.
    """
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    paths = [prefix / part for prefix in prefixes - SYSTEM for part in OF_AN_INTERPRETER]
    packages = (path for path in sys.path if path.endswith("-packages"))
    paths += [Path(path) for path in packages if path != site.getusersitepackages()]
    paths += map(Path, OF_THE_SYSTEM)
    return {inside(path): path for path in sorted(paths) if path.exists()}


def root_may_mount() -> bool:
    """Return whether this is root with CAP_SYS_ADMIN, as root is outside of containers."""
    if os.getuid() != 0 or sys.platform != "linux":
        return False
    status = Path("/proc/self/status").read_text()
    (effective,) = (line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> SYS_ADMIN & 1)


@cache
def missing(package: str = "") -> str:
    """Return why no kernel of a course with this package can be walled here, and how to fix it.

    Return "" if one can.
    """
    if sys.platform != "linux":
        return NOT_LINUX
    if platform.machine() not in MACHINES:
        return f"Walled kernels support {' and '.join(MACHINES)}, not {platform.machine()}."
    with TemporaryFile() as errors, open(os.devnull) as nothing:
        try:
            trial = start(nothing.fileno(), package, "try", errors=errors)
        except NoWall as error:
            return str(error)
        if trial.wait() == 0:
            return ""
        said = last_line(errors)
        if os.getuid() != 0 and _restricted():
            return f"{FORBIDDEN} (It said: {said}.)"
        return f"bubblewrap cannot make a wall here: {said}. {INSTALL} {READABLE}"


def _restricted() -> bool:
    return RESTRICTED.is_file() and RESTRICTED.read_text().strip() == "1"


def last_line(errors: IO[bytes]) -> str:
    """Return the last line that a process wrote into this file."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return (lines or ["it said nothing"])[-1].rstrip(".")


def exposed(course: Path) -> str:
    """Return why every kernel could read a course where it lies, or "" if none can.

    From an environment inside the course, as `make` creates it, kernels see only the packages.
    """
    for path in map(Path.resolve, readable().values()):
        if course.resolve().is_relative_to(path):
            return f"The course {course} lies in {path}, which every kernel can read; move it."
    return ""
