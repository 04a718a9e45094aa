"""Started by test_wall.py, perhaps as another user: runs cells in walled kernels, prints JSON."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import psutil
from wall_attempts import NO_GROUP, NO_USERS
from walled_kernel import PACKAGE, in_one_kernel, kernel, one_cell, running, runs_so_many

from autograde.sandbox import control_groups, template
from autograde.sandbox.both_sides import KernelLimits
from autograde.sandbox.wall import KERNEL_UIDS, root_may_mount


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


async def leaves_no_file_behind() -> bool:
    look_and_leave = (
        "import os\nleft = '/home/student/left'\n"
        "print(os.listdir('/tmp'), os.listdir('/dev/shm'), os.path.exists(left))\n"
        "for path in (left, '/tmp/left', '/dev/shm/left'): open(path, 'w').write('x')"
    )
    said = [await one_cell(look_and_leave) for _ in range(2)]
    return said == ["[] [] False\n"] * 2


async def is_interrupted() -> bool:
    async with kernel() as k:
        cell = asyncio.create_task(k.run("print('begun')\nimport time\ntime.sleep(60)"))
        await k.says("begun")
        await k.manager.interrupt_kernel()
        return "KeyboardInterrupt" in await cell and "2" in await k.run("print(1 + 1)")


async def shuts_down_when_asked() -> bool:
    async with kernel() as k:
        provisioner = k.manager.provisioner
        k.client.shutdown()
        return await k.dead() and await provisioner.poll() == 0


async def dies_by(code: str, exit_code: int) -> bool:
    async with kernel() as k:
        k.client.execute(code)
        wall = k.manager.provisioner
        return await k.dead() and await wall.poll() == exit_code and not wall.lost()


async def leaves_no_process_behind() -> bool:
    marker = f"sleep 12{os.getpid()}"
    async with kernel() as k:
        await k.run(
            "import os, signal, subprocess\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        for s in range(1, 65):\n"
            "            try: signal.signal(s, signal.SIG_IGN)\n"
            "            except (OSError, ValueError): pass\n"
            f"        os.execvp('sleep', {marker.split()!r})\n"
            "    os._exit(0)\n"
            f"subprocess.Popen({marker.split()!r}, start_new_session=True)"
        )
        while_it_lived = await runs_so_many(marker, 2)
    return while_it_lived and await runs_so_many(marker, 0)


async def is_ended_for_its_memory() -> bool:
    limits = KernelLimits(memory_bytes=700 * 2**20)
    async with kernel(limits=limits) as k:
        k.client.execute(
            "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "for _ in range(4):\n    if os.fork() == 0:\n"
            "        x = bytearray(os.urandom(1) * (250 * 2**20)); time.sleep(60)\n"
        )
        return await k.dead() and "memory" in k.manager.provisioner.why_it_died()


async def is_ended_for_its_page_tables() -> bool:
    """Reading memory that was never written takes no memory but that for the tables."""
    async with kernel(limits=KernelLimits(memory_bytes=700 * 2**20)) as k:
        k.client.execute(
            "import ctypes, os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "libc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_long\n"
            "for _ in range(4):\n    if os.fork() == 0:\n"
            "        libc.prctl(15, b'VmPTE: 0 kB')\n"  # as the line is called that tells of them
            "        for n in range(1, 50_000):\n"
            "            at = libc.mmap(ctypes.c_long(n << 22 | 1 << 44), 4096, 1, 34, -1, 0)\n"
            "            ctypes.c_byte.from_address(at).value\n"
            "        time.sleep(60); os._exit(0)\n"
            "time.sleep(60)"
        )
        return await k.dead(40) and "memory" in k.manager.provisioner.why_it_died()


async def ends_though_nothing_watches_it() -> bool:
    marker = f"sleep 14{os.getpid()}"
    async with kernel() as k:
        await k.run(f"import subprocess\nfor _ in range(20): subprocess.Popen({marker.split()!r})")
        if not await runs_so_many(marker, 20):
            return False
        signal.pidfd_send_signal(k.manager.provisioner.first, signal.SIGSTOP)
        await k.manager.shutdown_kernel(now=True)
        return running(marker) == 0


async def has_a_user_of_its_own() -> bool | str:
    if not root_may_mount():
        return NO_USERS
    async with kernel() as first, kernel() as second:
        ask = "print(open('/proc/self/uid_map').read(), open('/proc/self/gid_map').read())"
        said = [(await each.run(ask)).split() for each in (first, second)]
    users = {number for each in said for number in each[1::3]}
    return len(users) == 2 and all(int(number) in KERNEL_UIDS for number in users)


async def goes_by_a_name_that_is_no_text() -> bool:
    name = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\xff\\xfe')\n"
    async with kernel() as k:
        return "there" in await k.run(f"{name}time.sleep(1)\nprint('there')")  # it was looked at


async def is_ended_for_its_processor_time() -> bool:
    async with kernel(limits=KernelLimits(cpu_seconds=3)) as k:
        k.client.execute("import os\nos.fork()\nos.fork()\nwhile True: pass")
        return await k.dead(30) and "processor" in k.manager.provisioner.why_it_died()


async def is_interrupted_for_the_processor_time_of_a_cell() -> bool:
    async with kernel(limits=KernelLimits(cell_cpu_seconds=1)) as k:
        wall = k.manager.provisioner
        half = "import time\nwhile time.process_time() < {}: pass\nprint('through')"
        for seconds in (0.6, 1.2, 1.8):  # too much in total, but each is a cell of its own
            wall.next_cell()
            await asyncio.sleep(0.5)  # the watch has looked
            if "through" not in await k.run(half.format(seconds)):
                return False
        if await wall.why_it_was_interrupted():
            return False
        wall.next_cell()
        said = await k.run("while True: pass")
        why = await wall.why_it_was_interrupted()
        wall.next_cell()
        goes_on = "6" in await k.run("print(6)") and not await wall.why_it_was_interrupted()
        return "KeyboardInterrupt" in said and why.endswith("1 s of processor time") and goes_on


async def is_interrupted_for_a_list_without_end() -> bool:
    """The list is gone then, or the next one would end the kernel."""
    async with kernel(limits=KernelLimits(memory_bytes=1000 * 2**20)) as k:
        wall = k.manager.provisioner
        await k.run("from autograde.notebook import watch; watch()")
        for _ in range(2):
            wall.next_cell()
            said = await k.run(
                "def f():\n    rows = []\n    while True: rows.append(str(len(rows)))\nf()"
            )
            why = await wall.why_it_was_interrupted()
            if "KeyboardInterrupt" not in said or why != "used more than 750 MB of memory":
                return False
        wall.next_cell()
        return "6" in await k.run("print(6)") and not await wall.why_it_was_interrupted()


async def of_no_cell_is_not_interrupted() -> bool:
    """As nbgrader runs a plain assignment: it does not say where a cell begins."""
    async with kernel(limits=KernelLimits(cell_cpu_seconds=1)) as k:
        said = await k.run("import time\nwhile time.process_time() < 2.5: pass\nprint('through')")
        return "through" in said


async def has_a_control_group() -> bool | str:
    limits = KernelLimits(processes=77)
    async with kernel(limits=limits) as k:
        group = k.manager.provisioner.kernel.group
        if not group:
            return NO_GROUP
        inside = (group / "cgroup.procs").read_text().split()
        most = (group / "pids.max").read_text().strip()
    for _ in range(100):
        if not group.exists():
            break
        await asyncio.sleep(0.02)
        control_groups._remove_left()
    return not group.exists() and most == "77" and len(inside) == 2


async def is_ended_for_what_its_sockets_hold() -> bool | str:
    """They are no process's memory, so the watch inside does not see them."""
    limits = KernelLimits(memory_bytes=1000 * 2**20, scratch_bytes=10 * 2**20)
    async with kernel(limits=limits) as k:
        if not k.manager.provisioner.kernel.group:
            return NO_GROUP
        k.client.execute(
            "import os, socket, time\n"
            "for _ in range(40):\n"
            "    if os.fork(): continue\n"
            "    pairs = [socket.socketpair() for _ in range(70)]\n"
            "    for end in (end for pair in pairs for end in pair):\n"
            "        end.setblocking(False)\n"
            "        try:\n"
            "            while True: end.send(bytes(65536))\n"
            "        except BlockingIOError: pass\n"
            "    time.sleep(60)\n"
            "time.sleep(60)"
        )
        return await k.dead() and "memory" in k.manager.provisioner.why_it_died()


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
        for _ in range(10):
            await asyncio.sleep(0.5)
            # A slow machine delivers the interrupt late, while ipykernel handles the first of
            # these. If that is outside the cell's own code, ipykernel never answers.
            with suppress(TimeoutError):
                if "4" in await k.run("print(4)", seconds=10):
                    return True
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


