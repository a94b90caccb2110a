"""The memory of the server: each new shape compiles code, and nothing else would let go of it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jax

FULL = 2 * 2**30
"""Bytes of the process from which on compiled code is dropped: that of about 25 shapes of a run."""

MORE = 2**29
"""Bytes that must come on top before it is done again, where dropping left more than FULL."""


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


class Room:
    """Where work is done. Once memory is full, it is emptied before more work comes in.

    `relieve` frees memory; it is called while no work goes on.

    >>> room = Room(drop_compiled)
    >>> with room.entered():
    ...     room.inside
    1
    """

    def __init__(self, relieve: Callable[[], None]):
        self.inside = 0
        self._relieve = relieve
        self._bound = FULL
        self._change = threading.Condition()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be inside; memory is looked at first."""
        with self._change:
            while self.inside and resident() > self._bound:
                self._change.wait()
            if resident() > self._bound:
                self._relieve()
                self._bound = max(FULL, resident() + MORE)
            self.inside += 1
        try:
            yield
        finally:
            with self._change:
                self.inside -= 1
                self._change.notify_all()
