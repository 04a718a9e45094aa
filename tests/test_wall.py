"""The wall: what it stops, what it lets honest work do, and how its kernels live and die.

Everything runs as whoever runs the tests, and, if that is root, as an ordinary user too.
"""

import ctypes
import errno
import json
import os
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
from wall_attempts import KEPT_OUT, LANDLOCK, SAYS, TRY

from autograde.kernels.wall import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

USERS = ["myself", "ordinary user"] if os.getuid() == 0 else ["myself"]
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


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(HERE), str(HERE / "tests")])
    return {**os.environ, "FROM_OUTSIDE": "x", "PYTHONPATH": paths}


def drive(orders: dict[str, Any], user: list[str], seconds: int = 300) -> Any:
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
def said(user: list[str], outside: dict[str, str]) -> dict[str, str]:
    """What every attempt printed, each in a kernel of its own."""
    cells = {name: "import os\n" + TRY + code for name, code in KEPT_OUT.items()}
    cells |= {
        name: code if code[0] in "%!" else "import os\n" + code for name, (code, _) in SAYS.items()
    }
    for name, code in cells.items():
        for place, value in outside.items():
            code = code.replace(place, value)
        cells[name] = code
    answers: dict[str, str] = drive({"cells": cells}, user)
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


LIVES = [
    "starts in its files", "is interrupted", "restarts", "shuts down when asked", "dies by exit",
    "dies by a signal", "leaves no process behind", "is ended for its memory",
    "is ended for its processor time", "is stopped though it ignores signals",
    "outlives the interrupt of a cell", "has its own iopub", "draws what no other draws",
    "finds a new template", "dies with the template", "is gone when the run is killed",
]  # fmt: skip


@pytest.fixture(scope="module")
def lived(user: list[str]) -> dict[str, str]:
    answers: dict[str, str] = drive({"lives": LIVES}, user)
    return answers


@pytest.mark.parametrize("name", LIVES)
def test_a_kernel(lived: dict[str, str], name: str) -> None:
    assert lived[name] == "yes"
