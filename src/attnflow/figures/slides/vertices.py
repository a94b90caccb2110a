"""What runs of rescaled attention end at: vertices, and when tokens arrive there."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnflow import observe

ARRIVED_TOL = 0.02
"""A token has arrived when it is this part of the cloud's size from where it ends; tokens that end
closer to each other than this are at one vertex."""


def filled(
    x: Float[np.ndarray, "draws n d"], longest: int, most: int
) -> tuple[Float[np.ndarray, "draws longest most"], Float[np.ndarray, " longest"]]:
    """The same starts with more tokens in more dimensions, and masses that change nothing.

    Copies of the first token share its mass and further coordinates are 0. For V = cI both are
    identities, and one compiled program runs starts of any size.

    >>> x, masses = filled(np.ones((1, 2, 1)), 4, 3)
    >>> x.shape, masses.round(3).tolist()
    ((1, 4, 3), [0.333, 1.0, 0.333, 0.333])
    """
    draws, n, d = x.shape
    copies = longest - n
    wide = np.concatenate([x, np.zeros((draws, n, most - d))], axis=-1)
    masses = np.ones(longest)
    masses[[0, *range(n, longest)]] = 1 / (copies + 1)
    return np.concatenate([wide, np.repeat(wide[:, :1], copies, axis=1)], axis=1), masses


def vertices(zs: Float[np.ndarray, "T n d"]) -> int:
    """How many places tokens end at."""
    return observe.clusters(zs[-1], ARRIVED_TOL * _size(zs)).count


def arrival(ts: Float[np.ndarray, " T"], zs: Float[np.ndarray, "T n d"]) -> float:
    """The first time after which every token stays near where it ends.

    >>> zs = np.array([4.0, 1.0, 0.01, 0.0])[:, None, None]
    >>> arrival(np.array([0.0, 1.0, 2.0, 3.0]), zs)
    2.0
    """
    away = np.linalg.norm(zs - zs[-1], axis=-1).max(axis=-1) > ARRIVED_TOL * _size(zs)
    return float(ts[len(away) - int(np.argmax(away[::-1]))]) if away.any() else float(ts[0])


def _size(zs: Float[np.ndarray, "T n d"]) -> float:
    return float(np.linalg.norm(zs[0], axis=-1).max())
