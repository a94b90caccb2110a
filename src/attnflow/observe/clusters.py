"""Clusters: tokens that are linked by chains of short distances, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.checks import as_floats, require_finite, require_positive, require_state
from attnflow.observe.shape import overlaps

MAX_LINKS = 2**22
"""Up to this many links are held at once; beyond, clusters are filled one by one."""


@dataclass(frozen=True)
class Clusters:
    """The clusters of a configuration, the heaviest first (among equals: the earliest token's).

    Attributes:
        count: how many there are.
        labels: the cluster of each token, from 0 on, shape (n,).
        centers: the mean of each cluster, shape (count, d).
        masses: the total mass of each cluster, shape (count,).
    """

    count: int
    labels: np.ndarray
    centers: np.ndarray
    masses: np.ndarray


def clusters(
    x: Real[ArrayLike, "n d"],
    tol: float | int = 1e-3,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Clusters:
    """Group tokens that are linked by a chain of tokens, each within `tol` of the next.

    This rule (single linkage) does not depend on the order of the tokens. Centres are means
    weighted by mass, and plain means in a cluster without mass. Runs on the host: its result has
    no fixed shape.

    Args:
        x: tokens, shape (n, d).
        tol: the longest link; a good value is well above the error of the run and well below the
            distance between clusters.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> found = clusters(np.array([[0.0], [1.0], [1.0001]]))
    >>> found.count, found.labels.tolist(), found.masses.tolist()
    (2, [1, 0, 0], [2.0, 1.0])
    """
    require_state(x, masses)
    require_finite(x, "x")
    require_positive(tol, "tol")
    x = np.asarray(x, dtype=float)
    m = np.ones(len(x)) if masses is None else np.asarray(masses, dtype=float)
    tree = scipy.spatial.cKDTree(x)
    few = tree.count_neighbors(tree, tol) <= MAX_LINKS
    found = _linked(tree, tol) if few else _flooded(x, tol)
    weight = np.bincount(found, m)
    count, first = len(weight), np.unique(found, return_index=True)[1]
    order = np.lexsort((first, -weight))
    rank = np.empty(count, int)
    rank[order] = np.arange(count)
    labels = rank[found]
    share = np.where(weight[found] == 0, 1.0, m)
    sums = np.zeros((count, x.shape[1]))
    np.add.at(sums, labels, share[:, None] * x)
    centers = sums / np.bincount(labels, share)[:, None]
    return Clusters(count, labels, centers, weight[order])


def _linked(tree: scipy.spatial.cKDTree, tol: float | int) -> np.ndarray:
    """The cluster of each token, from all links at once."""
    i, j = tree.query_pairs(tol, output_type="ndarray").T
    graph = scipy.sparse.coo_array((np.ones(len(i), bool), (i, j)), (tree.n, tree.n))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)[1]


def _flooded(x: Float[np.ndarray, "n d"], tol: float | int, block: int = 256) -> np.ndarray:
    """The cluster of each token in memory O(n · block): n collapsed tokens have n² links."""
    found = np.full(len(x), -1)
    left = np.arange(len(x))
    count = 0
    while left.size:
        front, left = left[:1], left[1:]
        while front.size:
            found[front] = count
            near = (scipy.spatial.distance.cdist(x[front[:block]], x[left]) <= tol).any(axis=0)
            front, left = np.concatenate([front[block:], left[near]]), left[~near]
        count += 1
    return found


def pairs_clustered(
    x: Real[ArrayLike, "n d"], delta: Float[ArrayLike, ""] = 1e-3
) -> Float[Array, ""]:
    """The fraction of pairs i ≠ j with <x_i, x_j> ≥ 1 − δ, whose mean is [P] Fig. 3.

    δ is about half the square of a distance: it is no `tol`. Works under jit and vmap.

    >>> print(pairs_clustered(jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(3))
    0.333
    """
    require_state(x)
    x = as_floats(x)
    n = len(x)
    close = overlaps(x) >= 1 - jnp.asarray(delta, x.dtype)
    pairs = jnp.sum(close & ~jnp.eye(n, dtype=bool))
    return pairs.astype(x.dtype) / max(1, n * (n - 1))


def cluster_count(x: Real[ArrayLike, "n d"], tol: Float[ArrayLike, ""] = 1e-3) -> Int[Array, ""]:
    """How many clusters `clusters(x, tol)` finds, with n² memory, under jit and vmap.

    Tokens within `tol` are linked. The smallest number of a token that can be reached is passed on
    along the links until nothing changes.

    >>> print(cluster_count(jnp.array([[0.0], [1.0], [1.0001]])))
    2
    """
    require_state(x)
    return _count(as_floats(x), tol)


@jax.jit
def _count(x: Float[Array, "n d"], tol: Float[ArrayLike, ""]) -> Int[Array, ""]:
    n = len(x)
    apart = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    linked = apart <= jnp.asarray(tol, x.dtype) ** 2
    own = jnp.arange(n)

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        label, _ = state
        near = jnp.where(linked, label[None, :], n).min(axis=1)
        new = jnp.minimum(near, near[near])
        return new, jnp.any(new != label)

    label, _ = jax.lax.while_loop(lambda s: s[1], spread, (own, jnp.asarray(True)))
    return jnp.sum(label == own)
