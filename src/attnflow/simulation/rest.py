"""Stable rest: states that no longer move, however long one waits.

At a stable rest explicit steps stay as short as the fastest perturbation decays, though nothing
moves: a run to t = 10³⁰ would not come to its end. `at_rest` proves with the derivative of the
velocity that nothing will: the distance to the nearest zero of the velocity is below the tolerance,
and every perturbation of it decays, at a rate that rounding cannot feign. Rotations of all tokens
are left out where they commute with the flow, as they lead from one rest to another.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.systems import System

MAX_JACOBIAN_SIZE = 600
"""Coordinates up to which eigenvalues are worth their time."""

RESOLVED = 1e-9
"""A perturbation must decay at least at this part of the fastest rate."""


def at_rest(
    system: System, x: Float[Array, "n d"], mass: Float[Array, " n"], tolerance: float
) -> bool:
    """Whether tokens of an autonomous system stay where they are, to the tolerance, for ever.

    Runs on the host. Tokens of mass 0 are left out.

    >>> import attnflow as af
    >>> opposite = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> at_rest(af.SA(1.0), opposite, jnp.ones(2), 1e-8)
    False
    >>> at_rest(af.SA(1.0, V=-1.0), opposite, jnp.ones(2), 1e-8)
    True
    """
    alive = np.asarray(mass) > 0
    x, mass = x[alive], mass[alive]
    if x.size > MAX_JACOBIAN_SIZE:
        return False
    v, slope, tangent = (np.asarray(a, float) for a in _linear(system, x, mass))
    inward = _span(tangent)
    along = (
        _rotations(np.asarray(x, float)) if _turns_alike(system, x, mass) else np.zeros((x.size, 0))
    )
    drift = _span(inward.T @ along)
    across = _complement(drift)
    A, f = across.T @ (inward.T @ slope @ inward) @ across, across.T @ (inward.T @ v)
    if not A.size:
        return bool(np.abs(v).max() <= tolerance)
    rates = np.linalg.eigvals(A)
    if not rates.real.max() < -RESOLVED * np.abs(rates).max():
        return False
    off = inward @ (across @ np.linalg.solve(A, f))
    return bool(np.linalg.norm(off.reshape(x.shape), axis=1).max() <= tolerance)


@eqx.filter_jit
def _linear(system: System, x: Array, mass: Array) -> tuple[Array, Array, Array]:
    """The velocity, its derivative, and that of the retraction, whose range is tangential."""

    def flat(fn: Any) -> Any:
        return lambda y: fn(system.retract(y.reshape(x.shape))).ravel()

    def velocity(x: Array) -> Array:
        return system.velocity(jnp.zeros((), x.dtype), x, mass)

    y = x.ravel()
    return flat(velocity)(y), jax.jacfwd(flat(velocity))(y), jax.jacfwd(flat(lambda x: x))(y)


def _turns_alike(system: System, x: Array, mass: Array) -> bool:
    """Whether turned tokens have turned velocities, to rounding, at tokens drawn at random."""
    rng = np.random.default_rng(0)
    d = x.shape[1]
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    y = system.retract(jnp.asarray(rng.normal(size=x.shape), x.dtype))
    at = jnp.zeros((), x.dtype)
    turned = system.velocity(at, system.retract(y @ turn.T), mass)
    expected = system.velocity(at, y, mass) @ turn.T
    size = float(jnp.abs(expected).max())
    return bool(jnp.abs(turned - expected).max() <= 1e4 * jnp.finfo(x.dtype).eps * size)


def _rotations(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "nd r"]:
    """How each plane's rotation moves all tokens, in columns."""
    d = x.shape[1]
    columns = []
    for a in range(d):
        for b in range(a):
            w = np.zeros_like(x)
            w[:, a], w[:, b] = x[:, b], -x[:, a]
            columns.append(w.ravel())
    return np.array(columns).reshape(-1, x.size).T


def _span(A: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the range of A, in columns."""
    if not A.size:
        return np.zeros((len(A), 0))
    U, sizes, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, sizes > 1e-8 * max(sizes[0], 1e-300)]


def _complement(B: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what is orthogonal to the orthonormal columns of B."""
    U, _, _ = np.linalg.svd(B, full_matrices=True)
    return U[:, B.shape[1] :]
