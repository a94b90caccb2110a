"""Who computes blocks: threads of this process, or the workers of a Dask cluster.

Both are executors with a few blocks in flight at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, NamedTuple

from attnflow._version import __version__
from attnflow.checks import available_cores
from attnflow.errors import InputError
from attnflow.extras import import_optional
from attnflow.signals import defer_interrupts, shield_children
from attnflow.spec.sweep import SweepSpec
from attnflow.sweep.inspection import Computed
from attnflow.sweep.reduce import reduced
from attnflow.sweep.tile import Computer

Result = Computed | BaseException
RETRIES = 2
"""How often a task is retried if it raises an error or its result cannot be right."""

INTERRUPT_POLL_SECONDS = 0.5
"""Seconds between checks for Ctrl-C."""

FIRST_BLOCK_FACTOR = 10
"""The first block may take this many times the patience: workers have to start and compile."""

RESTART_TIMEOUT = 30.0
"""Seconds that a worker has to stop before it is killed and restarted."""


class Engine(NamedTuple):
    """An executor for blocks.

    Attributes:
        executor: the executor.
        width: number of blocks in flight.
        restart: restarts the executor if it hangs; None if it cannot be restarted.
    """

    executor: Executor
    width: int
    restart: Callable[[], object] | None = None


@lru_cache(maxsize=4)
def computer(spec: str) -> Computer:
    """This process's computer for a spec. It caches what it compiled."""
    return Computer(SweepSpec.model_validate_json(spec))


def compute(spec: str, number: int) -> Computed:
    """Compute a block of a sweep. This is what every worker runs."""
    here = computer(spec)
    values = reduced(here.spec, here.values(here.grid[number]))
    return Computed(number, __version__, values)


def results(
    engine: Engine,
    spec: str,
    numbers: Iterable[int],
    *,
    fault: Callable[[int, Any], str | None] = lambda number, result: None,
    patience: float | None = None,
    stopping: Callable[[int], object] = lambda in_flight: None,
) -> Generator[tuple[int, Result], None, None]:
    """The results of blocks in the order in which they finish; an error for each that failed.

    Ctrl-C starts no new blocks but finishes those in flight. A second Ctrl-C does not wait.

    Args:
        engine: the executor.
        spec: the spec of the sweep, as JSON.
        numbers: the numbers of the blocks.
        fault: tells what is wrong with a result, or None. A faulty block is computed again.
        patience: seconds to wait for the next block before the executor is restarted. The first
            block may take `FIRST_BLOCK_FACTOR` times as long, and each restart doubles the
            patience.
        stopping: called after Ctrl-C with the number of blocks in flight.
    """
    waiting = iter(numbers)
    running: dict[Future, int] = {}
    tries: Counter[int] = Counter()
    announced, last, limit = (
        False,
        time.monotonic(),
        None if patience is None else FIRST_BLOCK_FACTOR * patience,
    )
    with defer_interrupts() as stopped:
        while True:
            for number in _first(waiting, 0 if stopped() else engine.width - len(running)):
                running[engine.executor.submit(compute, spec, number)] = number
            if stopped() and not announced:
                announced = True
                stopping(len(running))
            if not running:
                break
            done, _ = wait(running, timeout=INTERRUPT_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                number, last, limit = running.pop(future), time.monotonic(), patience
                result = _outcome(future)
                why = None if isinstance(result, BaseException) else fault(number, result)
                tries[number] += 1
                if why is None:
                    yield number, result
                elif tries[number] > RETRIES:
                    yield number, InputError(f"the result cannot be right: {why}.")
                else:
                    waiting = itertools.chain([number], waiting)
            if limit is not None and running and time.monotonic() - last > limit:
                if not _restarted(engine):
                    late = InputError(f"no block finished within {limit:g} s.")
                    yield from ((number, late) for number in running.values())
                    break
                last, limit = time.monotonic(), 2 * limit


def _outcome(future: Future) -> Any:
    """The result of a task, or its error. Raises if the task was dropped."""
    if future.cancelled():
        raise InputError(
            "the cluster dropped the blocks in flight: its scheduler may have stopped. What was "
            "written before is safe, and the same command resumes from there."
        )
    error = future.exception()
    return future.result() if error is None else error


def _restarted(engine: Engine) -> bool:
    """Try to restart the executor, which then repeats its blocks; returns whether it worked."""
    if engine.restart is None:
        return False
    try:
        engine.restart()
    except TimeoutError:  # the workers are still starting
        return True
    except (OSError, ValueError, RuntimeError):
        return False
    return True


def _first(numbers: Iterator[int], count: int) -> Iterator[int]:
    for _, number in zip(range(count), numbers, strict=False):
        yield number


def distributed() -> Any:
    """Dask's package for clusters: an optional dependency, imported only here."""
    return import_optional("distributed", "sweep", "workers need Dask")


@contextlib.contextmanager
def engine(workers: int | None, scheduler: str | None) -> Iterator[Engine]:
    """Threads of this process, `workers` local processes, or the cluster at `scheduler`."""
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
        width = 2 * max(1, sum(client.nthreads().values()))
        yield Engine(pool, width, lambda: _restart(client))


def _restart(client: Any) -> None:
    """Restart the workers that have blocks of this client; the scheduler reassigns the blocks.

    A block whose workers die several times is taken to be the cause, and fails.
    """
    ours = set(client.futures)
    stuck = [worker for worker, keys in client.processing().items() if ours & set(keys)]
    if not stuck:
        raise RuntimeError("there are no workers")
    client.restart_workers(stuck, timeout=RESTART_TIMEOUT)


@contextlib.contextmanager
def _client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    dask = distributed()
    if scheduler is None:
        options = {"threads_per_worker": 1, "dashboard_address": None}
        with contextlib.ExitStack() as stack:
            with shield_children():
                local = stack.enter_context(dask.LocalCluster(n_workers=workers, **options))
            yield stack.enter_context(dask.Client(local))
        return
    try:
        client = dask.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        where = ("scheduler", f"nothing answers at {scheduler}")
        raise InputError(error, where=where) from None
    with client:
        yield client
