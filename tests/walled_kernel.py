"""A walled kernel with a client, for tests; and which commands run on this machine."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from autograde.sandbox.both_sides import KernelLimits
from autograde.sandbox.provisioner import walled_manager

EMPTY = tempfile.mkdtemp()
PACKAGE = "attention_course"


class Kernel:
    """A walled kernel with a client."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client
        self.said: list[str] = []

    async def run(self, code: str, seconds: float = 60) -> str:
        """Everything that a cell displays, as text."""
        self.said = said = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if "text" in content:
                said.append(content["text"])
            elif "data" in content:
                said.append(str(content["data"])[:2000])
            elif "ename" in content:
                said.append(f"{content['ename']}: {content['evalue']}")

        await self.client.execute_interactive(
            code, timeout=seconds, output_hook=hear, allow_stdin=False
        )
        return "".join(said)

    async def says(self, text: str, seconds: float = 20) -> None:
        """Wait until the running cell has displayed this text."""
        for _ in range(int(seconds * 20)):
            if text in "".join(self.said):
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"the cell did not say {text!r}")

    async def dead(self, seconds: float = 20) -> bool:
        for _ in range(int(seconds * 20)):
            if not await self.manager.is_alive():
                return True
            await asyncio.sleep(0.05)
        return False


@asynccontextmanager
async def kernel(folder: str = EMPTY, limits: KernelLimits | None = None) -> AsyncIterator[Kernel]:
    manager = walled_manager(limits or KernelLimits(), PACKAGE)
    await manager.start_kernel(cwd=folder)
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def one_cell(code: str) -> str:
    async with kernel() as k:
        return await k.run(code)


async def in_one_kernel(cells: dict[str, str]) -> dict[str, str]:
    async with kernel() as k:
        return {name: await k.run(code) for name, code in cells.items()}


async def runs_so_many(command: str, number: int) -> bool:
    """Return True once so many processes run this command, False if that takes ten seconds."""
    end = time.monotonic() + 10
    while running(command) != number and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return running(command) == number


def running(command: str) -> int:
    found = 0
    for path in Path("/proc").iterdir():
        try:
            found += (path / "cmdline").read_bytes().replace(
                b"\0", b" "
            ).strip() == command.encode()
        except OSError:
            continue
    return found