async def comes_from_a_template_without_a_network() -> bool:
    async with kernel():
        within = {
            os.readlink(f"/proc/{inner.pid}/ns/net")
            for child in psutil.Process().children()
            if child.name() == "bwrap"
            for inner in child.children()
        }
    return bool(within) and os.readlink("/proc/self/ns/net") not in within


async def finds_a_new_template() -> bool:
    async with kernel():
        pass
    before = template.current(PACKAGE)
    end_template()
    if not before.ended(within=20):  # until then it may fork a kernel that dies with it
        return False
    async with kernel() as k:
        return "5" in await k.run("print(5)") and template.current(PACKAGE) is not before


async def replaces_a_shared_template_that_ended() -> bool:
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    template.share(line, PACKAGE)
    theirs.close()
    async with kernel() as k:
        return "5" in await k.run("print(5)") and template.current(PACKAGE).line is not line


async def replaces_one_that_died_as_it_waited() -> bool:
    template.prepare(KernelLimits(), PACKAGE)
    spare = template._spare
    assert spare
    spare.line.shutdown(socket.SHUT_RDWR)  # so the grader hangs up, and it ends
    async with kernel(limits=spare.limits) as k:
        return "5" in await k.run("print(5)") and k.manager.provisioner.kernel is not spare


async def dies_with_the_template() -> bool:
    async with kernel() as k:
        end_template()
        return await k.dead() and k.manager.provisioner.lost()


