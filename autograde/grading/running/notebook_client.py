"""A notebook client for untrusted kernels: bounded output, a quick start, no endless waiting."""

import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any, cast

import zmq
from jupyter_client._version import protocol_version
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.session import Session
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from autograde.grading.limits import LIMITS, Limits
from autograde.grading.running.outputs import joined, reduced, sizes_of

NO_MORE_INPUT = "\x04"
MAX_QUESTIONS = 50
TIMED_OUT = "CellTimeoutError"
OUTPUTS = ("stream", "display_data", "execute_result", "error")
OTHERS = {"status": "execution_state", "clear_output": "wait"}
"""The other types of messages that are read, and what is read of each."""
LARGE = 100_000
"""A message of more bytes is large. Those that say when a cell begins and ends are small."""
HEAD = 20_000
"""The most bytes of a message beside its content and buffers; ipykernel's have 1,000."""
START_SECONDS = 30
ANSWER_SECONDS = 5
STOP_SECONDS = 12
"""A cell may take so long to say that it has ended, and goes on showing meanwhile."""
AGAIN_SECONDS = 4
"""An interrupted cell that has not ended by then is interrupted again, and then each second."""
ALIVE_SECONDS = 0.1
LOST_SECONDS = 5
"""A kernel that has died loses its connections first; within this time its death is known."""


class BrokenConnection(Exception):
    """The kernel's side of a connection is gone, though the kernel lives."""


class SizedSession(Session):
    """Sends without waiting; reads messages from a kernel and adds to each whether it was `cut`.

    Then only its type was read: it is too large, or too many large ones came before it.
    """

    limits = LIMITS
    received = 0

    def send(self, *arguments: Any, **options: Any) -> dict[str, Any] | None:
        """Send as the parent class does.

        Raises:
            BrokenConnection: there is nobody to send it to, and waiting would never end.
        """
        try:
            return super().send(*arguments, **options)
        except zmq.Again:
            raise BrokenConnection from None

    def deserialize(
        self, msg_list: list[Any], content: bool = True, copy: bool = True
    ) -> dict[str, Any]:
        size = sum(map(len, msg_list))
        if size > LARGE:
            self.received += size
        over = max(size - self.limits.message_bytes, self.received - self.limits.received_bytes) > 0
        cut = over and size > LARGE
        signature, *about, body = msg_list[:5]
        if sum(map(len, about)) > HEAD:
            raise ValueError(f"a head of {sum(map(len, about))} bytes")
        if cut or signature == self.sign([*about, body]):
            header, parent = map(_named, about[:2])
            parts = [header, parent, b"{}", b"{}" if cut else body]
            msg_list = [self.sign(parts), *parts]
        read = super().deserialize(msg_list, content, copy)
        return {**read, "cut": cut}


def _named(header: bytes) -> bytes:
    """Return a header with its identity and type alone: jupyter_client reads dates in all else."""
    read = json.loads(header)
    kept = {key: read[key] for key in ("msg_id", "msg_type") if isinstance(read.get(key), str)}
    return json.dumps({**kept, "version": protocol_version}).encode()


