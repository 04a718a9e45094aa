"""Kernels for jupyter_client, with a wall or without, reached through files, not by network."""

import asyncio
import json
import os
import select
import signal
import socket
import struct
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Dict

from autograde.files import visible_files
from autograde.sandbox import control_groups, template
from autograde.sandbox.both_sides import (
    CELL_MEMORY,
    MEMORY,
    NEXT_CELL,
    PROCESSOR,
    SAY_TIME,
    KernelLimits,
)

WALLED, UNWALLED = "walled", "python3"
START_SECONDS = 120
END_SECONDS = 10
ANSWER_SECONDS = 2
ENDING_SECONDS = 0.5
WATCHES_FIRST = -10
"""The priority of a kernel's first process, which watches it, where it may be raised."""
ATTEMPTS = 3
CREDENTIALS = struct.Struct("=iII")
"""What Linux adds to a message: the sender's process, user and group."""


def walled_manager(limits: KernelLimits, package: str) -> AsyncKernelManager:
    """Return a manager for one kernel behind a wall, which sees the package of a course."""
    spec = KernelSpec(argv=[], display_name=WALLED, language="python", interrupt_mode="signal")
    manager = AsyncKernelManager(kernel_name=WALLED, transport="ipc")
    manager._kernel_spec = spec
    provisioner = WalledProvisioner(kernel_spec=spec, parent=manager)
    provisioner.limits = limits
    provisioner.package = package
    manager.provisioner = provisioner
    return manager


def open_manager(folder: Path) -> AsyncKernelManager:
    """Return a manager for one kernel without a wall; its sockets lie in `folder`, a short path."""
    if not hasattr(socket, "AF_UNIX"):  # Windows
        return AsyncKernelManager(kernel_name=UNWALLED)
    return AsyncKernelManager(kernel_name=UNWALLED, transport="ipc", ip=str(folder / "k"))


def end_kernel(manager: AsyncKernelManager) -> None:
    """End a manager's kernel at once, from whatever thread."""
    provisioner: Any = manager.provisioner
    if isinstance(provisioner, WalledProvisioner):
        provisioner.end_now()
    elif getattr(provisioner, "pgid", None):
        with suppress(OSError):  # it has ended
            os.killpg(provisioner.pgid, signal.SIGKILL)


