"""Optimal configurations of points on the sphere, by the repulsive flow V = −I ([P] §9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow import initial
from attnflow.checks import require_count, require_positive
from attnflow.errors import InputError
from attnflow.observe import InnerProducts, design_strength, energy, inner_products
from attnflow.randomness import RandomKey
from attnflow.retired import renamed_arguments
from attnflow.simulation import Adaptive, simulate
from attnflow.spaces import Sphere, unit_rows
from attnflow.systems import SA
from attnflow.theory.sharp import recognised

SAME_ENERGY_TOL = 1e-9
"""Two starts reached the same configuration when their log sums differ by less."""

BETA_LADDER = (64.0, 4.0)
"""The β from which larger ones are reached, and by which factors."""

GRADIENT_TOL = 1e-6
"""The gradient of a minimum is shorter than this times β."""

MAX_NEWTON_STEPS = 8
"""The most Newton steps; three are usual: each doubles the number of right digits."""


@dataclass(frozen=True)
class Configuration:
    """The best configuration that was found, and how often it was.

    Attributes:
        beta: inverse temperature β.
        points: the points with the least E_β of all starts, shape (n, d).
        energy: their E_β of [P](3.5), as `observe.energy` has it, which counts i = j too.
        log_sum: `log Σ_{i≠j} e^{β <x_i,x_j>}`, without those constant terms, which hide the others
            for large β.
        gradient_norm: the length of the gradient of `log_sum`.
        inner_products: the distinct inner products and how often each occurs.
        strength: the largest t for which the points are a spherical t-design.
        name: the sharp configuration with the same inner products, which is a proven minimum
            (T9.2), or None.
        energies: the energy that each start led to, shape (starts,).
        log_sums: the log sum that each start led to, shape (starts,).
        hits: how many of these are the best up to 1e-9.
    """

    beta: float
    points: Float[np.ndarray, "n d"]
    energy: float
    log_sum: float
    gradient_norm: float
    inner_products: InnerProducts
    strength: int
    name: str | None
    energies: Float[np.ndarray, " starts"]
    log_sums: Float[np.ndarray, " starts"]
    hits: int

    def __str__(self) -> str:
        n, d = self.points.shape
        values = len(self.inner_products.values)
        return (
            f"{n} points in R^{d}, β = {self.beta:g}: {self.name or 'no sharp configuration'}, "
            f"E_β = {self.energy:.12g}, {values} inner product{'s' if values > 1 else ''}, "
            f"strength {self.strength}, found from {self.hits} of {len(self.log_sums)} starts"
            f"{'' if self.gradient_norm < GRADIENT_TOL * self.beta else ', not settled'}"
        )


@renamed_arguments(seed="key")
def optimal_configuration(
    n: int,
    d: int,
    beta: float | int,
    *,
    starts: int = 32,
    key: RandomKey = 0,
    x0: Real[ArrayLike, "*batch n d"] | None = None,
) -> Configuration:
    """The n points on S^{d−1} with the least energy E_β that many starts lead to ([P] §9.1).

    Starts follow SA with V = −I for a time 10 (1 + β). SciPy's trust-region method then takes each
    to a local minimum of `log Σ_{i≠j} e^{β <x_i,x_j>}`, and Newton steps sharpen the best to
    rounding. Only products with the Hessian are needed, so memory is O(n²) for each start. A β
    above 64, at which distant points would not feel each other, is reached from there by factors
    of 4.

    How clearly an energy tells configurations apart depends on β. Two t-designs differ only in
    degrees k > t, whose part in the energy is the coefficient a_k of `gegenbauer_coefficients`,
    and that falls like β^k / k! once k exceeds β: below β ≈ t a minimum is so flat that rounding
    blurs it. Far above, the energy sees little but nearest neighbours and has many local minima.
    Good values: β between t and 2t.

    Args:
        n: the number of points.
        d: the dimension of the space around the sphere.
        beta: inverse temperature β > 0.
        starts: the number of uniform starts.
        key: an integer or a JAX key, for these starts; by default 0, the same ones in every call.
        x0: starts of your own instead, shape (n, d) or (starts, n, d).

    >>> found = optimal_configuration(6, 3, 2.0, starts=2)
    >>> found.name, found.strength, (found.inner_products.values.round(9) + 0.0).tolist()
    ('cross-polytope', 3, [-1.0, 0.0])
    """
    n, d = require_count(n, "n", least=2), require_count(d, "d", least=2)
    require_positive(beta, "beta")
    x = _starts(n, d, require_count(starts, "starts"), key, x0)
    ladder = _ladder(float(beta))
    settled = simulate(
        SA(ladder[0], V=-1.0),
        x,
        [0.0, 10.0 * (1 + ladder[0])],
        method=Adaptive(rtol=1e-3, atol=1e-4, solver="tsit5"),
    ).final
    found = [_descend(np.asarray(member), ladder) for member in settled]
    log_sums = np.array([value for _, value in found])
    best = _sharpen(found[int(np.argmin(log_sums))][0], float(beta))
    return _described(best, log_sums, float(beta))


def log_pair_sum(x: Float[Array, "n d"], beta: Float[ArrayLike, ""] | int) -> Float[Array, ""]:
    """`log Σ_{i≠j} e^{β <x_i,x_j>}`, which neither overflows nor drowns in the terms i = j.

    Works under jit and vmap.

    >>> round(float(log_pair_sum(jnp.array([[1.0, 0.0], [-1.0, 0.0]]), 1000.0)), 6)
    -999.306853
    """
    scores = jnp.asarray(beta, x.dtype) * (x @ x.T)
    diagonal = jnp.eye(len(x), dtype=bool)
    return jax.nn.logsumexp(jnp.where(diagonal, -jnp.inf, scores))


def _starts(n: int, d: int, starts: int, key: RandomKey, x0: Any) -> Float[Array, "starts n d"]:
    if x0 is None:
        return initial.sphere(n, d, key=key, batch=starts)
    x = jnp.asarray(x0, dtype=float)
    if x.ndim not in (2, 3) or x.shape[-2:] != (n, d) or not len(x):
        raise InputError(
            f"x0 must have shape (n, d) = {(n, d)} or (starts, n, d), but its shape is {x.shape}."
        )
    return x.reshape(-1, n, d)


def _flat(y: Float[Array, " nd"], beta: Float[Array, ""], shape: tuple[int, int]) -> Array:
    """The log sum of the directions of free points: constant along each, so it needs no chart."""
    return log_pair_sum(unit_rows(y.reshape(shape)), beta)


@partial(jax.jit, static_argnums=2)
def _value_and_slope(y: Array, beta: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    return jax.value_and_grad(_flat)(y, beta, shape)


@partial(jax.jit, static_argnums=3)
def _bend(y: Array, v: Array, beta: Array, shape: tuple[int, int]) -> Array:
    """The Hessian at y times v."""
    return jax.jvp(lambda y: jax.grad(_flat)(y, beta, shape), (y,), (v,))[1]


def _ladder(beta: float) -> list[float]:
    """From a β that all points feel up to the one that is wanted."""
    first, factor = BETA_LADDER
    rungs = [min(beta, first)]
    while rungs[-1] < beta:
        rungs.append(min(beta, factor * rungs[-1]))
    return rungs


def _descend(
    x: Float[np.ndarray, "n d"], ladder: list[float]
) -> tuple[Float[np.ndarray, "n d"], float]:
    """The local minimum at the last β that trust regions lead to, and its log sum."""
    value = np.inf
    for beta in ladder:
        x, value = _minimum(x, beta)
    return x, value


def _minimum(x: Float[np.ndarray, "n d"], beta: float) -> tuple[Float[np.ndarray, "n d"], float]:
    shape = x.shape

    def value_and_slope(y: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _value_and_slope(y, beta, shape)
        return float(value), np.asarray(slope)

    found = scipy.optimize.minimize(
        value_and_slope,
        x.ravel(),
        jac=True,
        hessp=lambda y, v: np.asarray(_bend(y, v, beta, shape)),
        method="trust-ncg",
        options={"gtol": 1e-7, "maxiter": 1000},
    )
    return np.asarray(unit_rows(jnp.asarray(found.x.reshape(shape)))), float(found.fun)


def _sharpen(x: Float[np.ndarray, "n d"], beta: float) -> Float[np.ndarray, "n d"]:
    """Newton steps, while they shorten the gradient.

    Rotations and lengths are directions in which nothing changes: MINRES takes the shortest of
    all solutions, which leaves them alone.
    """
    slope = _slope(x, beta)
    for _ in range(MAX_NEWTON_STEPS):
        bend = scipy.sparse.linalg.LinearOperator(
            (x.size, x.size),
            matvec=lambda v, x=x: np.asarray(_bend(x.ravel(), v.ravel(), beta, x.shape)),
            dtype=float,
        )
        step, _ = scipy.sparse.linalg.minres(bend, -slope.ravel(), rtol=1e-12, maxiter=4 * x.size)
        moved = np.asarray(unit_rows(jnp.asarray(x + step.reshape(x.shape))))
        after = _slope(moved, beta)
        if not np.linalg.norm(after) < np.linalg.norm(slope):
            break
        x, slope = moved, after
    return x


def _slope(x: Float[np.ndarray, "n d"], beta: float) -> Float[np.ndarray, "n d"]:
    free = np.asarray(_value_and_slope(x.ravel(), beta, x.shape)[1]).reshape(x.shape)
    return np.asarray(Sphere().project(jnp.asarray(x), jnp.asarray(free)))


def _described(
    best: Float[np.ndarray, "n d"], log_sums: Float[np.ndarray, " starts"], beta: float
) -> Configuration:
    """What is known of the best configuration and of those of all starts."""
    n = len(best)
    log_sum = float(_value_and_slope(best.ravel(), beta, best.shape)[0])
    with np.errstate(over="ignore"):
        energies = (np.exp(beta) / n + np.exp(log_sums) / n**2) / (2 * beta)
    return Configuration(
        beta=beta,
        points=best,
        energy=float(energy(best, beta)),
        log_sum=log_sum,
        gradient_norm=float(np.linalg.norm(_slope(best, beta))),
        inner_products=inner_products(best),
        strength=design_strength(best),
        name=recognised(best),
        energies=energies,
        log_sums=log_sums,
        hits=int(np.sum(log_sums < log_sum + SAME_ENERGY_TOL)),
    )
