"""The interaction energy E_β, and how fast it changes."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Blocked
from attnflow.checks import as_floats, require_state
from attnflow.errors import InputError
from attnflow.observe.tangent import require_unit
from attnflow.systems import System

BLOCK = Blocked().block


def energy(
    x: Real[ArrayLike, "n d"],
    beta: Float[ArrayLike, ""] | int,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """`E_β = (1/2β) Σ_ij m_i m_j e^{β <x_i,x_j>} / (Σ m)²`, [P](3.5).

    It increases along SA and USA ([P](3.6), L3.7) and decreases for V = −I. At β = 0 it is the
    limit with the constant removed, `½ Σ_ij m_i m_j <x_i,x_j> / (Σ m)²`. Memory is O(n);
    works under jit and vmap.

    Args:
        x: tokens, shape (n, d).
        beta: inverse temperature β.
        masses: masses of the tokens, shape (n,); by default 1 each.

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


def energy_rate(
    system: System,
    x: Real[ArrayLike, "n d"],
    t: Any = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """dE_β/dt along SA or USA, from the velocities alone.

    For USA it is `mean |x_i'|²`, [P](3.6), and for SA `mean |x_i'|² Z_i / n`, [P] Lemma 3.7; means
    are weighted by mass, with Z_i over the total mass. For V = cI it is 1/c of that, so that the
    energy falls for c < 0. Other systems have no such identity and are refused: those with other
    weights (doubly stochastic ones too), a mask, a feed-forward layer, noise, or tokens off the
    sphere. Works under jit and vmap.

    Args:
        system: `SA` or `USA` with Q = K = I and V = cI.
        x: unit tokens, shape (n, d).
        t: the time, for a V that changes in it.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> from attnflow.systems import USA
    >>> print(energy_rate(USA(beta=0.0), jnp.eye(2)))
    0.25
    """
    _require_identity(system)
    require_state(x, masses)
    x = as_floats(x)
    require_unit(x)
    m = jnp.ones(len(x), x.dtype) if masses is None else jnp.asarray(masses, x.dtype)
    return _energy_rate(system, t, x, m)


@eqx.filter_jit
def _energy_rate(
    system: System, t: Any, x: Float[Array, "n d"], m: Float[Array, " n"]
) -> Float[Array, ""]:
    v, field = system.velocity(t, x, m), system.attention_field(t)
    assert field is not None
    c = jnp.ones((), x.dtype) if field.c is None else field.c.astype(x.dtype)
    m = m / m.sum()
    speeds = jnp.sum(v * v, axis=-1)
    if field.normalised:
        speeds = speeds * _partition(x, field.beta.astype(x.dtype), m)
    return jnp.where(c == 0, 0, jnp.sum(m * speeds) / jnp.where(c == 0, 1, c))


def _require_identity(system: System) -> None:
    """Refuse a system whose energy does not change as [P](3.6) or Lemma 3.7 say."""
    if system.random or system.attention_field(0.0) is None:
        raise InputError(
            "system must be SA(beta) or USA(beta), without noise, a mask, Q or K, and with a "
            f"number V at most, for the identities of dE_β/dt, but it is {system!r}."
        )


def _partition(
    x: Float[Array, "n d"], beta: Float[Array, ""], m: Float[Array, " n"]
) -> Float[Array, " n"]:
    """`Z_i = Σ_j m_j e^{β <x_i,x_j>}`."""

    def row(x_i: Array) -> Array:
        return jnp.sum(m * jnp.exp(beta * (x @ x_i)))

    return jax.lax.map(row, x, batch_size=min(BLOCK, len(x)))
