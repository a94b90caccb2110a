"""Starts on the circle: densities as averages over N equal cells, `(N, 1)`, of mass 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, require_count, require_finite, require_nonnegative
from attnflow.errors import InputError
from attnflow.meanfield.circle import MIN_CELLS

GAUSS_POINTS = 8
"""Gauss' points in each cell."""


def density(fn: Callable[..., Any], N: int, *, dtype: Any = float) -> Float[Array, "N 1"]:
    """The density proportional to fn(θ), averaged over N cells.

    Each cell is integrated by Gauss' rule of 8 points.

    Args:
        fn: a function of an array of angles in [0, 2π], nowhere negative; its mass need not be 1.
        N: the number of cells.
        dtype: float64 by default, or another float dtype.

    >>> print(density(lambda theta: 1 + np.sin(theta), 4).round(4)[:, 0])
    [0.2605 0.2605 0.0578 0.0578]
    """
    width = 2 * np.pi / require_count(N, "N", least=MIN_CELLS)
    at, weights = scipy.special.roots_legendre(GAUSS_POINTS)
    theta = width * (np.arange(N)[:, None] + (at + 1) / 2)
    values = np.asarray(fn(theta), float)
    if values.shape != theta.shape:
        raise InputError("fn must give one number for each angle of an array, as jnp.cos does.")
    require_finite(values, "fn(θ)")
    require_nonnegative(values, "fn(θ)")
    averages = values @ (weights / 2)
    if averages.sum() == 0:
        raise InputError("fn must not be 0 everywhere: a density has mass 1.")
    return jnp.asarray(averages / (averages.sum() * width), dtype)[:, None]


def von_mises(
    kappa: float | int, N: int, *, centre: float | int = 0.0, dtype: Any = float
) -> Float[Array, "N 1"]:
    """Von Mises' density, `ρ ∝ e^{κ cos(θ − centre)}`: one bump.

    Args:
        kappa: how concentrated it is; 0 is uniform.
        N: the number of cells.
        centre: the angle of the maximum.
        dtype: float64 by default, or another float dtype.

    >>> print((2 * np.pi * von_mises(0.0, 4))[:, 0])
    [1. 1. 1. 1.]
    """
    require_nonnegative(kappa, "kappa")
    return density(lambda theta: np.exp(kappa * (np.cos(theta - centre) - 1)), N, dtype=dtype)


def single_mode(
    k: int, amplitude: float | int, N: int, *, dtype: Any = float
) -> Float[Array, "N 1"]:
    """`ρ = (1 + a cos kθ) / 2π`, |a| ≤ 1: the uniform density with one mode, `c_k = a/2`.

    Args:
        k: the number of bumps.
        amplitude: a, between −1 and 1.
        N: the number of cells.
        dtype: float64 by default, or another float dtype.

    >>> print((2 * np.pi * single_mode(1, 1.0, 4)).round(4)[:, 0])
    [1.6366 0.3634 0.3634 1.6366]
    """
    require_count(k, "k")
    if not abs(amplitude) <= 1:
        raise InputError(f"amplitude must be between −1 and 1, but it is {amplitude!r}.")
    return density(lambda theta: 1 + amplitude * np.cos(k * theta), N, dtype=dtype)


def histogram(
    theta: Real[ArrayLike, "n 1"], N: int, masses: Real[ArrayLike, " n"] | None = None
) -> Float[Array, "N 1"]:
    """The density of tokens at angles `(n, 1)`: the mass in each of N cells over its width.

    It differs from the tokens by at most Δ = 2π/N in W∞. Works under jit and vmap.

    Args:
        theta: angles, shape (n, 1).
        N: the number of cells.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> print((2 * np.pi * histogram(jnp.array([[0.1], [0.2], [-0.1]]), 4)).round(4)[:, 0])
    [2.6667 0.     0.     1.3333]
    """
    angles = as_floats(theta)
    n, width = len(angles), 2 * np.pi / require_count(N, "N", least=MIN_CELLS)
    m = jnp.ones(n, angles.dtype) if masses is None else jnp.asarray(masses, angles.dtype)
    cell = jnp.floor(angles[:, 0] / width).astype(int) % N
    return jnp.zeros((N, 1), angles.dtype).at[cell, 0].add(m / m.sum() / width)
