"""Computations behind the page: one job for each visitor, which can be watched and cancelled."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from attnflow.errors import IncompleteRun, InputError
from attnflow.explore import memory

OnProgress = Callable[[float], None]
"""Called with the fraction that is done; raises KeyboardInterrupt if the job was cancelled."""

MAX_VISITORS = 64
"""Number of visitors whose last result is kept; the one absent longest is dropped first."""

NOT_KEPT = "this run is no longer kept here: please run it again"
INTERNAL_ERROR = "something went wrong, which the server's log tells"
WAITING_FOR_OWN, WAITING_FOR_OTHERS = "Waiting for the run before to end …", "Waiting for others …"


@dataclass(frozen=True)
class JobStatus:
    """The status of a job.

    Attributes:
        state: "waiting", "running", "done", "failed", "cancelled", or "superseded" if the visitor
            has started another job.
        progress: the fraction that is done.
        result: the result of a job that is done.
        message: why it failed, was cancelled, or waits.
    """

    state: str
    progress: float = 0.0
    result: Any = None
    message: str = ""


@dataclass(eq=False)
class Job:
    """A job of one visitor.

    Attributes:
        seconds: the longest time that it may run.
        asked: when it was requested, by `time.monotonic`.
        number: its name, which cannot be guessed.
        ended: set when it is to stop.
        started: when it started to run; None while it waits.
        progress: the fraction that is done.
        reason: why it was cancelled.
        future: its result.
    """

    seconds: float
    asked: float = field(default_factory=time.monotonic)
    number: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    ended: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    progress: float = 0.0
    reason: str = "cancelled"
    future: Future[JobStatus] | None = None

    def on_progress(self, progress: float) -> None:
        """Note the fraction that is done; stop if the job was cancelled or takes too long."""
        self.progress = progress
        late = self.started is not None and time.monotonic() - self.started > self.seconds
        if late and not self.ended.is_set():
            self.reason = f"it took longer than {self.seconds:g} s, the limit for a run here"
            self.ended.set()
        if self.ended.is_set():
            raise KeyboardInterrupt

    def run(self, work: Callable[[OnProgress], Any]) -> JobStatus:
        """Do the work, unless it was cancelled while it waited, and return its status.

        Exceptions are not kept: they would keep all memory of the job alive.
        """
        self.started = time.monotonic()
        try:
            self.on_progress(0.0)
            result = work(self.on_progress)
            if self.ended.is_set():
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            return JobStatus("cancelled", self.progress, message=self.reason)
        except (InputError, IncompleteRun) as error:
            return JobStatus("failed", self.progress, message=str(error))
        except Exception:
            logging.getLogger(__name__).exception("work behind the page failed")
            return JobStatus("failed", self.progress, message=INTERNAL_ERROR)
        return JobStatus("done", 1.0, result)

    def status(self) -> JobStatus:
        """Its status now."""
        if self.future is not None and self.future.done() and not self.future.cancelled():
            return self.future.result()
        if self.ended.is_set():
            return JobStatus("cancelled", self.progress, message=self.reason)
        return JobStatus("waiting" if self.started is None else "running", self.progress)

    def end(self) -> None:
        """Make it stop soon, or not start."""
        self.ended.set()
        if self.future is not None:
            self.future.cancel()


class Jobs:
    """The jobs of all visitors, on a few threads. A visitor's new job cancels the old one.

    >>> jobs = Jobs()
    >>> number = jobs.start("me", lambda on_progress: 6 * 7, seconds=10.0)
    >>> while jobs.busy():
    ...     time.sleep(0.01)
    >>> jobs.status("me", number).result, jobs.status("you", number).state
    (42, 'cancelled')

    Requests of one page may overtake each other, so `start` and `cancel` take the time at which
    they were `asked` for. The later request wins.
    """

    def __init__(self, threads: int = 2):
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="attnflow-explore")
        self._by_visitor: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._unfinished: dict[Future[JobStatus], str] = {}
        self._memory = memory.MemoryGuard(self._free_memory)

    def start(
        self,
        visitor: str,
        work: Callable[[OnProgress], Any],
        seconds: float,
        asked: float | None = None,
    ) -> str:
        """Start a job for a visitor, and return its number.

        Args:
            visitor: the name of the visitor.
            work: the function to run; it is called with `on_progress`.
            seconds: the longest time that it may run.
            asked: when it was requested, by `time.monotonic`; now by default.
        """
        job = Job(seconds, time.monotonic() if asked is None else asked)
        with self._lock:
            if self._asked_later(visitor, job.asked):
                return job.number
            self._forget(visitor)
            self._by_visitor[visitor] = job
            while len(self._by_visitor) > MAX_VISITORS:
                self._forget(next(iter(self._by_visitor)))
            job.future = self._pool.submit(self._run, job, work)
            self._unfinished[job.future] = visitor
        job.future.add_done_callback(lambda future: self._unfinished.pop(future, None))
        return job.number

    def status(self, visitor: str, number: str) -> JobStatus:
        """The status of a visitor's job. Jobs of others and earlier jobs cannot be seen."""
        with self._lock:
            job = self._by_visitor.get(visitor)
            if job is None:
                return JobStatus("cancelled", message=NOT_KEPT)
            if not secrets.compare_digest(job.number.encode(), str(number).encode()):
                return JobStatus("superseded", message="another run took its place")
            self._by_visitor.move_to_end(visitor)
            status = job.status()
            if status.state == "waiting":
                alone = set(self._unfinished.copy().values()) <= {visitor}
                return replace(status, message=WAITING_FOR_OWN if alone else WAITING_FOR_OTHERS)
            return status

    def cancel(self, visitor: str, asked: float | None = None) -> None:
        """Cancel a visitor's job."""
        with self._lock:
            job = self._by_visitor.get(visitor)
            if asked is not None and self._asked_later(visitor, asked):
                return
            if job is not None and job.status().state in ("waiting", "running"):
                job.end()

    def busy(self) -> int:
        """Number of jobs that wait or run, including cancelled ones that have not stopped yet.

        A thread stops at its next step.
        """
        return len(self._unfinished)

    def close(self) -> None:
        """Cancel all jobs, and wait until they have stopped."""
        with self._lock:
            for job in self._by_visitor.values():
                if job.status().state in ("waiting", "running"):
                    job.end()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job, work: Callable[[OnProgress], Any]) -> JobStatus:
        with self._memory.admitted():
            return job.run(work)

    def _asked_later(self, visitor: str, asked: float) -> bool:
        """Whether a visitor's job was requested after some time."""
        job = self._by_visitor.get(visitor)
        return job is not None and job.asked > asked

    def _forget(self, visitor: str) -> None:
        job = self._by_visitor.pop(visitor, None)
        if job is not None:
            job.end()

    def _free_memory(self) -> None:
        """Drop compiled code, and if needed the results of visitors absent longest."""
        memory.drop_compiled()
        with self._lock:
            for visitor, job in list(self._by_visitor.items()):
                if memory.resident() <= memory.MAX_BYTES:
                    break
                if job.status().state == "done":
                    self._forget(visitor)
