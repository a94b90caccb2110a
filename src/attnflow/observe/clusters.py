"""Which tokens have come together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from attnflow.checks import require_finite, require_positive


class Clusters(NamedTuple):
    """The clusters of a configuration, the heaviest first (among equals: the earliest token's)."""

    count: int
    labels: np.ndarray
    centers: np.ndarray
    masses: np.ndarray


def clusters(
    x: Float[ArrayLike, "n d"],
    tol: float = 1e-3,
    masses: Float[ArrayLike, " n"] | None = None,
) -> Clusters:
    """Group tokens that are linked by a chain of tokens, each within `tol` of the next.

    This rule (single linkage) does not depend on the order of the tokens. Centres are the means,
    weighted by mass. Runs on the host: its result has no fixed shape.

    >>> found = clusters(np.array([[0.0], [1.0], [1.0001]]))
    >>> found.count, found.labels.tolist(), found.masses.tolist()
    (2, [1, 0, 0], [2.0, 1.0])
    """
    require_finite(x, "x")
    require_positive(tol, "tol")
    x = np.asarray(x, dtype=float)
    m = np.ones(len(x)) if masses is None else np.asarray(masses, dtype=float)
    pairs = cKDTree(x).query_pairs(tol, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), (len(x), len(x)))
    count, found = connected_components(graph, directed=False)
    weight = np.bincount(found, m, count)
    first = np.array([np.argmax(found == c) for c in range(count)])
    order = np.lexsort((first, -weight))
    rank = np.empty(count, int)
    rank[order] = np.arange(count)
    labels = rank[found]
    sums = np.zeros((count, x.shape[1]))
    np.add.at(sums, labels, m[:, None] * x)
    return Clusters(count, labels, sums / weight[order, None], weight[order])
