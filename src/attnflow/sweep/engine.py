"""Where blocks are computed: by threads of this process, or by the workers of a Dask cluster.

Both are executors, and a few blocks are in flight at a time.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnflow.checks import available_cores
from attnflow.errors import InputError
from attnflow.extras import needed
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.reduce import reduced
from attnflow.sweep.tile import Computer

Result = dict[str, np.ndarray] | BaseException
RETRIES = 2
"""So often a task that raised an error is tried again on a cluster, where a machine may be bad."""

GLANCE = 0.5
"""Seconds after which it is looked whether Ctrl-C was pressed."""


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
    with _interruption() as stopped:
        while True:
            for number in _first(waiting, 0 if stopped() else engine.width - len(running)):
                running[engine.executor.submit(compute, spec, number)] = number
            if not running:
                break
            done, _ = wait(running, timeout=GLANCE, return_when=FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                error = future.exception()
                yield number, future.result() if error is None else error
        if stopped():
            raise KeyboardInterrupt


@contextlib.contextmanager
def _interruption() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; the second time it raises KeyboardInterrupt at once.

    The first time it is only noted: an exception would be lost where Python ignores them, in
    finalisers and callbacks. Signals reach the main thread alone.
    """
    pressed: list[int] = []

    def note(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


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
    dask = needed("distributed", "sweep", "workers need Dask")
    if scheduler is None:
        options = {"threads_per_worker": 1, "dashboard_address": None}
        with dask.LocalCluster(n_workers=workers, **options) as local, dask.Client(local) as client:
            yield client
        return
    try:
        client = dask.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"scheduler: nothing answers at {scheduler}: {error}") from None
    with client:
        yield client