class GradingClient(NotebookClient):
    """A notebook client that limits what it keeps from the kernel, and goes on after errors."""

    def __init__(self, nb: NotebookNode, limits: Limits, **options: Any) -> None:
        super().__init__(
            nb,
            interrupt_on_timeout=True,
            iopub_timeout=STOP_SECONDS,
            error_on_timeout={"ename": TIMED_OUT, "evalue": "", "traceback": []},
            allow_errors=True,
            record_timing=False,
            store_widget_state=False,
            shutdown_kernel="immediate",
            on_cell_executed=self._note_timeout,
            **options,
        )
        self._limits = limits
        self._most = _resident_bytes() + limits.worker_bytes
        self._all: Counter[str] = Counter()
        self._taken: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self.flooded: set[int] = set()
        self.timed_out: set[int] = set()
        self.told = False
        self.broken = False
        self.left_behind = False
        self._monitors: list[zmq.Socket[bytes]] = []
        self._lost_at: float | None = None
        self._interrupting: asyncio.Task[None] | None = None

    @property
    def kernel(self) -> AsyncKernelClient:
        return cast(AsyncKernelClient, self.kc)

    async def async_start_new_kernel_client(self) -> AsyncKernelClient:
        """Connect, and wait only until the kernel answers and its output arrives."""
        self.kc = cast(Any, self.km).client()
        session = self.kernel.session
        self.kernel.session = SizedSession(key=session.key, session=session.session)
        self.kernel.session.limits = self._limits
        # a larger message closes the connection; what the queue cannot hold waits in the kernel
        self.kernel.context.setsockopt(zmq.MAXMSGSIZE, self._limits.socket_bytes)
        self.kernel.context.setsockopt(zmq.RCVHWM, self._limits.waiting_messages)
        # where the kernel has ended a connection, sending would wait for ever
        self.kernel.context.setsockopt(zmq.SNDTIMEO, 0)
        # messages on other channels would never be read
        self.kernel.start_channels(hb=False, control=False)
        channels = (self.kernel.shell_channel, self.kernel.iopub_channel, self.kernel.stdin_channel)
        for channel in cast(Any, channels):
            self._monitors.append(channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED))
        self.kernel.allow_stdin = False
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if await self.answers(within=1) and await self._output_arrives():
                return self.kernel
            await self._async_check_alive()
        raise DeadKernelError(f"the kernel did not answer within {START_SECONDS} s")

    async def _output_arrives(self) -> bool:
        try:
            await self.kernel.get_iopub_msg(timeout=0.2)
        except Empty:
            return False
        return True

    async def answers(self, within: float = ANSWER_SECONDS) -> bool:
        """Return whether the kernel answers; if not, it still runs a cell that should be over."""
        request = self.kernel.kernel_info()
        until = time.monotonic() + within
        while (left := until - time.monotonic()) > 0:
            try:
                reply = await self.kernel.get_shell_msg(timeout=left)
            except Empty:
                return False
            if reply["parent_header"].get("msg_id") == request:
                return True
        return False

    async def tell_when_asked(self, secret: str) -> None:
        """Send the kernel a secret when a cell that may ask for input first does.

        What the kernel sends is untrusted: if it cannot be read, this ends with the error.
        """
        for _ in range(MAX_QUESTIONS):  # answers that nobody reads would fill the socket, and block
            await self.kernel.get_stdin_msg()
            tell = self.kernel.allow_stdin and not self.told
            self.kernel.input(secret if tell else NO_MORE_INPUT)
            self.told = self.told or tell
        self.kernel.stdin_channel.stop()  # else what nobody reads any more fills the memory
        raise ValueError("the kernel asks for input again and again")

    async def _async_handle_timeout(
        self, timeout: int, cell: NotebookNode | None = None
    ) -> dict[str, Any] | None:
        self._interrupting = asyncio.create_task(self._interrupt_again())
        return await super()._async_handle_timeout(timeout, cell)

    async def _interrupt_again(self) -> None:
        """Interrupt a cell again: the first time may be lost, in a bare `except:` for example."""
        await asyncio.sleep(AGAIN_SECONDS)
        with suppress(RuntimeError):  # where no kernel is left
            while True:
                await cast(Any, self.km).interrupt_kernel()
                await asyncio.sleep(1)

    def _note_timeout(
        self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]
    ) -> None:
        # a reply is the student's, and may name any error
        if self._interrupting is not None:
            self._interrupting.cancel()
            self._interrupting = None
            self.timed_out.add(cell_index)

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if self.left_behind:
            raise asyncio.CancelledError
        msg_type, content = msg["msg_type"], msg["content"]
        if msg_type in OUTPUTS:
            if self.clear_before_next_output:
                cell.outputs, self.clear_before_next_output = [], False
            if msg["cut"] or not self._keep(reduced(msg_type, content), cell, cell_index):
                self.flooded.add(cell_index)
        elif msg_type in OTHERS:
            content = {OTHERS[msg_type]: content.get(OTHERS[msg_type])}
            super().process_message({**msg, "content": content}, cell, cell_index)
        return None  # what widgets send, for example, is not shown

    def _keep(self, output: NotebookNode, cell: NotebookNode, cell_index: int) -> bool:
        """Add an output to a cell, one for each of its streams; return False if there is no room.

        Recordings have a limit of their own, so that printing too much does not cost one.
        """
        if output.get("data") == {}:
            return True
        taken, earlier = self._taken[cell_index], None
        if not cell.outputs:  # it may have cleared them
            self._all.subtract(taken)
            taken.clear()
        if output.output_type == "stream":
            earlier = next((o for o in cell.outputs if o.get("name") == output.name), None)
            output.text = joined(earlier.text if earlier else "", output.text)
        more = sizes_of(output)
        more.subtract(sizes_of(earlier) if earlier else {})
        if any(self._all[of] + size > getattr(self._limits, of) for of, size in more.items()):
            if output.get("traceback"):  # what was raised is told in any case
                self._keep(NotebookNode(output, traceback=[]), cell, cell_index)
            return False
        self._all.update(more)
        taken.update(more)
        if earlier:
            earlier.text = output.text
        else:
            cell.outputs.append(output)
        return True

    async def _async_poll_kernel_alive(self) -> None:
        """Check that the kernel is alive, more often than the parent class does."""
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            if self.kc is None:  # the notebook is done
                return
            if _resident_bytes() > self._most:  # a message that does not end is collected unseen
                await cast(Any, self.km).provisioner.kill()
            try:
                await self._async_check_alive()
            except DeadKernelError:
                await asyncio.sleep(ALIVE_SECONDS)  # what it sent before may still arrive
                cast(Any, self.task_poll_for_reply).cancel()
                return
            if self._lost_a_connection():
                self.broken = True
                cast(Any, self.task_poll_for_reply).cancel()
                return

    def _lost_a_connection(self) -> bool:
        """Return whether the kernel ended a connection some time ago, and lives on.

        Its code alone can do that: by closing it, or with a message that is too large or none.
        """
        if self._lost_at is None and any(
            int(m.get(zmq.EVENTS)) & zmq.POLLIN for m in self._monitors
        ):
            self._lost_at = time.monotonic()
        return self._lost_at is not None and time.monotonic() - self._lost_at > LOST_SECONDS


def _resident_bytes() -> int:
    """Return the memory of this process; 0 where the system is not Linux and does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
