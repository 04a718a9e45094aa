"""The warm template of this process, started on demand and replaced if it dies; its kernels."""

import atexit
import json
import os
import secrets
import select
import socket
import struct
import tarfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from autograde.files import File
from autograde.sandbox import control_groups, wall
from autograde.sandbox.both_sides import SOCKETS, KernelLimits

CONNECTION = {
    "transport": "ipc", "signature_scheme": "hmac-sha256",
    "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "hb_port": 4, "control_port": 5,
}  # fmt: skip
MAX_FILES_BYTES = 200_000_000
"""Twice what a student may hand in: the lesson has files of its own."""
ASK_SECONDS = 20
"""A request that a template does not read for so long has failed."""


@dataclass(frozen=True)
class Template:
    """The line to a template, which ends when no process holds such a line any more.

    Its kernels see the package of one course, or of none.
    Only the process that started the template has its error file and the thread that keeps it.
    After a fork, this belongs to the parent alone.
    """

    line: socket.socket
    package: str = ""
    errors: IO[bytes] | None = None
    keeper: threading.Thread | None = None
    owner: int = field(default_factory=os.getpid)

    @property
    def usable(self) -> bool:
        return self.owner == os.getpid() and not self.ended(within=0)

    def ended(self, within: float = 5.0) -> bool:
        """Return whether it has ended, or ends within some seconds: its end of the line closes."""
        poll = select.poll()
        poll.register(self.line, 0)  # reports a closed other end even when no events are asked for
        return bool(poll.poll(within * 1000))

    def why_it_ended(self) -> str:
        if self.errors is None:
            return "another process started it"
        return "it was ended here" if self.errors.closed else wall.last_line(self.errors)

    def ask(self, request: dict[str, Any], procs: list[int]) -> socket.socket:
        """Ask for a kernel, in the control group whose cgroup.procs this is; return its line.

        If the template has ended, so has the line.

        Raises:
            OSError: the template does not read the request in time.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # Linux adds who sends
        with theirs:
            message = json.dumps(request).encode()
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self.line, [message], [theirs.fileno(), *procs])
        return ours

    def close(self) -> None:
        """Close this line; when the last line closes, the template ends with all of its kernels."""
        self.line.close()
        if self.keeper:
            self.keeper.join(10)
        if self.errors:
            self.errors.close()


@dataclass(frozen=True)
class Kernel:
    """A kernel that was asked for: the line to it and the key that its messages are signed with."""

    line: socket.socket
    key: str
    limits: KernelLimits
    template: Template
    group: Path | None

    def close(self) -> None:
        """Hang up; the kernel ends if it still lives."""
        self.line.close()
        if self.group:
            control_groups.remove(self.group)


_lock = threading.RLock()
_template: Template | None = None
_spare: Kernel | None = None


def prepare(limits: KernelLimits, package: str) -> None:
    """Start a kernel now, so that the next `take` need not wait for one.

    It has no files of a submission yet, so it fits any. If it cannot start, `take` says why.
    """
    global _spare
    with suppress(OSError, RuntimeError, wall.NoWall), _lock:
        _spare = take(limits, package)


def take(limits: KernelLimits, package: str) -> Kernel:
    """Return the kernel prepared before, if it fits, else a new one."""
    global _spare
    with _lock:
        spare, _spare = _spare, None
    if spare is not None:
        if _fits(spare, limits, package):
            return spare
        spare.close()
    return _ask(limits, package)


def _fits(spare: Kernel, limits: KernelLimits, package: str) -> bool:
    template = spare.template
    same = spare.limits == limits and template.package == package
    return same and template is _template and template.usable


def _ask(limits: KernelLimits, package: str) -> Kernel:
    """Ask this process's template for a kernel, and start or replace the template if need be.

    The kernel waits for `send_files` on the line, then says there that it is ready.
    """
    key = secrets.token_hex(32)
    connection = {**CONNECTION, "ip": f"{SOCKETS}/k", "key": key}
    request = {"connection": connection, "limits": asdict(limits)}
    asked = current(package)
    group = control_groups.make(limits)
    try:
        with control_groups.open_procs(group) as procs:
            line = asked.ask(request, procs)
    except BaseException:
        if group:
            control_groups.remove(group)
        raise
    return Kernel(line, key, limits, asked, group)


def current(package: str) -> Template:
    """Return the template whose kernels see a package; start it if it is not running."""
    global _template
    with _lock:
        if _template is None or not _template.usable or _template.package != package:
            close()
            _template = _start(package)
        return _template


def _start(package: str) -> Template:
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", ASK_SECONDS, 0))
    errors = TemporaryFile()  # noqa: SIM115 (open as long as the template)
    started: Future[None] = Future()
    # The template dies with the thread that started it, so that thread must live as long.
    keeper = threading.Thread(target=_keep, args=(theirs, package, errors, started), daemon=True)
    keeper.start()
    started.result()
    return Template(line, package, errors, keeper)


def _keep(theirs: socket.socket, package: str, errors: IO[bytes], started: "Future[None]") -> None:
    """Start a template at the other end of a line, and wait until it has ended."""
    with theirs:
        try:
            process = wall.start(theirs.fileno(), package, errors=errors)
        except BaseException as error:
            started.set_exception(error)
            return
    started.set_result(None)
    process.wait()


def send_files(line: socket.socket, files: Iterable[File]) -> None:
    """Send a kernel its files: paths, and the names they get in the folder where it starts."""
    with TemporaryFile() as archive:
        pack(files, archive)
        archive.seek(0)
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; the caller reads why
            socket.send_fds(line, [b"+"], [archive.fileno()])


def pack(files: Iterable[File], archive: IO[bytes]) -> None:
    """Write the content and names of plain files into an archive, nothing else about them.

    Raises:
        ValueError: their total size is too large.
    """
    total = 0
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, name in files:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                member = tarfile.TarInfo(name)
                member.size = os.fstat(file.fileno()).st_size
                total += member.size
                if total > MAX_FILES_BYTES:
                    raise ValueError(f"the files are larger than {MAX_FILES_BYTES} bytes together")
                tar.addfile(member, file)
    archive.flush()


def share(line: socket.socket, package: str) -> None:
    """From now on, ask for kernels through this line to the template of another process."""
    global _template
    _template = Template(line, package)


@atexit.register
def close() -> None:
    """End this process's template and the kernel that was prepared, if it has them."""
    global _template, _spare
    if _template is not None and _template.owner == os.getpid():
        if _spare is not None:
            _spare.close()
        _template.close()
    _template = _spare = None
