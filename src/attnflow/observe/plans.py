"""Transport between clouds of tokens by POT: the optimal plan, or projections to a line."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attnflow.extras import import_optional
from attnflow.randomness import RandomKey, as_key
from attnflow.spaces import Space, Sphere

DIRECTIONS = 64
"""So many random directions (on the sphere: great circles) tokens are projected to."""

BLOCK_ROWS = 512

Points = Float[np.ndarray, "_ d"]
Shares = Float[np.ndarray, " _"]


def exact(a: Points, b: Points, m: Shares, w: Shares, p: int, space: Space) -> float:
    """W_p from the optimal plan, a linear programme.

    >>> from attnflow.spaces import Euclidean
    >>> half, a, b = np.full(2, 0.5), np.array([[0.0], [1.0]]), np.array([[2.0], [1.0]])
    >>> exact(a, b, half, half, 1, Euclidean())
    1.0
    """
    value, log = pot().emd2(m, w, costs(a, b, p, space), log=True, numItermax=10_000_000)
    if log["warning"] is not None:
        raise RuntimeError(f"the optimal plan was not found: {log['warning']}")
    return float(max(value, 0.0) ** (1 / p))


def sliced(
    a: Points, b: Points, m: Shares, w: Shares, p: int, space: Space, key: RandomKey
) -> tuple[float, float]:
    """`(mean W_p^p)^{1/p}` of projections to random lines, and its standard error over them.

    On the sphere projections are to great circles, along geodesics, and distances are angles
    (Bonet et al. 2023).

    >>> from attnflow.spaces import Euclidean
    >>> a, share = np.eye(3), np.full(3, 1 / 3)
    >>> sliced(a, a, share, share, 1, Euclidean(), key=0)
    (0.0, 0.0)
    """
    if isinstance(space, Sphere):
        slicer, unit = pot().sliced_wasserstein_sphere, 2 * np.pi
    else:
        slicer, unit = pot().sliced_wasserstein_distance, 1.0
    seed = int(jax.random.bits(as_key(key), dtype=np.uint32))
    _, log = slicer(a, b, m, w, n_projections=DIRECTIONS, p=p, seed=seed, log=True)
    powers = np.asarray(log["projected_emds"], dtype=float) * unit**p
    mean, error = powers.mean(), powers.std(ddof=1) / np.sqrt(len(powers))
    return float(mean ** (1 / p)), float(error / (p * mean ** (1 - 1 / p))) if mean > 0 else 0.0


def costs(a: Points, b: Points, p: int, space: Space) -> Float[np.ndarray, "n m"]:
    """dist(a_i, b_j)^p in the space.

    >>> from attnflow.spaces import Euclidean
    >>> print(costs(np.zeros((1, 2)), np.array([[3.0, 4.0]]), 2, Euclidean()))
    [[25.]]
    """
    rows = []
    for i in range(0, len(a), BLOCK_ROWS):
        here, there = np.broadcast_arrays(a[i : i + BLOCK_ROWS, None, :], b[None, :, :])
        rows.append(np.asarray(space.distance(jnp.asarray(here), jnp.asarray(there))))
    return np.concatenate(rows) ** p


def pot() -> Any:
    """POT, which is an extra and is imported here alone."""
    return import_optional("ot", "transport", "distances on the sphere and in R^d need POT")
