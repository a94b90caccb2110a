"""How many clusters first appear on the circle, counted among tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Real

from attnflow.errors import InputError

MIN_GATHERED_SHARE = 0.95
"""Clusters have appeared when they hold this part of the tokens."""

MIN_CLUSTER_SHARE = 0.03
"""A group with less than this part of the tokens is not yet a cluster."""

MAX_CIRCLE_SHARE = 0.5
"""… and lie on less than this part of the circle."""

MAX_GAP = 2.0
"""Neighbours are in one group when they are closer than this many mean distances."""


class FirstClusters(NamedTuple):
    """How many clusters there were when they first held most tokens, and at which save.

    Both are −1 where they never did. With a batch they are arrays.
    """

    count: Any
    save: Any


def first_clusters(tokens: Real[ArrayLike, "*batch T n 2"]) -> FirstClusters:
    """The number of clusters that first appear along a run of tokens on the circle.

    Tokens are in one group when each is closer to the next than 4π/n, twice their mean distance; a
    group of at least 3 % of them is a cluster. Clusters appear at the first save at which they hold
    95 % of the tokens on less than half of the circle. `theory.fastest_mode` is what linear theory
    expects. Tokens are a run's `positions`, a thousand or more, as fewer form such groups by
    chance. Runs on the host.

    >>> around = np.concatenate([c + np.linspace(0, 0.1, 200) for c in (0.0, 2.0, 4.0)])
    >>> start = np.linspace(0, 2 * np.pi, 600, endpoint=False)
    >>> theta = np.stack([start, around])
    >>> first_clusters(np.stack([np.cos(theta), np.sin(theta)], axis=-1))
    FirstClusters(count=3, save=1)
    """
    tokens = np.asarray(tokens)
    if tokens.ndim < 3 or tokens.shape[-1] != 2:
        raise InputError(
            f"tokens must have shape (T, n, 2), tokens on the circle at T times, but their shape "
            f"is {tokens.shape}."
        )
    batch = tokens.shape[:-3]
    flat = tokens.reshape(-1, *tokens.shape[-3:])
    found = np.array([_first(np.arctan2(run[..., 1], run[..., 0])) for run in flat])
    if not batch:
        return FirstClusters(int(found[0, 0]), int(found[0, 1]))
    return FirstClusters(found[:, 0].reshape(batch), found[:, 1].reshape(batch))


def _first(runs: Float[np.ndarray, "T n"]) -> tuple[int, int]:
    for save, theta in enumerate(runs):
        n = len(theta)
        sizes, lengths = _groups(theta)
        large = sizes >= max(2, MIN_CLUSTER_SHARE * n)
        most = sizes[large].sum() >= MIN_GATHERED_SHARE * n
        if most and lengths[large].sum() < MAX_CIRCLE_SHARE * 2 * np.pi:
            return int(large.sum()), save
    return -1, -1


def _groups(theta: Float[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the groups of neighbours, and how long they are."""
    n, theta = len(theta), np.sort(theta)
    gaps = np.diff(theta, append=theta[0] + 2 * np.pi)
    ends = np.flatnonzero(gaps > MAX_GAP * 2 * np.pi / n)
    if not len(ends):
        return np.array([n]), np.array([2 * np.pi])
    sizes = np.diff(ends, prepend=ends[-1] - n)
    starts = theta[(ends - sizes + 1) % n]
    return sizes, np.mod(theta[ends] - starts, 2 * np.pi)
