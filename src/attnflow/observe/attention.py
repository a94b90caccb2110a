"""Observables of attention: matrices, rank, entropy, leaders."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Real

from attnflow.checks import as_floats, require_state
from attnflow.errors import InputError
from attnflow.simulation import Trajectory
from attnflow.systems import System


def attention(
    system: System,
    x: Real[ArrayLike, "n d"],
    t: Any = 0.0,
    masses: Real[ArrayLike, " n"] | None = None,
) -> Float[Array, "*heads n n"]:
    """The weights A_ij that multiply `V x_j`: (n, n), or (H, n, n) with several heads.

    Works under jit and vmap.

    Args:
        system: any system with attention; others are refused.
        x: tokens, shape (n, d).
        t: the time, for weights that change in it.
        masses: masses of the tokens, shape (n,); by default 1 each.

    >>> import attnflow as af
    >>> P = attention(af.SA(beta=0.0), jnp.eye(2))
    >>> print(P)
    [[0.5 0.5]
     [0.5 0.5]]
    """
    if not hasattr(system, "attention"):
        raise InputError(f"{type(system).__name__} has no attention matrix.")
    require_state(x, masses)
    x = as_floats(x)
    m = None if masses is None else jnp.asarray(masses, x.dtype)
    return system.attention(t, x, m)


def attention_along(trajectory: Trajectory) -> Float[Array, "*batch T *heads n n"]:
    """The attention matrices at all save times of a trajectory that kept its states.

    They are those of the coordinates in which the run was integrated: right also where states of
    rescaled attention have no digits left. Called on the host.

    >>> import attnflow as af
    >>> run = af.simulate(af.RescaledAttention(), af.initial.cube(4, 2, key=0), [0.0, 1.0, 9.0])
    >>> attention_along(run).shape
    (3, 4, 4)
    """
    system, masses = trajectory.running, trajectory.masses
    if not hasattr(system, "attention"):
        raise InputError(f"{type(system).__name__} has no attention matrix.")
    if masses is not None and masses.ndim > 1:
        raise InputError("trajectory must be a single run where tokens have masses of their own.")
    return _along(system, trajectory, masses)


@eqx.filter_jit
def _along(system: System, trajectory: Trajectory, masses: Float[Array, " n"] | None) -> Array:
    weights = system.attention_inside if trajectory.inner is not None else system.attention  # type: ignore[attr-defined]
    return trajectory.each(lambda t, state: weights(t, as_floats(state), masses))


def rank(
    P: Real[ArrayLike, "*batch n k"], tol: Float[ArrayLike, ""] | int = 1e-6
) -> Int[Array, "*batch"]:
    """The numerical rank: the number of singular values above `tol` times the largest.

    In one dimension P tends to a matrix of rank 1 or 2 (T2.1). Leading axes such as heads are
    kept; works under jit and vmap.

    >>> print(rank(jnp.array([[1.0, 0.0], [1.0, 0.0]])))
    1
    """
    s = jnp.linalg.svd(as_floats(P), compute_uv=False)
    return jnp.sum(s > jnp.asarray(tol, s.dtype) * s[..., :1], axis=-1)


def boolean_distance(P: Real[ArrayLike, "*batch n k"]) -> Float[Array, "*batch"]:
    """`max_ij min(|P_ij|, |1 − P_ij|)`: how far P is from a matrix of zeros and ones (T2.1).

    Leading axes such as heads are kept; works under jit and vmap.

    >>> print(boolean_distance(jnp.array([[0.0, 1.0], [0.25, 0.75]])))
    0.25
    """
    P = as_floats(P)
    return jnp.minimum(jnp.abs(P), jnp.abs(1 - P)).max(axis=(-2, -1))


def entropy(P: Real[ArrayLike, "*batch n k"]) -> Float[Array, "*batch n"]:
    """`−Σ_j P_ij log P_ij` for each row i, in nats: from 0 (one token seen) to log n (all alike).

    Leading axes such as heads are kept; works under jit and vmap.

    >>> print(entropy(jnp.array([[0.5, 0.5], [0.0, 1.0]])).round(4))
    [0.6931 0.    ]
    """
    return jax.scipy.special.entr(as_floats(P)).sum(axis=-1)


def leaders(
    P: Real[ArrayLike, "*batch n n"], share: Float[ArrayLike, ""] | int = 0.5
) -> Bool[Array, "*batch n"]:
    """Which tokens receive at least `share` of some token's attention.

    Rows of P are taken to sum to 1, as those of SA, PureAttention and RescaledAttention do. In
    [E] the leaders are the tokens that columns of the limit of P point to, far fewer than n.
    Leading axes such as heads are kept; works under jit and vmap.

    >>> P = jnp.array([[0.1, 0.9, 0.0], [0.0, 1.0, 0.0], [0.4, 0.4, 0.2]])
    >>> print(leaders(P))
    [False  True False]
    """
    P = as_floats(P)
    return jnp.any(jnp.asarray(share, P.dtype) <= P, axis=-2)
