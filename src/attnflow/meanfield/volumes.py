"""Finite volumes on a periodic grid: the right-hand side of a continuity equation.

    ∂_t ρ + ∂_x (v ρ) = σ ∂_x² ρ

ρ is kept as its averages over N cells of equal width, v as its values at the N edges: edge i is
the left edge of cell i, between the cells i − 1 and i. What leaves a cell enters its neighbour, so
mass is conserved to rounding. Inside a cell ρ is a line whose slope van Leer's limiter bounds: of
second order where ρ is smooth, and without new extrema.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def continuity_rate(
    rho: Float[Array, " N"],
    speeds: Float[Array, " N"],
    width: Float[ArrayLike, ""],
    sigma: Float[ArrayLike, ""] | None = None,
) -> Float[Array, " N"]:
    """`∂_t ρ` of the cell averages ρ, from the velocities at the left edges of the cells.

    An Euler step no longer than `positive_step` keeps ρ ≥ 0, and so does Heun's step
    (`Fixed(dt, "heun")`), which is a mean of Euler steps. Fluxes are upwind. Works under jit and
    vmap.

    Args:
        rho: the averages of ρ over the cells, shape (N,).
        speeds: the velocity v at the left edge of each cell, shape (N,).
        width: the width Δ of a cell.
        sigma: the diffusion σ; None is 0.

    >>> rho = jnp.array([0.0, 1.0, 0.0, 0.0])
    >>> print(continuity_rate(rho, jnp.ones(4), 0.5))
    [ 0. -2.  2.  0.]
    """
    half = limited_slopes(rho) / 2
    from_left, from_right = jnp.roll(rho + half, 1), rho - half
    flux = jnp.maximum(speeds, 0) * from_left + jnp.minimum(speeds, 0) * from_right
    width = jnp.asarray(width, rho.dtype)
    if sigma is not None:
        flux = flux - jnp.asarray(sigma, rho.dtype) * (rho - jnp.roll(rho, 1)) / width
    return (flux - jnp.roll(flux, -1)) / width


def limited_slopes(rho: Float[Array, " N"]) -> Float[Array, " N"]:
    """The slope of ρ in each cell, times its width: the harmonic mean of the steps to both sides.

    It is 0 where the steps have different signs (van Leer), so that the values at the edges lie
    between the averages of neighbours.

    >>> print(limited_slopes(jnp.array([0.0, 1.0, 4.0, 0.0])))
    [0.  1.5 0.  0. ]
    """
    before = rho - jnp.roll(rho, 1)
    after = jnp.roll(before, -1)
    same = (before > 0) & (after > 0) | (before < 0) & (after < 0)
    total = jnp.where(same, before + after, 1)
    # Divided before it is multiplied, so that no product of two small steps underflows.
    return jnp.where(same, 2 * before * (after / total), 0)


def positive_step(
    speeds: Float[Array, " N"],
    width: Float[ArrayLike, ""],
    sigma: Float[ArrayLike, ""] | None = None,
) -> Float[Array, ""]:
    """The longest Euler step of `continuity_rate` under which no density becomes negative.

        dt (2 max|v| / Δ + 2σ / Δ²) ≤ 1

    The values at both edges of a cell add up to 2ρ and none is negative, so that at most
    2ρ max|v| leaves it by transport, and 2σρ/Δ by diffusion. Infinite where nothing moves.

    Args:
        speeds: the velocity v at the left edge of each cell, shape (N,).
        width: the width Δ of a cell.
        sigma: the diffusion σ; None is 0.

    >>> print(positive_step(jnp.array([0.5, -2.0]), 0.5), positive_step(jnp.zeros(2), 0.5, 0.25))
    0.125 0.5
    """
    width = jnp.asarray(width, speeds.dtype)
    rate: Any = 2 * jnp.max(jnp.abs(speeds)) / width
    if sigma is not None:
        rate = rate + 2 * jnp.asarray(sigma, speeds.dtype) / width**2
    return 1 / rate
