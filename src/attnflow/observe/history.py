"""How many clusters there are along a trajectory, and when they merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attnflow.checks import require_finite
from attnflow.errors import InputError
from attnflow.observe.clusters import clusters
from attnflow.simulation import Merges, Trajectory


class Merge(NamedTuple):
    """A change of the number of clusters.

    Attributes:
        time: when it happened.
        before: the number of clusters before.
        after: the number of clusters after.
    """

    time: float
    before: int
    after: int


@dataclass(frozen=True)
class ClusterHistory:
    """The cluster count at each save time, and the merges.

    Attributes:
        times: the save times, shape (T,).
        counts: the number of clusters at each of them, shape (T,).
        merges: the merges, dated at the first save time that saw them: they happened after the
            save time before it.
        coarsened: the merges of single tokens in a run with `Coarsening`, with the number of
            tokens left, dated when the tokens first were within its tolerance; None for other
            runs.
    """

    times: Float[np.ndarray, " T"]
    counts: Int[np.ndarray, " T"]
    merges: tuple[Merge, ...]
    coarsened: tuple[Merge, ...] | None = None


def cluster_history(trajectory: Any, tol: float | int = 1e-3) -> ClusterHistory:
    """Count the clusters at each save time of a trajectory, or of a pair `(ts, xs)` of arrays.

    Clusters are those of `clusters(x, tol)`. The trajectory is a single run that kept its states.
    Runs on the host, as `clusters` does.

    >>> xs = np.array([[[0.0], [1.0], [3.0]], [[0.0], [0.5], [3.0]], [[1.0], [1.0], [3.0]]])
    >>> history = cluster_history((np.array([0.0, 1.0, 2.0]), xs))
    >>> history.counts.tolist(), history.merges
    ([3, 3, 2], (Merge(time=2.0, before=3, after=2),))
    """
    ts, xs, tree = _states(trajectory)
    counts = [clusters(x, tol).count for x in xs]
    changes = staircase(ts.tolist(), counts)
    merges = tuple(
        Merge(time, before, after)
        for (_, before), (time, after) in pairwise(changes)
        if after < before
    )
    exact = None if tree is None else _coarsened(tree, xs.shape[1])
    return ClusterHistory(ts, np.array(counts), merges, exact)


def staircase(times: Sequence[float], counts: Sequence[int]) -> list[tuple[float, int]]:
    """The first time and count, then each time at which the count had changed, with the new one.

    Runs on the host.

    >>> staircase([0.0, 1.0, 2.0, 3.0], [5, 5, 2, 2])
    [(0.0, 5), (2.0, 2)]
    """
    changed = [i for i in range(len(counts)) if i == 0 or counts[i] != counts[i - 1]]
    return [(times[i], counts[i]) for i in changed]


def _states(trajectory: Any) -> tuple[np.ndarray, np.ndarray, Merges | None]:
    """Times, states and merge tree of a single run."""
    tree = None
    if isinstance(trajectory, Trajectory):
        tree = trajectory.merges
        if trajectory.final.ndim != 2:
            raise InputError(
                f"trajectory must be a single run, but it is a batch of shape "
                f"{trajectory.final.shape[:-2]}: pass (ts, xs[i]) for one of its members."
            )
        trajectory = (trajectory.ts, trajectory.positions)
    if not isinstance(trajectory, tuple) or len(trajectory) != 2:
        raise InputError("trajectory must be a Trajectory or a pair of arrays (ts, xs).")
    ts, xs = (np.asarray(part, dtype=float) for part in trajectory)
    if ts.ndim != 1 or xs.ndim != 3 or len(ts) != len(xs):
        raise InputError(
            f"trajectory must have states xs of shape (T, n, d) at times ts of shape (T,), but the "
            f"shapes are {xs.shape} and {ts.shape}."
        )
    require_finite(xs, "xs")
    return ts, xs, tree


def _coarsened(tree: Merges, n: int) -> tuple[Merge, ...]:
    """The merges of a tree; those at the same time are one."""
    times = np.asarray(tree.time, dtype=float)
    merges, left = [], n
    for time, gone in sorted(Counter(times[np.isfinite(times)].tolist()).items()):
        merges.append(Merge(time, left, left - gone))
        left -= gone
    return tuple(merges)
