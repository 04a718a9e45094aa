"""Starts a trial hub: an instructor with the course, three students, and nothing that persists.

The hub has its own view of this machine. In it, users are added; /home, /srv and /tmp are empty;
and only the programs of this checkout are visible. The view is made of Linux namespaces, so all of
it ends with the hub, even when the hub is killed.
"""

import grp
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from autograde.course.lessons import read_course
from autograde.sandbox.inside import system
from autograde.sandbox.wall import root_may_mount

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("jupyterhub_config.py")
INSTRUCTOR = "instructor"
STUDENTS = {"ada": "Ada Adams", "bob": "Bob Brown", "zoe": "Zoe Zimmer"}
GROUPS = ("instructors", "students")
COURSE = Path("/home", INSTRUCTOR, "course")
COURSE_PARTS = ("source", "notebooks", "solutions", "nbgrader_config.py", "jupytext.toml")
PROGRAMS = (*filter(None, (".venv", "autograde", read_course(ROOT).package, "deploy")),)
EMPTY = {"/home": 0o755, "/srv": 0o755, "/tmp": 0o1777, "/var/tmp": 0o1777, "/dev/shm": 0o1777}  # noqa: S108
LOG = ROOT / "build" / "hub.log"
START_SECONDS, STOP_SECONDS = 120, 15


def why_not(students: dict[str, str] = STUDENTS) -> str:
    """Return why no hub with these students can be started here; nothing if one can."""
    if not root_may_mount():
        return (
            "A hub starts servers as other users, in mounts of its own. Run make hub as root, in a "
            "container with the capability SYS_ADMIN."
        )
    if shutil.which("node") is None:
        return "The hub's proxy needs Node 18 or newer. On Debian: apt-get install nodejs npm"
    if shut := [str(place) for place in programs() if place.stat().st_mode & 0o005 != 0o005]:
        return f"Other users must be able to read {', '.join(shut)}. Run: chmod -R go+rX"
    if taken := [name for name in (INSTRUCTOR, *students, *GROUPS) if exists(name)]:
        return f"The hub adds users and groups that this machine already has: {', '.join(taken)}"
    return ""


def exists(name: str) -> bool:
    """Return whether this machine has a user or a group of that name."""
    for find in (pwd.getpwnam, grp.getgrnam):
        try:
            find(name)
        except KeyError:
            continue
        return True
    return False


def closed(place: Path) -> Path | None:
    """Return the outermost folder around a place that others may not enter: often /root."""
    around = [*reversed(place.parents), place]
    return next((path for path in around if not path.stat().st_mode & stat.S_IXOTH), None)


def programs() -> list[Path]:
    """Return the parts of this checkout that all users need, and Python and Node if hidden."""
    system_wide = (Path(sys.base_prefix), Path(str(shutil.which("node"))).resolve().parents[1])
    empty = set(map(Path, EMPTY))
    return [ROOT / name for name in PROGRAMS] + [
        place for place in system_wide if closed(place) or empty & set(place.parents)
    ]


def look_elsewhere() -> int:
    """Give this process its view of the machine; return a descriptor of the whole checkout."""
    needed = programs()
    hidden = {ROOT, *map(Path, EMPTY), *filter(None, map(closed, needed))}
    system.unshare(system.NEW_MOUNTS | system.NEW_IPC)
    system.mount("none", "/", None, system.RECURSIVE | system.PRIVATE)
    held = {place: os.open(place, os.O_PATH) for place in needed}
    whole = os.open(ROOT, os.O_PATH)
    for folder in hidden:
        if not hidden & set(folder.parents):
            mode = EMPTY.get(str(folder), 0o755)
            system.mount("hub", str(folder), "tmpfs", system.NO_DEVICES, f"mode={mode:o}")
    for place, descriptor in held.items():
        place.mkdir(parents=True, exist_ok=True)
        system.mount(f"/proc/self/fd/{descriptor}", str(place), None, system.BIND)
        os.close(descriptor)
    add_etc()
    return whole


def add_etc() -> None:
    """Mount an overlay on /etc for changes, so that the machine's own stays as it is."""
    upper, work = Path("/srv/etc/upper"), Path("/srv/etc/work")
    for folder in (upper, work):
        folder.mkdir(parents=True)
    upper.parent.chmod(0o700)
    system.mount("hub", "/etc", "overlay", 0, f"lowerdir=/etc,upperdir={upper},workdir={work}")


