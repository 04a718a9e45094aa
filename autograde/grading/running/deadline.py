"""Work that ends in time even if it blocks the loop that should have ended it."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any

LOOK_SECONDS = 1.0


def finish_in_time(
    work: Callable[[], Coroutine[Any, Any, None]],
    until: Callable[[], float],
    stop: Callable[[], None],
    stop_seconds: float,
) -> bool:
    """Run work in a thread of its own; return False if it was left behind there, unfinished.

    Args:
        until: the time by which it has to be done, on the monotonic clock; it may change.
        stop: makes the work end soon. Called from this thread once that time has come.
        stop_seconds: how long it may take after that before it is left behind.
    """
    done: Future[None] = Future()
    # nobody waits for a daemon, not even the end of the program
    threading.Thread(target=_work, args=(work, done), daemon=True).start()
    try:
        while not done.done() and (left := until() - time.monotonic()) > 0:
            wait([done], min(left, LOOK_SECONDS))
    finally:  # after Ctrl-C, too
        if not done.done():
            stop()
    wait([done], stop_seconds)
    if done.done():
        done.result()
    return done.done()


def _work(work: Callable[[], Coroutine[Any, Any, None]], done: "Future[None]") -> None:
    try:
        # on Windows the default is a loop on which zmq works only with a thread more, and warns
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(work())
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(None)
