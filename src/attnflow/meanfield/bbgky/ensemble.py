"""BBGKY: the two-point function of USA on the circle, sampled from ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import require_count
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.simulation import Fixed, simulate
from attnflow.simulation.methods import Method
from attnflow.systems import AngularUSA
from attnflow.theory.inputs import Numbers

TILE_REPLICATES = 256
"""Replicates that run together."""

STEP_FACTOR = 0.5
"""The step of the default method in units of e^{−β}, the time in which clusters contract."""


@dataclass(frozen=True)
class TwoPoint:
    """The law ψ of θ₂ − θ₁ and the pull of a third token, as sampled, with standard errors.

    Attributes:
        beta: inverse temperature β.
        n: the number of tokens.
        replicates: the number of independent runs, over which the errors are.
        ts: the times, shape (T,).
        psi: the density, shape (T, M); cell i, of width Δ = 2π/M, is around iΔ.
        psi_error: its standard error.
        pull: `E[e^{β cos θ₃} sin θ₃ | θ₁ = 0, θ₂ = (i − ½)Δ]`, shape (T, M), from the pairs within
            Δ/2 of that edge; β times it is the paper's g(t, x). 0 where there were no such pairs.
        pull_error: its standard error.
    """

    beta: float
    n: int
    replicates: int
    ts: Float[np.ndarray, " T"]
    psi: Float[np.ndarray, "T M"]
    psi_error: Float[np.ndarray, "T M"]
    pull: Float[np.ndarray, "T M"]
    pull_error: Float[np.ndarray, "T M"]

    @property
    def x(self) -> Float[np.ndarray, " M"]:
        """The centres iΔ of the cells."""
        M = self.psi.shape[1]
        return 2 * np.pi / M * np.arange(M)


@renamed_arguments(seed="key")
def two_point(
    beta: float | int,
    n: int,
    ts: Real[ArrayLike, " T"] | Numbers,
    *,
    replicates: int = 4096,
    cells: int = 128,
    key: RandomKey = 0,
    method: Method | None = None,
) -> TwoPoint:
    """Sample the two-point function of `AngularUSA(beta)` from independent uniform starts.

    All n(n−1)/2 pairs of every replicate count, and the sum over third tokens is that of the
    velocity, so a replicate costs O(n²). ψ is even and the pull odd; pairs are folded accordingly.
    Runs on the host, in tiles of 256 replicates.

    Args:
        beta: inverse temperature β.
        n: the number of tokens.
        ts: increasing times, shape (T,).
        replicates: the number of independent runs.
        cells: the number M of cells, even.
        key: an integer or a JAX key; by default 0, the same starts in every call.
        method: how angles are integrated; by default RK4 with steps of ½ e^{−β}.

    >>> sampled = two_point(1.0, 4, [0.0, 3.0], replicates=32, cells=8)
    >>> sampled.psi.shape, bool(sampled.psi[1, 0] > sampled.psi[0, 0])
    ((2, 8), True)
    """
    n, replicates = require_count(n, "n", least=3), require_count(replicates, "replicates", least=2)
    if require_count(cells, "cells", least=4) % 2:
        raise InputError(f"cells must be even, but it is {cells}.")
    # mypy takes the fields of an equinox module for its arguments.
    system = AngularUSA(beta)
    times = np.asarray(ts, dtype=float)
    method = Fixed(STEP_FACTOR * np.exp(-float(beta))) if method is None else method
    key = as_key(key)
    sums: Any = None
    for start in range(0, replicates, TILE_REPLICATES):
        tile = min(TILE_REPLICATES, replicates)
        x0 = _uniform(jax.random.fold_in(key, start // TILE_REPLICATES), tile, n)
        theta = simulate(system, x0, times, method=method).xs[..., 0]
        used = jnp.arange(tile) < replicates - start
        new = _moments(theta, used, system.beta, cells // 2)
        sums = new if sums is None else jax.tree.map(jnp.add, sums, new)
    moments = [np.asarray(m) / replicates for m in sums]
    return TwoPoint(float(beta), n, replicates, times, *_estimates(moments, replicates, cells))


def _uniform(key: Any, tile: int, n: int) -> Float[Array, "tile n 1"]:
    return jax.random.uniform(key, (tile, n, 1), float, -np.pi, np.pi)


@jax.jit(static_argnums=3)
def _moments(
    theta: Float[Array, "R T n"], used: Any, beta: Float[Array, ""], half: int
) -> tuple[Array, ...]:
    """Sums over replicates of the histograms and of their products: each `(T, …)`."""

    def at_time(states: Float[Array, "R n"]) -> tuple[Array, ...]:
        p, pulled, near = jax.vmap(lambda s: histograms(s, beta, half))(states)
        products = (p, p**2, pulled, near, pulled**2, pulled * near, near**2)
        return tuple(jnp.where(used[:, None], m, 0).sum(axis=0) for m in products)

    return jax.lax.map(at_time, jnp.swapaxes(theta, 0, 1))


def histograms(theta: Float[Array, " n"], beta: Float[Array, ""], half: int) -> tuple[Array, ...]:
    """The parts of all pairs at |x| in each cell and at each edge, and there the sum of pulls."""
    n = len(theta)
    i, j = np.triu_indices(n, 1)
    ahead = theta[None, :] - theta[:, None]
    pulls = jnp.exp(beta * jnp.cos(ahead)) * jnp.sin(ahead)
    total = pulls.sum(axis=1)
    x = jnp.arctan2(jnp.sin(ahead[i, j]), jnp.cos(ahead[i, j]))
    # Seen from both ends of the pair, without the pull of the pair itself.
    third = jnp.sign(x) * ((total[i] - total[j]) / 2 - pulls[i, j]) / (n - 2)
    place = jnp.abs(x) * (half / np.pi)
    cell = jnp.round(place).astype(int)
    edge = jnp.minimum(jnp.floor(place).astype(int), half - 1)
    p = jnp.bincount(cell, length=half + 1) / len(i)
    pulled = jnp.bincount(edge, weights=third, length=half) / len(i)
    return p, pulled, jnp.bincount(edge, length=half) / len(i)


def _estimates(moments: list[np.ndarray], replicates: int, cells: int) -> tuple[np.ndarray, ...]:
    """ψ and the pull on the whole circle, each with its standard error."""
    p, p2, pulled, near, pulled2, both, near2 = moments
    spread = np.sqrt(np.maximum(p2 - p**2, 0) / (replicates - 1))
    share = np.where(near > 0, near, 1)
    pull = pulled / share
    variance = np.maximum(pulled2 - 2 * pull * both + pull**2 * near2, 0)
    pull_error = np.sqrt(variance / (replicates - 1)) / share
    return (
        _unfold_cells(p, cells),
        _unfold_cells(spread, cells),
        np.concatenate([-pull[:, :1], pull, -pull[:, :0:-1]], axis=1),
        np.concatenate([pull_error[:, :1], pull_error, pull_error[:, :0:-1]], axis=1),
    )


def _unfold_cells(p: np.ndarray, cells: int) -> np.ndarray:
    """Densities in all cells from the masses at |x|: cells 0 and M/2 are their own mirror image."""
    middle = p[:, 1:-1] / 2
    whole = np.concatenate([p[:, :1], middle, p[:, -1:], middle[:, ::-1]], axis=1)
    return whole * (cells / (2 * np.pi))
