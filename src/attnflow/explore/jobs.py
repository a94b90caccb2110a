"""Work that goes on behind the page: one piece for each visitor, which can be watched and ended."""

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
"""Told which part is done; raises KeyboardInterrupt where the work is no longer wanted."""

MAX_VISITORS = 64
"""So many visitors' last results are kept; the one that was away longest goes first."""

NOT_KEPT = "this run is no longer kept here: please run it again"
INTERNAL_ERROR = "something went wrong, which the server's log tells"
WAITING_FOR_OWN, WAITING_FOR_OTHERS = "Waiting for the run before to end …", "Waiting for others …"


@dataclass(frozen=True)
class JobStatus:
    """How a piece of work stands: "waiting", "running", "done", "failed" or "cancelled".

    It is "superseded" where its visitor has other work by now.
    """

    state: str
    progress: float = 0.0
    result: Any = None
    message: str = ""


@dataclass(eq=False)
class Job:
    """A piece of work of one visitor."""

    seconds: float
    asked: float = field(default_factory=time.monotonic)
    number: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    ended: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    progress: float = 0.0
    reason: str = "cancelled"
    future: Future[JobStatus] | None = None

    def on_progress(self, progress: float) -> None:
        """Keep the part that is done; end the work if nobody wants it or it takes too long."""
        self.progress = progress
        late = self.started is not None and time.monotonic() - self.started > self.seconds
        if late and not self.ended.is_set():
            self.reason = (
                f"it took longer than {self.seconds:g} s, the most that a run may take here"
            )
            self.ended.set()
        if self.ended.is_set():
            raise KeyboardInterrupt

    def run(self, work: Callable[[OnProgress], Any]) -> JobStatus:
        """Do the work, unless it was ended while it waited, and say what came of it.

        Errors end here: one that were kept would keep all that the work had held.
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
        """How it stands now."""
        if self.future is not None and self.future.done() and not self.future.cancelled():
            return self.future.result()
        if self.ended.is_set():
            return JobStatus("cancelled", self.progress, message=self.reason)
        return JobStatus("waiting" if self.started is None else "running", self.progress)

    def end(self) -> None:
        """Let it end soon, or not begin."""
        self.ended.set()
        if self.future is not None:
            self.future.cancel()


class Jobs:
    """The work of all visitors, on a few threads. A visitor's new work ends the old.

    >>> jobs = Jobs()
    >>> number = jobs.start("me", lambda on_progress: 6 * 7, seconds=10.0)
    >>> while jobs.busy():
    ...     time.sleep(0.01)
    >>> jobs.status("me", number).result, jobs.status("you", number).state
    (42, 'cancelled')

    Requests of one page may overtake each other, so `start` and `cancel` are told when they were
    `asked` for: what was asked for later stands.
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
        """Begin work for a visitor, and return its number."""
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
        """How a visitor's work stands; that of others, and earlier work, is not to be seen."""
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
        """End a visitor's work."""
        with self._lock:
            job = self._by_visitor.get(visitor)
            if asked is not None and self._asked_later(visitor, asked):
                return
            if job is not None and job.status().state in ("waiting", "running"):
                job.end()

    def busy(self) -> int:
        """How many pieces of work wait or run, with those that were ended and do not know it yet.

        A thread learns of an end at its next step.
        """
        return len(self._unfinished)

    def close(self) -> None:
        """End everything, and wait until it is."""
        with self._lock:
            for job in self._by_visitor.values():
                if job.status().state in ("waiting", "running"):
                    job.end()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job, work: Callable[[OnProgress], Any]) -> JobStatus:
        with self._memory.admitted():
            return job.run(work)

    def _asked_later(self, visitor: str, asked: float) -> bool:
        """Whether a visitor's work was asked for after some moment."""
        job = self._by_visitor.get(visitor)
        return job is not None and job.asked > asked

    def _forget(self, visitor: str) -> None:
        job = self._by_visitor.pop(visitor, None)
        if job is not None:
            job.end()

    def _free_memory(self) -> None:
        """Drop compiled code; if that is not enough, results whose visitors were away longest."""
        memory.drop_compiled()
        with self._lock:
            for visitor, job in list(self._by_visitor.items()):
                if memory.resident() <= memory.MAX_BYTES:
                    break
                if job.status().state == "done":
                    self._forget(visitor)
