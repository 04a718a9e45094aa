"""The wall: what it stops, what it lets honest work do, and how its kernels live and die.

Everything runs as the user who runs the tests. If that is root and may mount, everything also runs
as an ordinary user.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ordinary_user
import pytest
from conftest import HERE
from nightly import few, nightly
from wall_attempts import KEPT_OUT, KERNELS, LANDLOCK, NO_GROUP, NO_USERS, SAYS, TRIES, TRY

from autograde.sandbox import control_groups, host_limits
from autograde.sandbox.both_sides import MACHINES, KernelLimits
from autograde.sandbox.control_groups import divided
from autograde.sandbox.inside import supervisor
from autograde.sandbox.wall import UNUSED_UIDS, exposed, missing, root_may_mount

possible = platform.machine() in MACHINES and not any(
    subprocess.run(["sh", "-c", line], capture_output=True).returncode for line in TRIES
)
pytestmark = pytest.mark.skipif(not possible and bool(missing()), reason=missing())

USERS = few(["myself", "ordinary user"][: 1 + root_may_mount()], "myself")
CREATE_RULES, ASK_VERSION = 444, 1
"""Of Landlock, from Linux' own header: asked here without the code that is tested."""
ABSENT = (errno.ENOSYS, errno.EOPNOTSUPP)
"""What Linux answers without Landlock; any other answer is no excuse."""


@pytest.fixture(scope="module", params=USERS)
def user(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What to write before a command, so that this user runs it."""
    if request.param == "myself":
        return []
    return ordinary_user.command(tmp_path_factory.mktemp("hold"))


AT_ONCE = [
    "starts in its files", "leaves no file behind", "leaves no process behind",
    "is ended for its memory", "has a control group", "has a user of its own", "has its own iopub",
    "comes from a template without a network", "finds a new template",
    "is interrupted", "dies by exit", "draws what no other draws",
]  # fmt: skip
"""What `make test` asks of a kernel's life, too."""
LIVES = [
    *AT_ONCE,
    "is ended for its processor time", "is ended for its page tables",
    "ends though nothing watches it", "goes by a name that is no text",
    "is ended for what its sockets hold",
    "is stopped though it ignores signals", "dies with the template",
    "is gone when the run is killed",
    "shuts down when asked", "dies by a signal",
    "is interrupted for a cell's processor time", "of no cell is not interrupted for its time",
    "is interrupted for a list without end", "outlives the interrupt of a cell",
    "replaces a shared template that ended", "replaces one that died as it waited",
]  # fmt: skip


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(HERE), str(HERE / "tests")])
    return {**os.environ, "FROM_OUTSIDE": "x", "PYTHONPATH": paths}


