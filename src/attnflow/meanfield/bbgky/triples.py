"""Triples of tokens on a grid of the circle: θ₁ = 0, θ₂ = iΔ, θ₃ = jΔ, as matrices over (i, j)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

FITTING_SWEEPS = 20
"""Rounds of proportional fitting; pairs then have their law to 1e-3 or better."""


def third_side(w: Float[Array, " M"]) -> Float[Array, "M M"]:
    """w of θ₃ − θ₂.

    >>> print(third_side(jnp.array([1.0, 2.0, 3.0])))
    [[1. 2. 3.]
     [3. 1. 2.]
     [2. 3. 1.]]
    """
    return w[_ahead(len(w))]


def gaps(w: Float[Array, " M"]) -> tuple[Float[Array, "M M"], Float[Array, "M M"]]:
    """w of the shortest of the three distances, and the product of w of the other two.

    >>> shortest, others = gaps(jnp.array([5.0, 2.0, 3.0, 2.0]))
    >>> print(shortest[1, 3], others[1, 3])
    2.0 6.0
    """
    sides = np.sort(_sides(len(w)), axis=0)
    return w[sides[0]], w[sides[1]] * w[sides[2]]


def law(weights: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Rows that sum to 1: the law of θ₃ given the pair."""
    return weights / weights.sum(axis=1, keepdims=True)


def consistent(weights: Float[Array, "M M"], w: Float[Array, " M"]) -> Float[Array, "M M"]:
    """`a₁₂ a₁₃ a₂₃` times the weights, with a such that every pair has a law proportional to w.

    The weights are symmetric in the three tokens, and w is even. Proportional fitting with all
    three factors at a time; the root keeps it from overshooting. Works under jit and vmap.

    >>> fitted = consistent(jnp.ones((4, 4)), jnp.array([5.0, 2.0, 3.0, 2.0]))
    >>> print(fitted.mean(axis=0).round(5), fitted.mean(axis=1).round(5))
    [5. 2. 3. 2.] [5. 2. 3. 2.]
    """
    weights = weights * (w.mean() / weights.mean())
    ahead = _ahead(len(w))

    def times(a: Float[Array, " M"]) -> Float[Array, "M M"]:
        return weights * a[:, None] * a[None, :] * a[ahead]

    def sweep(_: Array, a: Float[Array, " M"]) -> Float[Array, " M"]:
        return a * jnp.sqrt(w / times(a).mean(axis=1))

    return times(jax.lax.fori_loop(0, FITTING_SWEEPS, sweep, jnp.ones_like(w)))


def _ahead(M: int) -> Int[np.ndarray, "M M"]:
    """The number of the cell of θ₃ − θ₂."""
    cell = np.arange(M)
    return (cell[None, :] - cell[:, None]) % M


def _sides(M: int) -> Int[np.ndarray, "3 M M"]:
    """The three distances, in cells."""
    cell = np.arange(M)
    apart = np.minimum(cell, M - cell)
    shape = (M, M)
    return np.stack(
        [
            np.broadcast_to(apart[:, None], shape),
            np.broadcast_to(apart[None, :], shape),
            apart[_ahead(M)],
        ]
    )
