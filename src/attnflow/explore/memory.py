"""The memory of the server: each new shape compiles code, and nothing else would let go of it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jax

MAX_BYTES = 2 * 2**30
"""Bytes of the process from which on compiled code is dropped: that of about 25 shapes of a run."""

EXTRA_BYTES = 2**29
"""Bytes that must come on top before it is done again, where dropping left more than MAX_BYTES."""


def resident() -> int:
    """Bytes of memory that the process holds; 0 where the system does not tell (no /proc).

    >>> 0 <= resident() < 2**50
    True
    """
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * mmap.PAGESIZE if pages.exists() else 0


def drop_compiled() -> None:
    """Forget all compiled code; what is needed again comes back from the cache on disk."""
    jax.clear_caches()
    # The C library keeps what is freed until it is asked for it.
    getattr(ctypes.CDLL(None), "malloc_trim", id)(0)


class MemoryGuard:
    """Admits work. Once memory is full, it is freed before more work is admitted.

    `free_memory` is called while no work goes on.

    >>> guard = MemoryGuard(drop_compiled)
    >>> with guard.admitted():
    ...     guard.running
    1
    """

    def __init__(self, free_memory: Callable[[], None]):
        self.running = 0
        self._free_memory = free_memory
        self._bound = MAX_BYTES
        self._change = threading.Condition()

    @contextlib.contextmanager
    def admitted(self) -> Iterator[None]:
        """Count as running work; memory is looked at first."""
        with self._change:
            while self.running and resident() > self._bound:
                self._change.wait()
            if resident() > self._bound:
                self._free_memory()
                self._bound = max(MAX_BYTES, resident() + EXTRA_BYTES)
            self.running += 1
        try:
            yield
        finally:
            with self._change:
                self.running -= 1
                self._change.notify_all()