def drive(orders: dict[str, Any], user: list[str], seconds: int = 600) -> Any:
    """Run wall_driver.py as this user; what it prints."""
    result = subprocess.run(
        [*user, sys.executable, str(HERE / "tests" / "wall_driver.py")],
        input=json.dumps(orders), capture_output=True, text=True, timeout=seconds, check=False,
        env=environment(), cwd="/",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def outside(user: list[str]) -> Iterator[dict[str, str]]:
    """Things that nobody behind the wall may reach; the user outside may."""
    with TemporaryDirectory(prefix="outside-") as place:
        folder = Path(place).resolve()
        folder.chmod(0o755)
        (folder / "secret").write_text("the secret")
        subprocess.run([*user, "cat", str(folder / "secret")], cwd="/", check=True)
        with reachable(folder / "socket") as (port, abstract):
            yield {
                "SECRET": str(folder / "secret"), "FOLDER": str(folder),
                "PORT": str(port), "HOST_PID": str(os.getpid()),
                "HOST_HOME": str(Path.home()), "HOST_IP": _own_address(),
                "ABSTRACT": abstract, "UNIX_SOCKET": str(folder / "socket"),
            }  # fmt: skip


@contextmanager
def reachable(path: Path) -> Iterator[tuple[int, str]]:
    """A server's port, and the name of an abstract socket; a third one listens at `path`."""
    name = "autograde-test"
    with (
        socket.create_server(("0.0.0.0", 0)) as server,  # noqa: S104
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        for listener, address in ((abstract, f"\0{name}"), (named, str(path))):
            listener.bind(address)
            listener.listen()
        yield server.getsockname()[1], name


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def said(
    user: list[str], outside: dict[str, str], request: pytest.FixtureRequest
) -> dict[str, str]:
    """What every attempt printed, and the result of every check in LIVES that is asked for."""
    asked = {test.callspec.params["name"] for test in request.session.items
             if test.name.startswith("test_a_kernel[")}  # fmt: skip
    lives = [name for name in LIVES if name in asked]
    cells = {name: TRY + code for name, code in KEPT_OUT.items()}
    cells |= {name: code for name, (code, _) in SAYS.items()}
    for name, code in cells.items():
        for place, value in outside.items():
            code = code.replace(place, value)
        cells[name] = code if code[0] in "%!" else "import os\n" + code
    kernels = [{name: cells[name] for name in kernel} for kernel in KERNELS]
    answers: dict[str, str] = drive({"kernels": kernels, "lives": lives}, user)
    return answers


@pytest.mark.parametrize("name", KEPT_OUT)
def test_it_keeps_out(said: dict[str, str], name: str) -> None:
    if name == LANDLOCK:
        version = ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULES, None, 0, ASK_VERSION)
        if version < 0 and ctypes.get_errno() in ABSENT:
            pytest.skip("this Linux has no Landlock")
    lines = said[name].splitlines()
    assert lines
    assert not [line for line in lines if not line.startswith("kept out: ")], said[name]


@pytest.mark.parametrize("name", SAYS)
def test_it_says(said: dict[str, str], name: str) -> None:
    assert SAYS[name][1] in said[name]


@pytest.mark.parametrize("name", few(LIVES, *AT_ONCE))
def test_a_kernel(said: dict[str, str], user: list[str], name: str) -> None:
    if said[name] == NO_GROUP and not may_make_groups(user):
        pytest.skip("this user may make no control group with limits here")
    if said[name] == NO_USERS and not may_mount(user):
        pytest.skip("only root who may mount can give users")
    assert said[name] == "yes"


@nightly
@pytest.mark.skipif(len(USERS) == 1, reason="only root can become a root who may not mount")
def test_root_of_a_container_has_a_wall(tmp_path: Path) -> None:
    user = ordinary_user.command(tmp_path, ordinary_user.STAY)
    lives = [
        "starts in its files", "is interrupted", "leaves no process behind",
        "is ended for its memory", "finds a new template", "dies with the template",
    ]  # fmt: skip
    kernel = {"who": "print(open('/proc/self/uid_map').read())"}
    said = drive({"lives": lives, "kernels": [kernel]}, user)
    assert [name for name in lives if said[name] != "yes"] == []
    assert int(said["who"].split()[1]) in UNUSED_UIDS


def test_a_course_may_not_lie_in_what_kernels_see() -> None:
    assert "lies in /usr/share, which every kernel can read" in exposed(Path("/usr/share/course"))
    assert exposed(Path("/usr/local/share/course")) == ""


TRY_GROUPS = """
place=/sys/fs/cgroup$(grep ^0:: /proc/self/cgroup | cut -d: -f3)
until grep -w memory "$place/cgroup.subtree_control" | grep -w pids; do
  place=$(dirname "$place"); [ -e "$place/cgroup.subtree_control" ] || exit 1
done
mkdir "$place/test-$$" && rmdir "$place/test-$$"
"""
"""Asked without the code that is tested."""


def may_mount(user: list[str]) -> bool:
    """Return whether a user may mount outside of any namespace of users, by trying."""
    tried = subprocess.run([*user, "unshare", "--mount", "true"], capture_output=True)
    return tried.returncode == 0


def may_make_groups(user: list[str]) -> bool:
    return not subprocess.run([*user, "sh", "-c", TRY_GROUPS], capture_output=True).returncode


@pytest.mark.parametrize("files", [700, 900])
def test_a_package_of_many_files_gets_in_or_is_named(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / f"of_{files}_files"
    (package / "data" / "of" / "rain").mkdir(parents=True)
    for number in range(files):
        (package / "data" / "of" / "rain" / f"{number}.txt").touch()
    monkeypatch.syspath_prepend(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        said = missing(package.name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said.startswith(f"The course's package {package.name} has 900 files" * (files > 800))
    assert bool(said) == (files > 800)


def test_groups_are_made_where_they_can_be_limited(tmp_path: Path) -> None:
    kinds = {"": "cpu memory pids", "a": "memory pids", "a/b": "", "a/b/c": "cpu"}
    for place, text in kinds.items():
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "cgroup.subtree_control").write_text(text + "\n")
    assert divided(tmp_path / "a/b/c") == tmp_path / "a"
    (tmp_path / "a" / "cgroup.subtree_control").write_text("memory")
    assert divided(tmp_path / "a/b/c") == tmp_path
    (tmp_path / "cgroup.subtree_control").write_text("")
    assert divided(tmp_path / "a/b/c") is None


def refused(*_: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_group_that_cannot_be_made_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_groups, "place", lambda: tmp_path / "gone")
    assert control_groups.make(KernelLimits()) is None
    assert not control_groups._left  # at the end of the process it is waited for
    monkeypatch.setattr(control_groups, "place", lambda: None)
    assert control_groups.make(KernelLimits()) is None
    monkeypatch.setattr(control_groups, "place", lambda: tmp_path)
    monkeypatch.setattr(os, "mkdir", refused)
    monkeypatch.setattr(os, "rmdir", refused)  # so Linux answers where all is read-only
    assert control_groups.make(KernelLimits()) is None
    assert not control_groups._left


def test_a_group_has_its_limits_and_is_left_when_it_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_groups, "place", lambda: tmp_path)
    monkeypatch.setattr(Path, "exists", lambda path: path.name in ("memory.max", "pids.max"))
    group = control_groups.make(KernelLimits(memory_bytes=7, scratch_bytes=2, processes=5))
    assert group
    assert {path.name: path.read_text() for path in group.iterdir()} == {
        "memory.max": "9", "pids.max": "5",
    }  # fmt: skip
    (group / "cgroup.procs").touch()
    with control_groups.open_procs(group) as procs:
        os.write(*procs, b"0")
    assert (group / "cgroup.procs").read_text() == "0"
    control_groups.remove(group)
    assert group.is_dir()
    for path in group.iterdir():  # as Linux does once its last process has ended
        path.unlink()
    control_groups._remove_left()
    assert not group.is_dir()
    assert not control_groups._left


JOIN = """
import os, sys, time
os.write(int(sys.argv[1]), b"0")
print(open("/proc/self/cgroup").read(), flush=True)
time.sleep(10)
"""


def test_a_process_joins_a_group_through_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    places = [Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"]
    around = next((place for place in places if os.access(place, os.W_OK)), None)
    if around is None:
        pytest.skip("this user may not make a group of version 2, not even one without limits")
    monkeypatch.setattr(control_groups, "place", lambda: around)
    group = control_groups.make(KernelLimits())
    assert group
    with control_groups.open_procs(group) as (procs,):
        command = [sys.executable, "-c", JOIN, str(procs)]
        process = subprocess.Popen(command, pass_fds=[procs], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        said = iter(process.stdout.readline, "")
        assert next(line for line in said if line.startswith("0::")).endswith(f"{group.name}\n")
        assert (group / "cgroup.procs").read_text().split() == [str(process.pid)]
        control_groups.remove(group)  # at once if Linux has ended the process by now
        process.kill()
    control_groups._remove_left()
    assert not group.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("low 0\noom 3\noom_kill 0\n", False), ("low 0\noom 3\noom_kill 12\n", True)],
)
def test_a_group_says_when_its_memory_ran_out(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "memory.events").write_text(text)
    assert control_groups.ran_out_of_memory(tmp_path) is expected


def test_maps_of_many_processes_are_counted_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[Path] = []

    def number(process: Path) -> int:
        counted.append(process)
        return 60_000 if process.name == "9" else 600

    monkeypatch.setattr(supervisor, "_number_of_maps", number)
    watch = supervisor.Watch(KernelLimits())
    few, many = ([Path("/proc", str(n)) for n in range(2, stop)] for stop in (10, 102))
    assert watch._of_maps(few) == 0
    seen = [watch._of_maps(many) for _ in range(150)]
    assert seen[0] == 600 * 100 * supervisor.MAP_BYTES
    assert seen[100] == 60_000 * 100 * supervisor.MAP_BYTES
    assert len(counted) == 150
    assert set(counted) == set(many)


def test_what_a_user_has_used_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    files = KernelLimits().files_a_process
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert host_limits.used_up(files) == ""
    with monkeypatch.context() as patch:
        patch.setattr(socket, "send_fds", refused)
        assert host_limits.used_up(files) == "descriptors on their way"
    with monkeypatch.context() as patch:
        patch.setattr(host_limits.select, "epoll", refused)
        assert host_limits.used_up(files) == "epoll watches"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
