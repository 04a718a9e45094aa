"""Started by test_wall.py, perhaps as another user: runs cells in walled kernels, prints JSON."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from autograde.kernels import template
from autograde.kernels.inside.confine import Limits
from autograde.kernels.private import walled_manager, why_it_died

EMPTY = tempfile.mkdtemp()


class Kernel:
    """A walled kernel with a client."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    async def run(self, code: str, seconds: float = 60) -> str:
        """Everything that a cell displays, as text."""
        said: list[str] = []

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

    async def dead(self, seconds: float = 20) -> bool:
        for _ in range(int(seconds * 20)):
            if not await self.manager.is_alive():
                return True
            await asyncio.sleep(0.05)
        return False


@asynccontextmanager
async def kernel(folder: str = EMPTY, limits: Limits | None = None) -> AsyncIterator[Kernel]:
    manager = walled_manager(limits)
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


async def starts_in_its_files() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sub").mkdir()
        Path(folder, "sub", "helper.py").write_text("x = 7")
        Path(folder, ".hidden").write_text("")
        Path(folder, "link").symlink_to("/etc/hostname")
        async with kernel(folder) as k:
            said = await k.run(
                "from sub.helper import x; import os; print(x, sorted(os.listdir()))"
            )
    return said.startswith("7 [") and "hidden" not in said and "link" not in said


async def is_interrupted() -> bool:
    async with kernel() as k:
        cell = asyncio.create_task(k.run("import time\ntime.sleep(60)"))
        await asyncio.sleep(0.5)
        await k.manager.interrupt_kernel()
        return "KeyboardInterrupt" in await cell and "2" in await k.run("print(1 + 1)")


async def restarts() -> bool:
    async with kernel() as k:
        await k.run("x = 1")
        await k.manager.restart_kernel(now=True)
        await k.client.wait_for_ready(timeout=30)
        fresh = "NameError" in await k.run("x")
        await k.manager.restart_kernel()
        await k.client.wait_for_ready(timeout=30)
        return fresh and "3" in await k.run("print(3)")


async def shuts_down_when_asked() -> bool:
    async with kernel() as k:
        provisioner = k.manager.provisioner
        k.client.shutdown()
        return await k.dead() and await provisioner.poll() == 0


async def dies_by(code: str, exit_code: int) -> bool:
    async with kernel() as k:
        k.client.execute(code)
        return await k.dead() and await k.manager.provisioner.poll() == exit_code


async def leaves_no_process_behind() -> bool:
    marker = f"sleep 12{os.getpid()}"
    async with kernel() as k:
        await k.run(
            "import os, signal, subprocess, time\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        for s in range(1, 65):\n"
            "            try: signal.signal(s, signal.SIG_IGN)\n"
            "            except (OSError, ValueError): pass\n"
            f"        os.execvp('sleep', {marker.split()!r})\n"
            "    os._exit(0)\n"
            f"subprocess.Popen({marker.split()!r}, start_new_session=True)\n"
            "time.sleep(0.3)"
        )
        while_it_lived = running(marker)
    time.sleep(0.2)
    return while_it_lived == 2 and running(marker) == 0


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


async def is_ended_for_its_memory() -> bool:
    limits = Limits(memory_bytes=700 * 2**20)
    async with kernel(limits=limits) as k:
        k.client.execute(
            "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n"
            "        x = bytearray(os.urandom(1) * (250 * 2**20)); time.sleep(60)\n"
        )
        return await k.dead() and "memory" in why_it_died(k.manager)


async def is_ended_for_its_processor_time() -> bool:
    async with kernel(limits=Limits(cpu_seconds=3)) as k:
        k.client.execute("import os\nos.fork()\nos.fork()\nwhile True: pass")
        return await k.dead(30) and "processor" in why_it_died(k.manager)


