"""The progress of a sweep, as its store shows it."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnflow.sweep.store import Store

RATE_BLOCKS = 50
"""The rate is measured over this many of the last blocks."""


@dataclass(frozen=True)
class Status:
    """The progress of a sweep.

    Attributes:
        store: the path of the store.
        title: the title of the sweep.
        cells: number of cells in all.
        done: number of cells that are done.
        realisations: number of realisations in each cell.
        running: whether a process is computing the sweep now.
        cells_per_second: the recent rate; None if it is not known.
        seconds_left: estimated time to the end; None if it is not known or nothing is left.
        seconds_since_last: age of the last block; None if there is none.
        failures: the blocks that failed.
    """

    store: str
    title: str
    cells: int
    done: int
    realisations: int
    running: bool
    cells_per_second: float | None
    seconds_left: float | None
    seconds_since_last: float | None
    failures: list[dict[str, Any]]

    @property
    def complete(self) -> bool:
        """Whether all cells are done."""
        return self.done == self.cells


def status(store: str | os.PathLike[str]) -> Status:
    """The progress of the sweep in a store, whether it is running, stopped or dead.

    A sweep is running if some process holds the lock of its store.
    """
    place = Store.open(Path(store))
    done = sum(block.size for block in place.done())
    written = place.written()
    rate = _rate(written[-RATE_BLOCKS:], place.grid.cells / len(place.grid))
    left = place.grid.cells - done
    return Status(
        store=str(store),
        title=place.spec.title or "",
        cells=place.grid.cells,
        done=done,
        realisations=place.spec.realisations,
        running=place.being_written,
        cells_per_second=rate,
        seconds_left=left / rate if rate and left else None,
        seconds_since_last=_since(written),
        failures=place.failures(),
    )


def _since(written: list[float]) -> float | None:
    """Seconds since the last block; None if the clock was set back meanwhile."""
    return time.time() - written[-1] if written and time.time() >= written[-1] else None


def _rate(written: list[float], cells_each: float) -> float | None:
    """Cells per second. A gap longer than all others together is a pause and does not count.

    >>> _rate([0.0, 1.0, 2.0, 1e9, 1e9 + 1], 2.0)
    2.0
    """
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(written))
    if len(gaps) > 1 and gaps[-1] > sum(gaps[:-1]) > 0:
        gaps.pop()
    return cells_each * len(gaps) / sum(gaps) if sum(gaps) > 0 else None