def add_users(students: dict[str, str]) -> dict[str, str]:
    """Add the hub's users; return their passwords."""
    passwords = {name: secrets.token_urlsafe(9) for name in (INSTRUCTOR, *students)}
    for group in GROUPS:
        do("groupadd", group)
    for name in passwords:
        group = GROUPS[name != INSTRUCTOR]
        do(
            "useradd", "--create-home", "--key", "HOME_MODE=0700", "--no-log-init",
            "--groups", group, "--shell", "/bin/bash", name,
        )  # fmt: skip
    lines = "".join(f"{name}:{password}\n" for name, password in passwords.items())
    do("chpasswd", input=lines, text=True)
    return passwords


def add_course(whole: int, students: dict[str, str]) -> str:
    """Copy the course for the instructor; return why it cannot be graded behind a wall, if so."""
    COURSE.mkdir(mode=0o700)
    for name in COURSE_PARTS:
        do("cp", "-rp", f"/proc/{os.getpid()}/fd/{whole}/{name}", str(COURSE))
    settings = COURSE.parent / ".jupyter" / "nbgrader_config.py"
    settings.parent.mkdir(mode=0o700)
    settings.write_text(f"c = get_config()\nc.CourseDirectory.root = {str(COURSE)!r}\n")
    do("chown", "--recursive", f"{INSTRUCTOR}:", str(COURSE.parent))
    exchange = Path("/srv/exchange")
    exchange.mkdir()
    system.mount("hub", str(exchange), "tmpfs", system.NO_DEVICES | system.NO_LINKS, "mode=1777")
    said = subprocess.run(
        [sys.executable, CONFIG.with_name("course.py"), *(f"{i} {n}" for i, n in students.items())],
        cwd=COURSE, user=INSTRUCTOR, group=INSTRUCTOR, extra_groups=[], check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(COURSE.parent)},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return said.stdout


def do(*command: str, **options: object) -> None:
    subprocess.run(command, check=True, **options)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as some:
        return int(some.getsockname()[1])


def start(port: int, options: list[str], log: int) -> "subprocess.Popen[bytes]":
    """Start JupyterHub as the first process of a process namespace: all others end with it."""
    state = Path("/srv/hub")
    state.mkdir(mode=0o700)
    system.unshare(system.NEW_PIDS)
    inside = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'
    return subprocess.Popen(
        ["/bin/sh", "-c", inside, "sh", sys.executable, "-m", "jupyterhub", f"--config={CONFIG}",
         f"--JupyterHub.bind_url=http://127.0.0.1:{port}", f"--JupyterHub.hub_port={free_port()}",
         f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{free_port()}", *options],
        cwd=state, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        preexec_fn=lambda: system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL),
    )  # fmt: skip


def wait_until_it_answers(port: int, hub: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and hub.poll() is None:
        try:
            asked = HTTPConnection("127.0.0.1", port, timeout=5)
            asked.request("GET", "/hub/health")
            if asked.getresponse().status == HTTPStatus.OK:
                return
        except OSError:
            pass  # not even the proxy listens yet
        time.sleep(0.2)
    sys.exit(f"The hub did not start; {LOG} says why.")


def stop(hub: "subprocess.Popen[bytes]") -> None:
    """Let the servers end, and kill those that do not."""
    hub.terminate()
    try:
        hub.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        print("Some of the hub's servers had to be killed.")
    finally:
        hub.kill()
        hub.wait()


def run(port: int, options: list[str], students: dict[str, str], log: int) -> None:
    """Run a hub until it is stopped; JupyterHub gets the options."""
    print("Preparing the course; that takes half a minute.", flush=True)
    whole = look_elsewhere()
    passwords = add_users(students)
    problem = add_course(whole, students)
    hub = start(port, options, log)
    try:
        wait_until_it_answers(port, hub)
        print(f"The hub is at http://127.0.0.1:{port} and its log is {LOG}. Users and passwords:")
        for name, password in passwords.items():
            print(f"    {name:<12}{password}")
        if problem:
            print(f"The instructor cannot grade: {problem}")
        print("Ctrl-C stops it. Its users and their work are then gone.", flush=True)
        hub.wait()
        sys.exit(f"The hub ended; {LOG} says why.")
    finally:
        stop(hub)


def main(port: int, options: list[str], students: dict[str, str] = STUDENTS) -> None:
    if problem := why_not(students):
        sys.exit(problem)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGTERM)  # for when make is killed
    os.umask(0o022)
    LOG.parent.mkdir(exist_ok=True)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        run(port, options, students, log)
    except KeyboardInterrupt:
        print("Stopped.")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
