"""The interaction energy E_β."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Blocked
from attnflow.checks import as_floats, require_state

BLOCK = Blocked().block


def energy(
    x: Real[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | int,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """`E_β = (1/2β) Σ_ij m_i m_j e^{β <x_i,x_j>} / (Σ m)²`, [P](3.5).

    It increases along SA and USA ([P](3.6), L3.7) and decreases for V = −I. At β = 0 it is the
    limit with the constant removed, `½ Σ_ij m_i m_j <x_i,x_j> / (Σ m)²`. Memory is O(n).

    >>> print(float(energy(jnp.array([[1.0, 0.0]]), 0.0)))
    0.5
    """
    require_state(x, masses)
    x = as_floats(x)
    beta = jnp.asarray(beta, x.dtype)
    m = jnp.ones(len(x), x.dtype) if masses is None else jnp.asarray(masses, x.dtype)
    return _energy(x, beta, m / m.sum())


@jax.jit
def _energy(
    x: Float[Array, "n d"], beta: Float[Array, ""], m: Float[Array, " n"]
) -> Float[Array, ""]:
    safe = jnp.where(beta == 0, 1, beta)

    def row(pair: tuple[Array, Array]) -> Array:
        x_i, m_i = pair
        s = x @ x_i
        value = jnp.where(beta == 0, s / 2, jnp.exp(beta * s) / (2 * safe))
        return m_i * jnp.sum(m * value)

    return jax.lax.map(row, (x, m), batch_size=min(BLOCK, len(x))).sum()