async def is_stopped_though_it_ignores_signals() -> bool:
    async with kernel() as k:
        k.client.execute(
            "import signal\nfor s in range(1, 65):\n"
            "    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
            "while True: pass"
        )
        await asyncio.sleep(0.5)
        await k.manager.interrupt_kernel()
        await asyncio.sleep(0.3)
        if not await k.manager.is_alive():
            return False
        await k.manager.shutdown_kernel(now=True)
        return not await k.manager.is_alive()


async def outlives_the_interrupt_of_a_cell() -> bool:
    async with kernel() as k:
        await asyncio.sleep(0.5)  # until it has nothing left to do for its start
        await k.manager.interrupt_kernel()
        for _ in range(20):  # where the machine is slow, the interrupt reaches the first of them
            if "4" in await k.run("print(4)"):
                return True
            await asyncio.sleep(0.2)
        return False


async def has_its_own_iopub() -> bool:
    async with kernel() as first, kernel() as second:
        del first
        said = await second.run(
            "import os, glob\nprint(sorted(os.listdir('/ipc')), "
            "[glob.glob(f'/proc/*/{place}/ipc/*') for place in ('root', 'cwd')])"
        )
        return "['k-1', 'k-2', 'k-3', 'k-4', 'k-5']" in said and "/proc/3" not in said


async def draws_what_no_other_draws() -> bool:
    draw = (
        "import numpy, os, random, uuid\nprint(numpy.random.rand(), random.random(), uuid.uuid4())"
    )
    async with kernel() as first, kernel() as second:
        drawn = [(await each.run(draw)).split() for each in (first, second)]
    return len(drawn[0]) == 3 and not set(drawn[0]) & set(drawn[1])


async def finds_a_new_template() -> bool:
    async with kernel():
        pass
    before = template.current()
    end_template()
    async with kernel() as k:
        return "5" in await k.run("print(5)") and template.current() is not before


async def dies_with_the_template() -> bool:
    async with kernel() as k:
        end_template()
        return await k.dead()


def end_template() -> None:
    """Kill the bubblewrap process that this process started."""
    for child in subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines():  # fmt: skip
        number, name = child.split()
        if name == "bwrap":
            os.kill(int(number), signal.SIGKILL)


async def is_gone_when_the_run_is_killed() -> bool:
    marker = f"sleep 13{os.getpid()}"
    code = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1])\n"
        "import wall_driver\n"
        "async def go():\n"
        "    async with wall_driver.kernel() as k:\n"
        f"        await k.run('import subprocess; subprocess.Popen(\"{marker}\".split())')\n"
        "        print('there', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(go())\n"
    )
    here = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", code, here], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.readline()
        there = running(marker)
        run.kill()
    for _ in range(100):
        if not running(marker):
            return there == 1
        time.sleep(0.1)
    return False


LIVES: dict[str, Callable[[], Awaitable[bool]]] = {
    "starts in its files": starts_in_its_files,
    "is interrupted": is_interrupted,
    "restarts": restarts,
    "shuts down when asked": shuts_down_when_asked,
    "dies by exit": lambda: dies_by("import os\nos._exit(7)", 7),
    "dies by a signal": lambda: dies_by("import os\nos.kill(os.getpid(), 9)", -9),
    "leaves no process behind": leaves_no_process_behind,
    "is ended for its memory": is_ended_for_its_memory,
    "is ended for its processor time": is_ended_for_its_processor_time,
    "is stopped though it ignores signals": is_stopped_though_it_ignores_signals,
    "outlives the interrupt of a cell": outlives_the_interrupt_of_a_cell,
    "has its own iopub": has_its_own_iopub,
    "draws what no other draws": draws_what_no_other_draws,
    "finds a new template": finds_a_new_template,
    "dies with the template": dies_with_the_template,
    "is gone when the run is killed": is_gone_when_the_run_is_killed,
}


def main() -> None:
    orders = json.load(sys.stdin)
    answers = {name: asyncio.run(one_cell(code)) for name, code in orders.get("cells", {}).items()}
    for name in orders.get("lives", []):
        try:
            answers[name] = "yes" if asyncio.run(LIVES[name]()) else "no"
        except Exception:
            answers[name] = traceback.format_exc()
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
