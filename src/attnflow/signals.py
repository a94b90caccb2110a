"""Ctrl-C and SIGTERM, held back where work must not be cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any


@contextmanager
def defer_interrupts() -> Iterator[Callable[[], bool]]:
    """Hold back a signal to stop until the block ends; what it gives says whether one has come.

    A second one is not held. An exception would be lost where Python ignores them, in finalisers
    and callbacks; a note is not. Signals reach the main thread alone, and one that nobody handles
    (SIGTERM, outside of the command line) is left as it is.
    """
    came: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) > 1:
            before[number](number, frame)

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    before[number] = signal.signal(number, note)
        yield lambda: bool(came)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if came:
        before[came[0]](came[0], None)


@contextmanager
def shield_children() -> Iterator[None]:
    """Processes that are started in the block never get Ctrl-C, which a terminal sends to all.

    What comes meanwhile is delivered here at the end of the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # when it starts, it lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