class WalledProvisioner(KernelProvisionerBase):
    """One kernel behind a wall. The line to it is open as long as it lives."""

    limits: KernelLimits
    package: str
    """The package of the course that it sees."""
    kernel: template.Kernel | None = None
    folder: int | None = None
    said: Any = Dict()
    """What the kernel's first process has said of it, by name: see `supervisor`."""
    cell = 0
    first: int | None = None
    """The first process of the kernel's namespace: Linux ends all the others before it."""
    ended_here = False

    @property
    def has_process(self) -> bool:
        return self.kernel is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Leave out the kernelspec's command: the kernel is forked, not started."""
        kwargs = await super().pre_launch(**kwargs)
        return {**kwargs, "cmd": []}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel; it starts in a copy of the folder's plain files.

        Raises:
            RuntimeError: no kernel could be started; the message says why.
        """
        from autograde.sandbox.host_limits import watches_used_up  # Linux only

        # without epoll watches, ZeroMQ ends this process, the grader, as it opens a socket
        if what := watches_used_up():
            raise RuntimeError(f"the {what} of this user are used up")
        files = list(visible_files(Path(kwargs["cwd"])))
        for attempt in range(ATTEMPTS):
            self.kernel = kernel = template.take(self.limits, self.package)
            try:
                template.send_files(kernel.line, files)
            except BaseException:
                self._hang_up()
                raise
            kernel.line.setblocking(False)
            failed = await self._ready(kernel.line)
            if failed is None:
                break
            # one that was prepared may have died since, or its template did: ask for a new one
            ended = kernel.template.ended(within=ENDING_SECONDS)
            if attempt == ATTEMPTS - 1:
                raise RuntimeError(
                    f"no kernel: {kernel.template.why_it_ended() if ended else failed}"
                )
        address = f"/proc/{os.getpid()}/fd/{self.folder}/k"
        info: Any = {**template.CONNECTION, "ip": address, "key": kernel.key.encode()}
        self.connection_info = info
        return self.connection_info

    async def _ready(self, line: socket.socket) -> str | None:
        """Wait until the kernel is ready, and take the folder with its sockets.

        Return why it ended if it did.
        """
        until = time.monotonic() + START_SECONDS
        while (found := received(line)) is None:
            if time.monotonic() > until:
                self._hang_up()
                raise RuntimeError(f"no kernel after {START_SECONDS} s")
            await asyncio.sleep(0.002)
        message, sender, descriptors = found
        if not descriptors:
            self._hang_up()
            return str(json.loads(message).get("failed")) if message else "it ended as it started"
        with suppress(OSError):  # it has ended, or only root may raise it
            self.first = os.pidfd_open(sender)
            os.setpriority(os.PRIO_PROCESS, sender, WATCHES_FIRST)
        (self.folder,) = descriptors
        return None

    async def poll(self) -> int | None:
        """Return the exit code of the kernel, negative for a signal; None while it lives."""
        if self.kernel is None:
            return int(self.said.get("exit", 0))
        while found := received(self.kernel.line):
            message, _, _ = found
            if message:
                self.said |= json.loads(message)
                continue
            code = int(self.said.setdefault("exit", -signal.SIGKILL))
            killed = code == -signal.SIGKILL and not self.said.get("reason")
            group = self.kernel.group
            if killed and group and control_groups.ran_out_of_memory(group):
                self.said["reason"] = MEMORY
            return code
        return None

    async def wait(self) -> int | None:
        pause = 0.001
        while (code := await self.poll()) is None:
            await asyncio.sleep(pause)
            pause = min(pause * 1.25, 0.1)  # most are gone within a few milliseconds
        self._hang_up()
        await self._all_gone()
        return code

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel and what it started."""
        self.order(signum)

    def next_cell(self) -> None:
        """Count processor time for another cell from now on."""
        self.cell += 1
        self.order(NEXT_CELL)

    async def why_it_was_interrupted(self) -> str:
        """Return the limit that made the wall interrupt the cell, or "" if it did not."""
        await self.poll()
        if self.said.get("interrupted") != self.cell:
            return ""
        if self.said["by"] == CELL_MEMORY:
            return f"used more than {self.limits.cell_memory_bytes // 2**20} MB of memory"
        return f"used more than {self.limits.cell_cpu_seconds} s of processor time"

    async def seconds_used(self) -> tuple[float, float]:
        """Return the processor seconds used for this cell, and for all; 0 if nobody says so."""
        self.said.pop("used", None)
        self.order(SAY_TIME)
        until = time.monotonic() + ANSWER_SECONDS
        while await self.poll() is None and "used" not in self.said and time.monotonic() < until:
            await asyncio.sleep(0.01)
        cell, notebook = self.said.get("used", (0.0, 0.0))
        return cell, notebook

    def scarce(self) -> str:
        """Return what the kernel's user had used up at some time, or "" if nothing."""
        return str(self.said.get("scarce", ""))

    def killed(self) -> bool:
        """Return whether a signal ended the kernel, for no limit of its own."""
        signalled = self.said.get("exit", 0) < 0
        return signalled and not self.said.get("reason") and not self.ended_here

    def lost(self) -> bool:
        """Return whether the kernel ended because the template did, which no cell can cause."""
        return self.kernel is not None and self.kernel.template.ended(within=ENDING_SECONDS)

    def why_it_died(self) -> str:
        """Return the limit that made the wall end the kernel, or "" if it did not."""
        reason = self.said.get("reason")
        if reason == MEMORY:
            return f"it used more than {self.limits.memory_bytes // 2**20} MB of memory"
        if reason == PROCESSOR:
            return f"it used more than {self.limits.cpu_seconds} s of processor time"
        return ""

    def order(self, number: int) -> None:
        """Send the kernel's first process a signal's number, or NEXT_CELL, without waiting."""
        if (kernel := self.kernel) is not None:
            with suppress(OSError):  # it has ended
                kernel.line.send(bytes([number]))

    async def kill(self, restart: bool = False) -> None:
        """End the kernel and all that it left running."""
        self.end_now()
        self._hang_up()
        await self._all_gone()

    def end_now(self) -> None:
        """End the kernel, from whatever thread, even if its first process does not listen."""
        self.ended_here = True
        self.order(signal.SIGKILL)
        if (first := self.first) is not None:
            with suppress(OSError):  # it has ended, or is another user's: then the order has to do
                signal.pidfd_send_signal(first, signal.SIGKILL)

    async def _all_gone(self) -> None:
        """Wait until no process of the kernel is left."""
        if self.first is None:
            return
        self.end_now()
        first, self.first = self.first, None
        ended = select.poll()
        ended.register(first, select.POLLIN)
        until, pause = time.monotonic() + END_SECONDS, 0.001
        while not ended.poll(0) and time.monotonic() < until:
            await asyncio.sleep(pause)
            pause = min(pause * 1.25, 0.1)
        os.close(first)

    async def terminate(self, restart: bool = False) -> None:
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """Release the kernel's sockets; hanging up ends the kernel if it still lives."""
        self._hang_up()
        await self._all_gone()
        if self.folder is not None:
            os.close(self.folder)
            self.folder = None

    def _hang_up(self) -> None:
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None


def received(line: socket.socket) -> tuple[bytes, int, list[int]] | None:
    """Receive a message, the number of the process that sent it, and a descriptor if it has one.

    Return None if none has come yet, and an empty message at the end of the line. An end that
    closes before it has read everything resets the line. Linux says so first, and only then gives
    what that end had sent: why it failed, say.
    """
    room = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(4)
    try:
        try:
            message, ancillary, _, _ = line.recvmsg(65536, room)
        except ConnectionResetError:
            message, ancillary, _, _ = line.recvmsg(65536, room)
    except BlockingIOError:
        return None
    except OSError:
        return b"", 0, []
    about = {kind: data for _, kind, data in ancillary}
    sender, _, _ = CREDENTIALS.unpack(about.get(socket.SCM_CREDENTIALS, bytes(CREDENTIALS.size)))
    descriptors = array("i", about.get(socket.SCM_RIGHTS, b"")).tolist()
    return message, sender, descriptors
