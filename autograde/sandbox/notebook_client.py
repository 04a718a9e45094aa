"""The notebook client that grading uses: bounded output, a quick start, no waiting for the deaf."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from queue import Empty
from typing import Any, cast

from jupyter_client.asynchronous.client import AsyncKernelClient
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from autograde.rubric.recording import MIME

NO_MORE_INPUT = "\x04"
MAX_QUESTIONS = 50
TIMED_OUT = "CellTimeoutError"
OUTPUTS = ("stream", "display_data", "execute_result", "update_display_data", "error")
RECORDING_BYTES = 64_000_000
START_SECONDS = 30
ANSWER_SECONDS = 5
ALIVE_SECONDS = 0.1


class GradingClient(NotebookClient):
    """A notebook client that keeps only so much output of each cell, and goes on after errors."""

    def __init__(self, nb: NotebookNode, cell_output_bytes: int, **options: Any) -> None:
        super().__init__(
            nb,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": TIMED_OUT, "evalue": "", "traceback": []},
            allow_errors=True,
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
            shutdown_kernel="immediate",
            **options,
        )
        self._limit = cell_output_bytes
        self._bytes: Counter[tuple[int, bool]] = Counter()
        self.flooded: set[int] = set()
        self.told = False

    @property
    def kernel(self) -> AsyncKernelClient:
        return cast(AsyncKernelClient, self.kc)

    def tell(self, code: str) -> None:
        """Have the kernel run a line of the grader's own; nothing waits for it."""
        self.kernel.execute(code, silent=True, store_history=False)

    @asynccontextmanager
    async def telling(self, secret: str) -> AsyncIterator["asyncio.Task[None]"]:
        """Tell the kernel a secret when it first asks for input in a cell that may; the teller.

        What the kernel sends is untrusted: if it cannot be read the teller ends, and the end of
        this block raises what went wrong.
        """
        teller = asyncio.create_task(self._tell_when_asked(secret))
        try:
            yield teller
        finally:
            teller.cancel()
            with suppress(asyncio.CancelledError):
                await teller

    async def _tell_when_asked(self, secret: str) -> None:
        for _ in range(MAX_QUESTIONS):  # answers that nobody reads would fill the socket, and block
            await self.kernel.get_stdin_msg()
            tell = self.kernel.allow_stdin and not self.told
            self.kernel.input(secret if tell else NO_MORE_INPUT)
            self.told = self.told or tell
        self.kernel.stdin_channel.stop()  # else what nobody reads any more fills the memory
        raise ValueError("the kernel asks for input again and again")

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] in OUTPUTS:
            # printing too much must not cost the recording, so each has a limit of its own
            kind = cell_index, MIME in msg["content"].get("data", {})
            self._bytes[kind] += len(str(msg["content"]))
            if self._bytes[kind] > (RECORDING_BYTES if kind[1] else self._limit):
                self.flooded.add(cell_index)
                return None
        return super().process_message(msg, cell, cell_index)

    async def async_start_new_kernel_client(self) -> AsyncKernelClient:
        """Connect, and wait until the kernel answers and its output arrives, but no longer."""
        self.kc = cast(Any, self.km).client()
        # messages on other channels would never be read
        self.kernel.start_channels(hb=False, control=False)
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
        """Whether the kernel answers: it is not deaf to interrupts, in a cell that is over."""
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

    async def _async_poll_kernel_alive(self) -> None:
        """As in the parent class, which looks once a second."""
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            try:
                await self._async_check_alive()
            except DeadKernelError:
                await asyncio.sleep(ALIVE_SECONDS)  # what it sent before may still arrive
                cast(Any, self.task_poll_for_reply).cancel()
                return