def end_template() -> None:
    """Kill the bubblewrap process that this process started."""
    for child in psutil.Process().children():
        if child.name() == "bwrap":
            child.kill()


async def is_gone_when_the_run_is_killed() -> bool:
    marker = f"sleep 13{os.getpid()}"
    code = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1])\n"
        "import walled_kernel\n"
        "async def go():\n"
        "    async with walled_kernel.kernel() as k:\n"
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


LIVES: dict[str, Callable[[], Awaitable[bool | str]]] = {
    "starts in its files": starts_in_its_files,
    "leaves no file behind": leaves_no_file_behind,
    "is interrupted": is_interrupted,
    "shuts down when asked": shuts_down_when_asked,
    "dies by exit": lambda: dies_by("import os\nos._exit(7)", 7),
    "dies by a signal": lambda: dies_by("import os\nos.kill(os.getpid(), 9)", -9),
    "leaves no process behind": leaves_no_process_behind,
    "is ended for its memory": is_ended_for_its_memory,
    "is ended for its page tables": is_ended_for_its_page_tables,
    "ends though nothing watches it": ends_though_nothing_watches_it,
    "has a user of its own": has_a_user_of_its_own,
    "goes by a name that is no text": goes_by_a_name_that_is_no_text,
    "is ended for its processor time": is_ended_for_its_processor_time,
    "is interrupted for a cell's processor time": is_interrupted_for_the_processor_time_of_a_cell,
    "is interrupted for a list without end": is_interrupted_for_a_list_without_end,
    "of no cell is not interrupted for its time": of_no_cell_is_not_interrupted,
    "has a control group": has_a_control_group,
    "is ended for what its sockets hold": is_ended_for_what_its_sockets_hold,
    "is stopped though it ignores signals": is_stopped_though_it_ignores_signals,
    "outlives the interrupt of a cell": outlives_the_interrupt_of_a_cell,
    "has its own iopub": has_its_own_iopub,
    "draws what no other draws": draws_what_no_other_draws,
    "comes from a template without a network": comes_from_a_template_without_a_network,
    "finds a new template": finds_a_new_template,
    "replaces a shared template that ended": replaces_a_shared_template_that_ended,
    "replaces one that died as it waited": replaces_one_that_died_as_it_waited,
    "dies with the template": dies_with_the_template,
    "is gone when the run is killed": is_gone_when_the_run_is_killed,
}


LATER = {
    "comes from a template without a network", "finds a new template", "dies with the template",
    "replaces a shared template that ended", "replaces one that died as it waited",
    "is gone when the run is killed",
    "is interrupted", "is stopped though it ignores signals", "outlives the interrupt of a cell",
}  # fmt: skip
"""Some of these kill the template that the others share. Some block this process. Some interrupt a
cell, which must have begun by then."""
AT_ONCE = 4
"""Most of a kernel's life here is waiting for messages."""


async def answer(name: str) -> dict[str, str]:
    try:
        said = await LIVES[name]()
    except Exception:
        return {name: traceback.format_exc()}
    return {name: said if isinstance(said, str) else "yes" if said else "no"}


async def go(kernels: list[dict[str, str]], lives: list[str]) -> dict[str, str]:
    free = asyncio.Semaphore(AT_ONCE)

    async def among_others(work: Awaitable[dict[str, str]]) -> dict[str, str]:
        async with free:
            return await work

    works = [in_one_kernel(cells) for cells in kernels]
    works += [answer(name) for name in lives if name not in LATER]
    answers = await asyncio.gather(*map(among_others, works))
    answers += [await answer(name) for name in lives if name in LATER]
    return {name: said for each in answers for name, said in each.items()}


def main() -> None:
    orders = json.load(sys.stdin)
    answers = asyncio.run(go(orders.get("kernels", []), orders.get("lives", [])))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
