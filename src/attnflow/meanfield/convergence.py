"""The mean-field experiment: tokens drawn from a density, and how far they stay from its flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.checks import require_count
from attnflow.errors import InputError
from attnflow.meanfield.circle import CircleDensity
from attnflow.meanfield.dobrushin import lipschitz_constants
from attnflow.observe import Cells, Rate, exponential_rate, wasserstein
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.simulation import Adaptive, simulate
from attnflow.spaces import Sphere
from attnflow.systems import SA, USA
from attnflow.theory.inputs import Numbers

POINTS_BETWEEN_SAVES = 8
"""Points between two save times for the integral in the exponent of Dobrushin's bound."""


@dataclass(frozen=True)
class MeanFieldRun:
    """`W1(μ_n(t), μ(t))` for several n, and Dobrushin's bound of it.

    Attributes:
        ts: the save times, shape (T,).
        sizes: the numbers n of tokens, shape (S,).
        w1: the distances, shape (S, R, T) for R replicates.
        exponent: the integral of the Lipschitz constants along μ up to each time, shape (T,), so
            that `bound = e^exponent w1[..., 0]`.
        rho: μ(t) as averages over N cells, shape (T, N).
    """

    ts: Float[np.ndarray, " T"]
    sizes: Int[np.ndarray, " S"]
    w1: Float[np.ndarray, "S R T"]
    exponent: Float[np.ndarray, " T"]
    rho: Float[np.ndarray, "T N"]

    @property
    def bound(self) -> Float[np.ndarray, "S R T"]:
        """Dobrushin's bound, from the distance at the start."""
        return np.exp(self.exponent) * self.w1[..., :1]

    def rate(self, k: int = -1) -> Rate:
        """The fit of the mean `W1 ≈ prefactor · n^{−rate}` at `ts[k]`; independent tokens: ½."""
        return exponential_rate(np.log(self.sizes), self.w1[..., k].mean(axis=1))


@renamed_arguments(seed="key")
def mean_field_run(
    system: SA | USA,
    start: Real[ArrayLike, "N 1"],
    ts: Real[ArrayLike, " T"] | Numbers,
    *,
    sizes: Numbers = (100, 1000, 10_000, 100_000),
    replicates: int = 8,
    key: RandomKey = 0,
    method: Any = None,
) -> MeanFieldRun:
    """Draw n tokens from a density on the circle, run both, and measure W1 between them.

    The density flows by `CircleDensity`. W1 is exact, with angles as distances, and falls like
    n^{−1/2}. Runs on the host.

    Args:
        system: `SA(beta)` or `USA(beta)`.
        start: the density, shape (N, 1), as `meanfield.density` makes it.
        ts: increasing save times, shape (T,).
        sizes: the numbers n of tokens to draw.
        replicates: how often to draw each.
        key: an integer or a JAX key; by default 0, the same draws in every call.
        method: how tokens are integrated; by default `Adaptive(rtol=1e-6)`.

    >>> from attnflow import meanfield
    >>> run = mean_field_run(SA(1.0), meanfield.von_mises(1.0, 64), [0.0, 0.5], sizes=[100])
    >>> run.w1.shape, bool((run.w1 <= run.bound).all())
    ((1, 8, 2), True)
    """
    if type(system) not in (SA, USA):
        raise InputError(f"system must be SA(beta) or USA(beta), but it is {system!r}.")
    counts = [require_count(n, "sizes") for n in sizes]
    replicates = require_count(replicates, "replicates")
    times, rho = np.asarray(ts, dtype=float), jnp.asarray(start)
    limit = CircleDensity(system)
    fine = _refined(times)
    flow = simulate(limit, rho, fine)
    exponent = _exponent(limit, fine, flow.xs)[::POINTS_BETWEEN_SAVES]
    densities = np.asarray(flow.xs[::POINTS_BETWEEN_SAVES, :, 0])
    method = Adaptive(rtol=1e-6, atol=1e-8) if method is None else method
    keys = jax.random.split(as_key(key), len(counts))
    w1 = np.stack(
        [
            _distances(system, _starts(rho, n, replicates, key), times, densities, method)
            for n, key in zip(counts, keys, strict=True)
        ]
    )
    return MeanFieldRun(times, np.asarray(counts), w1, exponent, densities)


@renamed_arguments(seed="key")
def draw(rho: Real[ArrayLike, "N 1"], n: int, *, key: RandomKey) -> Float[Array, "n 2"]:
    """Independent tokens on the circle, n of them, with a density that is constant on each cell.

    Args:
        rho: the density, shape (N, 1), as `meanfield.density` makes it.
        n: the number of tokens.
        key: an integer or a JAX key.

    >>> print(draw(np.array([[0.0], [1.0], [0.0], [0.0]]), 100, key=0).max(axis=0) <= 0)
    [ True False]
    """
    averages = jnp.asarray(rho, float)[:, 0]
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(averages / averages.sum())])
    edges = jnp.asarray(np.linspace(0, 2 * np.pi, len(averages) + 1))
    theta = jnp.interp(jax.random.uniform(as_key(key), (n,)), below, edges)
    return jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=1)


def _refined(times: np.ndarray) -> np.ndarray:
    count = POINTS_BETWEEN_SAVES * (len(times) - 1) + 1
    fine = np.interp(np.arange(count) / POINTS_BETWEEN_SAVES, np.arange(len(times)), times)
    fine[::POINTS_BETWEEN_SAVES] = times
    return fine


def _exponent(limit: CircleDensity, ts: np.ndarray, rhos: Array) -> np.ndarray:
    """The integral of the Lipschitz constants up to each time, by trapezia."""
    along, across = jax.lax.map(lambda x: lipschitz_constants(limit, x), rhos)
    total = np.asarray(along + across)
    steps = np.diff(ts) * (total[1:] + total[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def _starts(rho: Array, n: int, replicates: int, key: Any) -> Float[Array, "R n 2"]:
    return jnp.stack([draw(rho, n, key=one) for one in jax.random.split(key, replicates)])


def _distances(system: Any, x0: Array, ts: np.ndarray, rhos: np.ndarray, method: Any) -> np.ndarray:
    """W1 of each replicate at each time."""
    runs = np.asarray(simulate(system, x0, ts, method=method).xs)
    return np.array(
        [
            [
                wasserstein(x, Cells(d), space=Sphere()).distance
                for x, d in zip(xs, rhos, strict=True)
            ]
            for xs in runs
        ]
    )
