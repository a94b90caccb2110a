"""How evenly tokens are spread: their inner products, and the strength of a spherical design."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Int, Real

from attnflow.attention.harmonics import gegenbauer
from attnflow.checks import (
    as_floats,
    require_count,
    require_finite,
    require_memory,
    require_positive,
    require_state,
)
from attnflow.errors import InputError
from attnflow.observe.tangent import require_unit

BLOCK = 256


class InnerProducts(NamedTuple):
    """The distinct values of <x_i, x_j>, increasing, and how many pairs {i, j} have each."""

    values: Float[np.ndarray, " k"]
    counts: Int[np.ndarray, " k"]


def inner_products(x: Real[ArrayLike, "n d"], tol: float | int = 1e-6) -> InnerProducts:
    """The distinct inner products of different tokens, with their multiplicities.

    Values that are linked by steps of at most `tol` are one, their mean. A sharp configuration
    (T9.2) has few values for its strength as a design. Runs on the host: its result has no fixed
    shape.

    >>> found = inner_products(np.vstack([np.eye(3), -np.eye(3)]))
    >>> found.values.tolist(), found.counts.tolist()
    ([-1.0, 0.0], [3, 12])
    """
    require_state(x)
    require_finite(x, "x")
    require_positive(tol, "tol")
    x = np.asarray(x, dtype=float)
    require_memory(24 * len(x) ** 2, f"the inner products of {len(x)} tokens", "take fewer tokens")
    if len(x) < 2:
        return InnerProducts(np.zeros(0), np.zeros(0, int))
    s = np.sort((x @ x.T)[np.triu_indices(len(x), 1)])
    starts = np.flatnonzero(np.concatenate([[True], np.diff(s) > tol]))
    counts = np.diff(np.append(starts, len(s)))
    return InnerProducts(np.add.reduceat(s, starts) / counts, counts)


def design_strength(x: Real[ArrayLike, "n d"], tol: float | int = 1e-8, limit: int = 20) -> int:
    """The largest t such that the unit tokens are a spherical t-design.

    Every polynomial of degree at most t then has the same mean over the tokens as over the
    sphere: `n^{−2} Σ_ij C_k(<x_i,x_j>) / C_k(1)` is 0, here up to `tol`, for k = 1, …, t, with the
    Gegenbauer polynomials C_k of S^{d−1}. Runs on the host, in memory O(n · block).

    Args:
        x: unit tokens, shape (n, d).
        tol: how close to 0 the mean of a polynomial must be.
        limit: the highest degree that is tried.

    >>> design_strength(np.vstack([np.eye(3), -np.eye(3)]))
    3
    """
    require_state(x)
    require_finite(x, "x")
    require_positive(tol, "tol")
    limit = require_count(limit, "limit")
    require_unit(as_floats(x))
    x = np.asarray(x, dtype=float)
    if x.shape[1] < 2:
        raise InputError("x must have d ≥ 2: on the two points of S⁰ every balanced set is exact.")
    broken = np.flatnonzero(np.abs(_moments(x, limit)) > tol)
    return int(broken[0]) if broken.size else limit


def _moments(x: Float[np.ndarray, "n d"], limit: int) -> Float[np.ndarray, " limit"]:
    """The means over all pairs of the Gegenbauer polynomials of degree 1, …, limit."""
    sums = np.zeros(limit)
    for start in range(0, len(x), BLOCK):
        s = np.clip(x[start : start + BLOCK] @ x.T, -1, 1)
        sums += [values.sum() for values in islice(gegenbauer(s, x.shape[1]), 1, limit + 1)]
    return sums / len(x) ** 2
