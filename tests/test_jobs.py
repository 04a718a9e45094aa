"""One notebook's cells in a kernel: limits, dead kernels, floods, questions."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from attacks import CONNECTIONS
from jupyter_client.session import Session
from nightly import few, nightly

from autograde.course.lessons import CourseError
from autograde.grading.limits import Limits
from autograde.grading.running.job import Job, Ran
from autograde.grading.running.notebook_client import GradingClient, SizedSession
from autograde.grading.running.run import run_job
from autograde.grading.submission import Disturbed, Problem
from autograde.sandbox import host_limits
from autograde.sandbox.both_sides import KernelLimits
from autograde.sandbox.provisioner import WalledProvisioner, received
from autograde.sandbox.wall import missing

WALL = not missing()
walled = pytest.mark.skipif(not WALL, reason="no wall here")


def job(*cells: tuple[str, str], **more: Any) -> Job:
    """A job of cells, each its name and its code."""
    return Job(cells, files=(), seed=7, wall=WALL, **more)


def printed(ran: Ran) -> list[str]:
    return ["".join(output.get("text", "") for output in cell["outputs"]) for cell in ran.cells]


@nightly
def test_a_notebook_has_its_time_on_the_clock() -> None:
    cells = [("", f"import time; time.sleep(3); print({n})") for n in "1234"]
    ran = run_job(job(*cells, limits=Limits(notebook_seconds=5)))
    assert ran.problem == Problem(
        "the notebook ran too long",
        "The notebook ran longer than 5 s. The cells after that were not run.",
    )
    assert [bool(text) for text in printed(ran)] == [True, True, False, False]


def test_what_ended_a_run_has_a_kind_without_the_students_words() -> None:
    ran = run_job(job(("", "jane = 1; import os; os._exit(0)")))
    assert ran.problem
    assert ran.problem.cause == "the kernel died while the notebook ran"
    assert "jane" in ran.problem.words
    assert Ran.from_bytes(ran.to_bytes()) == ran


@nightly
def test_an_answer_that_was_interrupted_is_not_waited_for_again() -> None:
    cells = [("a", "while True: pass"), ("test_a", "print(1)")]
    ran = run_job(job(*cells, limits=Limits(cell_seconds=3)), look=lambda *_: True)
    assert list(ran.notes) == [0]
    assert printed(ran) == ["", "1\n"]
    assert ran.seconds < 6


@walled
def test_a_submission_that_lost_its_template_gets_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WalledProvisioner, "lost", lambda self: True)
    with pytest.raises(CourseError, match="grade it again"):
        run_job(job(("", "import os; os._exit(0)")))


def test_what_a_kernel_said_last_is_read_though_it_left_something_unread() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.send(b"files")
        theirs.send(b"why it failed")
        theirs.close()
        assert received(ours) == (b"why it failed", 0, [])


@pytest.mark.parametrize("name", ["source/a.txt", "nbgrader_config.py", "gradebook.db"])
def test_files_are_there_also_where_one_is_named_as_in_a_course(name: str) -> None:
    files = ((name, b"x"), ("data.csv", b"1"))
    look = f"print(open({name!r}).read(), open('data.csv').read())"
    ran = run_job(Job((("", look),), files, wall=WALL))
    assert printed(ran) == ["x 1\n"]


WIDGET = "import ipywidgets; o = ipywidgets.Output()\nwith o: print(1)\no"


def test_widgets_and_exit_do_no_harm() -> None:
    ran = run_job(job(("", WIDGET), ("", "exit"), ("", "quit()"), *[("", "print(2)")] * 3))
    assert (ran.problem, ran.notes) == (None, {})
    assert printed(ran)[3:] == ["2\n"] * 3


def test_an_error_that_bears_the_name_of_a_timeout_is_none() -> None:
    name = "class CellTimeoutError(Exception): pass\nraise CellTimeoutError('mine')"
    ran = run_job(job(("", name), ("", "print(1)")))
    assert (ran.problem, ran.notes, printed(ran)[1]) == (None, {}, "1\n")


ENDS = ("", "import os; os._exit(0)")


def test_a_cell_that_ends_the_kernel_costs_no_other_its_result() -> None:
    ran = run_job(job(("", "x = 1"), ENDS, ("", "print(x)")))
    assert printed(ran) == ["", "", "1\n"]
    assert ran.notes == {1: "it ended the kernel, so the notebook was run again without it"}
    assert ran.problem
    assert ran.problem.words.endswith("run again without that cell.")


def test_a_notebook_runs_again_twice_at_most() -> None:
    ran = run_job(job(ENDS, ("", "print(1)"), ENDS, ("", "print(2)"), ENDS, ("", "print(3)")))
    assert printed(ran) == ["", "1\n", "", "2\n", "", ""]
    assert [*ran.notes] == [0, 2]
    assert ran.problem
    assert ran.problem.words.endswith("The cells after that were not run.")


IN_MANY_PARTS = """
kernel, part = get_ipython().kernel, bytes(30_000_000)
to = kernel._get_shell_context_var(kernel._shell_parent_ident)
head = [b"<IDS|MSG>", b"unsigned", b"{}", b"{}", b"{}", b"{}"]
kernel.stdin_socket.send_multipart([*to, *head, *[part] * 60], copy=False)
"""


@walled
def test_a_message_of_many_parts_does_not_fill_the_worker() -> None:
    limits = Limits(worker_bytes=200_000_000)
    ran = run_job(job(("", IN_MANY_PARTS), ("", "import time; time.sleep(9)"), limits=limits))
    assert ran.problem
    assert ran.problem.cause == "the kernel died while the notebook ran"


def frames(session: Session, dates: int) -> list[bytes]:
    """A message with this many dates in its header, and in that of its request."""
    full = session.msg_header("stream")
    full |= {str(n): "2026-01-01T00:00:00.000000Z" for n in range(dates)}
    header = json.dumps(full, default=str).encode()
    parts = [header, header, b"{}", json.dumps({"name": "stdout", "text": "."}).encode()]
    return [session.sign(parts), *parts]


def test_dates_in_headers_are_not_read() -> None:
    session = SizedSession(key=b"key")
    messages = [frames(session, 200) for _ in range(1_000)]
    began = time.thread_time()
    for message in messages:
        read = session.deserialize(message)
    assert time.thread_time() - began < 2  # 400,000 dates took 6 seconds
    assert read["header"]["msg_type"] == "stream"
    assert read["content"] == {"name": "stdout", "text": "."}


@pytest.mark.parametrize("dates", [1, 2_000])
def test_a_message_with_a_long_or_unsigned_head_is_refused(dates: int) -> None:
    session = SizedSession(key=b"key")
    _, *parts = frames(session, dates)
    with pytest.raises(ValueError, match=r"a head of|Invalid Signature"):
        session.deserialize([b"unsigned", *parts])


ASK_OFTEN = """
for _ in range(60):
    try:
        input()
    except Exception as error:
        said = type(error).__name__
