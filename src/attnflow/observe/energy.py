"""The interaction energy E_β."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from attnflow.attention import Blocked

BLOCK = Blocked().block


def energy(
    x: Float[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | float,
    masses: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """`E_β = (1/2β) Σ_ij m_i m_j e^{β <x_i,x_j>} / (Σ m)²`, [P](3.5).

    It increases along SA and USA ([P](3.6), L3.7) and decreases for V = −I. At β = 0 it is the
    limit with the constant removed, `½ Σ_ij m_i m_j <x_i,x_j> / (Σ m)²`. Memory is O(n).

    >>> print(float(energy(jnp.array([[1.0, 0.0]]), 0.0)))
    0.5
    """
    x = jnp.asarray(x)
    beta = jnp.asarray(beta, x.dtype)
    m = jnp.ones(len(x), x.dtype) if masses is None else jnp.asarray(masses, x.dtype)
    m = m / m.sum()
    safe = jnp.where(beta == 0, 1, beta)

    def row(pair: tuple[Array, Array]) -> Array:
        x_i, m_i = pair
        s = x @ x_i
        value = jnp.where(beta == 0, s / 2, jnp.exp(beta * s) / (2 * safe))
        return m_i * jnp.sum(m * value)

    return jax.lax.map(row, (x, m), batch_size=min(BLOCK, len(x))).sum()
