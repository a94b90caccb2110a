"""Where blocks are computed: by threads of this process, or by the workers of a Dask cluster.

Both are executors, and a few blocks are in flight at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnflow.checks import available_cores
from attnflow.errors import InputError
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.reduce import reduced
from attnflow.sweep.tile import Computer

Result = dict[str, np.ndarray] | BaseException
RETRIES = 2
"""So often a task that raised an error is tried again on a cluster, where a machine may be bad."""


class Engine(NamedTuple):
    """An executor, and how many blocks it should have at a time."""

    executor: Executor
    width: int


@lru_cache(maxsize=4)
def computer(spec: str) -> Computer:
    """The computer of a spec in this process, which keeps what it compiled."""
    return Computer(SweepSpec.model_validate_json(spec))


def compute(spec: str, number: int) -> dict[str, np.ndarray]:
    """A block of a sweep: what every worker runs."""
    here = computer(spec)
    return reduced(here.spec, here.values(here.grid[number]))


def results(
    engine: Engine, spec: str, numbers: Iterable[int]
) -> Generator[tuple[int, Result], None, None]:
    """Blocks as they come, with the error for one that failed.

    Ctrl-C ends it after the blocks in flight, which are not lost; a second one does not wait.
    """
    waiting = iter(numbers)
    running: dict[Future, int] = {}
    stopped: KeyboardInterrupt | None = None
    while True:
        try:
            for number in _first(waiting, engine.width - len(running)):
                running[engine.executor.submit(compute, spec, number)] = number
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt as interrupt:
            if stopped is not None:
                raise
            stopped, waiting = interrupt, iter(())
            continue
        for future in done:
            number = running.pop(future)
            error = future.exception()
            yield number, future.result() if error is None else error
    if stopped is not None:
        raise stopped


def _first(numbers: Iterator[int], count: int) -> Iterator[int]:
    for _, number in zip(range(count), numbers, strict=False):
        yield number


@contextlib.contextmanager
def engine(workers: int | None, scheduler: str | None) -> Iterator[Engine]:
    """Threads here, `workers` processes here, or the cluster at an address."""
    if workers is None and scheduler is None:
        cores = available_cores()
        pool = ThreadPoolExecutor(cores)
        try:
            yield Engine(pool, cores)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return
    with _client(workers, scheduler) as client:
        pool = client.get_executor(pure=False, retries=RETRIES)
        yield Engine(pool, 2 * max(1, sum(client.nthreads().values())))


@contextlib.contextmanager
def _client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            'workers need Dask, which is not installed: pip install "attnflow[sweep]".'
        ) from None
    if scheduler is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
            Client(local) as client,
        ):
            yield client
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"scheduler: nothing answers at {scheduler}: {error}") from None
    with client:
        yield client
