"""How many clusters, and how many pairs are together: under jit, for sweeps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.checks import as_floats, require_state
from attnflow.observe.overlaps import overlaps


def pairs_clustered(
    x: Real[ArrayLike, "n d"], delta: Float[ArrayLike, ""] = 1e-3
) -> Float[Array, ""]:
    """The fraction of pairs i ≠ j with <x_i, x_j> ≥ 1 − δ, whose mean is [P] Fig. 3.

    δ is about half the square of a distance: it is no `tol`. Works under jit and vmap.

    >>> print(pairs_clustered(jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(3))
    0.333
    """
    require_state(x)
    x = as_floats(x)
    n = len(x)
    close = overlaps(x) >= 1 - jnp.asarray(delta, x.dtype)
    pairs = jnp.sum(close & ~jnp.eye(n, dtype=bool))
    return pairs.astype(x.dtype) / max(1, n * (n - 1))


def cluster_count(x: Real[ArrayLike, "n d"], tol: Float[ArrayLike, ""] = 1e-3) -> Int[Array, ""]:
    """How many clusters `clusters(x, tol)` finds, with n² memory, under jit and vmap.

    Tokens within `tol` are linked. The smallest number of a token that can be reached is passed on
    along the links until nothing changes.

    >>> print(cluster_count(jnp.array([[0.0], [1.0], [1.0001]])))
    2
    """
    require_state(x)
    return _count(as_floats(x), tol)


@jax.jit
def _count(x: Float[Array, "n d"], tol: Float[ArrayLike, ""]) -> Int[Array, ""]:
    n = len(x)
    apart = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    linked = apart <= jnp.asarray(tol, x.dtype) ** 2
    own = jnp.arange(n)

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        label, _ = state
        near = jnp.where(linked, label[None, :], n).min(axis=1)
        new = jnp.minimum(near, near[near])
        return new, jnp.any(new != label)

    label, _ = jax.lax.while_loop(lambda s: s[1], spread, (own, jnp.asarray(True)))
    return jnp.sum(label == own)
