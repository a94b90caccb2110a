"""Progress of a run: a bar, or a function that is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Progress = bool | Callable[[float], Any]
"""Whether a bar is shown; or a function that is told the part of the time that is done."""


class ProgressCallback:
    """A bar for a function, in percent as the bar that is drawn.

    >>> bar = ProgressCallback(print)
    >>> bar.update(25.0)
    0.25
    """

    def __init__(self, on_progress: Callable[[float], Any]):
        self.n, self.on_progress = 0.0, on_progress

    def update(self, more: float) -> None:
        """So much more is done."""
        self.n += more
        self.on_progress(self.n / 100)

    def refresh(self) -> None:
        """Nothing is drawn."""

    close = refresh


def bar_for(progress: Progress) -> Any:
    """A bar of 100 percent: shown, silent, or one that tells a function."""
    from tqdm.auto import tqdm

    if callable(progress):
        return ProgressCallback(progress)
    layout = "{percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
    bar = tqdm(total=100, bar_format=layout, disable=not progress, leave=False)
    if progress:  # tqdm goes by the clock on the wall, and stands still when that is set back
        bar._time = time.monotonic
        bar.reset()
    return bar