print(said)
"""


def test_who_asks_for_input_gets_an_error_at_once_and_the_seed_is_told_once() -> None:
    seed = "from autograde.rubric.session import current; print(current().seed)"
    ran = run_job(
        job(("test_a", seed + ASK_OFTEN), ("", ASK_OFTEN), ("test_b", ASK_OFTEN), ("", "1"))
    )
    assert (ran.problem, ran.notes) == (None, {})
    said = printed(ran)
    assert said[0].split() == ["7", "StdinNotImplementedError"]
    assert said[1].split() == said[2].split() == ["StdinNotImplementedError"]
    assert ran.cells[3]["outputs"]


USE_UP = """
import array, os, socket, time
kept = []
try:
    for _ in range(300):
        kept.append(socket.socketpair())
        for _ in range(3):
            kept[-1][0].sendmsg([b"+"], [(1, 1, array.array("i", [kept[-1][0].fileno()]))])
        if len(kept) > 90: break
except OSError as error:
    print(error)
time.sleep(1)
"""
DOUBTFUL = {
    "a time-out in which little time was used": "import time; time.sleep(9)",
    "a kernel that was killed": "import os; os.kill(os.getpid(), 9)",
    "a kernel that a library aborted": "import os; os.abort()",
    "what a user has was used up": USE_UP,
}


@walled
@pytest.mark.parametrize("name", few(DOUBTFUL.keys(), "a kernel that was killed"))
def test_what_others_may_have_caused_counts_only_alone(name: str) -> None:
    work = job(("", DOUBTFUL[name]), limits=Limits(cell_seconds=3))
    with pytest.raises(Disturbed, match="other notebooks may have disturbed this one"):
        run_job(work, alone=False)
    assert run_job(work)


FULL = "rows = bytearray(600 * 2**20)\nfor n in range(0, len(rows), 4096): rows[n] = 1\n"


@walled
@pytest.mark.parametrize(("gigabytes", "fits"), [(0.75, False), (2, True)])
def test_a_lesson_says_how_much_memory_its_kernels_get(gigabytes: float, fits: bool) -> None:
    code = f"import time\n{FULL}time.sleep(1)\nprint('done')"
    ran = run_job(job(("it", code), limits=Limits().with_memory(gigabytes)))
    assert [bool(text) for text in printed(ran)] == [fits]
    assert ("used more than 576 MB of memory" in str(ran.notes)) != fits


@walled
@pytest.mark.parametrize("code", ["while True: pass", "import os; os._exit(1)", "1 / 0"])
def test_what_is_the_notebooks_own_doing_counts_at_once(code: str) -> None:
    limits = Limits(cell_seconds=3, busy_share=0.02)  # the tests themselves may keep it waiting
    assert run_job(job(("", code), limits=limits), alone=False)


@walled
def test_a_cell_has_its_processor_time() -> None:
    cells = [("", "print(1)"), ("", "while True: pass"), ("", "print(3)")]
    ran = run_job(job(*cells, limits=Limits(kernel=KernelLimits(cell_cpu_seconds=1))))
    assert ran.problem is None
    assert ran.notes == {1: "used more than 1 s of processor time and was interrupted"}
    assert printed(ran)[2] == "3\n"


def test_a_cell_that_loses_interrupts_gets_more_of_them() -> None:
    lost = "import time\nfor n in range(2):\n    try: time.sleep(60)\n    except: print(n)"
    ran = run_job(job(("", lost), ("", "print('after')"), limits=Limits(cell_seconds=3)))
    assert ran.problem is None
    assert printed(ran) == ["0\n1\n", "after\n"]


NOISY = {
    "half a character": ("print('\\ud83d')", "\ufffd\n"),
    "half a character in an error": ("raise ValueError('\\udc80')", ""),
    "half a character as a value": ("print(1); '\\ud83d'", "1\n"),
    "bytes to the process's own stream": ("import os; os.write(2, b'\\x1b[2J')", None),
    "another program": ("__import__('subprocess').run('echo loud >&2', shell=True)", None),
}


@pytest.mark.parametrize("wall", [False, pytest.param(True, marks=walled)])
@pytest.mark.parametrize("kind", NOISY)
def test_odd_output_disturbs_neither_the_terminal_nor_the_next_cell(
    kind: str, wall: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = NOISY[kind]
    cells = (("", "0"), ("", code), ("after", "print('after')"))
    ran = run_job(Job(cells, (), wall))
    assert capfd.readouterr() == ("", "")
    assert (ran.problem, ran.notes) == (None, {})
    assert text in (None, printed(ran)[1])
    assert "after\n" in printed(ran)[2]  # beside bytes that came late
    assert ran.seconds < 25  # a lost message takes ten


BROKEN = "the notebook broke its connection to the grader"
DEAF = "a cell ran too long and did not stop"
UNREADABLE = "what the kernel sent could not be read"
REPLY = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); kernel = get_ipython().kernel\n"
)
BLOCKS = {
    "a frame of no size, shell": ("for s in connections(1): s.send(b'\\2' + b'\\xff' * 8)", BROKEN),
    "a frame of no size, iopub": ("for s in connections(2): s.send(b'\\2' + b'\\xff' * 8)", BROKEN),
    "a frame of no kind": ("for s in connections(1, 2): s.send(b'\\xff\\3abc')", BROKEN),
    "a message too large": ("for s in connections(1): s.send(b'\\2\\0\\0\\1' + bytes(5))", BROKEN),
    "a message without an end": (
        "for s in connections(1, 2): s.send(b'\\2' + (10**7).to_bytes(8, 'big') + b'x')\n"
        "time.sleep(60)",
        DEAF,
    ),
    "messages without an end": (
        REPLY + "parent = kernel.get_parent('shell')\n"
        "while True: kernel.session.send(kernel.iopub_socket, 'status', {}, parent=parent)",
        DEAF,
    ),
    "no messages": (
        "for s in connections(2):\n    while True: s.sendall(b'\\1\\1x\\0\\1x' * 1000)",
        UNREADABLE,
    ),
}
"""What a kernel sends to hold up the grader, and the cause of the problem that is found."""


@walled
@pytest.mark.parametrize("name", few(BLOCKS.keys(), "no messages"))
def test_no_message_holds_up_the_grader(name: str) -> None:
    code, cause = BLOCKS[name]
    limits, began = Limits(cell_seconds=3, notebook_seconds=12), time.monotonic()
    cells = [("", "print('before')"), ("", CONNECTIONS + code), ("", "print('after')")]
    ran = run_job(job(*cells, limits=limits))
    assert time.monotonic() - began < limits.notebook_seconds + 30
    assert ran.problem
    assert ran.problem.cause == cause
    assert printed(ran) == ["before\n", "", ""]  # in 12 s there is no time to run it again


@pytest.fixture
def blocked() -> Iterator[Event]:
    """What blocks the loop of a run until the test is over."""
    over = Event()
    yield over
    over.set()


SOON_OVER = Limits(grace_seconds=1, stop_seconds=1)


@nightly
@pytest.mark.parametrize(
    "wall", [False, pytest.param(True, marks=pytest.mark.skipif(not WALL, reason="no wall here"))]
)
def test_a_run_ends_in_time_though_its_loop_is_blocked(blocked: Event, wall: bool) -> None:
    began = time.monotonic()
    cells = [("test_a", "print(1)"), ("", "print(2)")]
    limits = replace(SOON_OVER, notebook_seconds=3 if wall else 12)
    ran = run_job(replace(job(*cells, limits=limits), wall=wall), look=lambda *_: blocked.wait(60))
    assert time.monotonic() - began < 25
    assert ran.problem
    assert ran.problem.cause == "the notebook ran too long"
    assert printed(ran) == ["1\n", "2\n"]


def test_a_kernel_that_starts_in_no_time_is_not_the_notebooks_fault(
    blocked: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(self: GradingClient) -> None:
        blocked.wait(60)

    monkeypatch.setattr(GradingClient, "async_start_new_kernel_client", start)
    with pytest.raises(CourseError, match="no kernel could be started within 2 s"):
        run_job(job(("", "print(1)"), limits=replace(SOON_OVER, start_seconds=2)))


@pytest.mark.skipif(not WALL, reason="no wall here")
def test_where_a_user_has_nothing_left_no_socket_is_made_that_would_abort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_limits, "watches_used_up", lambda: "epoll watches")
    with pytest.raises(Disturbed, match="the epoll watches of this user are used up"):
        run_job(job(("", "1")))
