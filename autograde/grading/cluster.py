"""A Dask cluster as an executor: jobs and results travel as bytes, no file system is shared."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, cast

from autograde import __version__
from autograde.course import CourseError
from autograde.grading.job import require_same
from autograde.grading.workers import ATTEMPTS

CONNECT_SECONDS = 20


@contextmanager
def cluster(address: str, *, wall: bool) -> Iterator[tuple[Executor, int]]:
    """The executor of a Dask cluster, and how many jobs it runs at once.

    Raises:
        CourseError: `distributed` is not installed, nobody answers there, no worker is connected,
            or one of them would run jobs by other rules.
    """
    try:
        import distributed
    except ImportError as error:
        raise CourseError(
            "--scheduler needs Dask: pip install 'attention-notebooks[cluster]'"
        ) from error
    try:
        client = cast(Any, distributed).Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise CourseError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        threads = client.nthreads()
        if not threads:
            raise CourseError(f"the scheduler at {address} has no workers")
        client.run(require_same, __version__, wall)
        executor = client.get_executor(pure=False, retries=ATTEMPTS - 1)
        yield executor, sum(threads.values())
