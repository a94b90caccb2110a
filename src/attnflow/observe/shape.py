"""How wide, how aligned and how flat a configuration is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.attention import Blocked
from attnflow.checks import as_floats, require_state
from attnflow.observe.attention import rank
from attnflow.spaces import inner

BLOCK = Blocked().block


def diameter(x: Real[ArrayLike, "n d"]) -> Float[Array, ""]:
    """The largest distance `max_ij |x_i − x_j|`. Memory is O(n · block); works under jit and vmap.

    >>> print(float(diameter(jnp.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))))
    5.0
    """
    require_state(x)
    return _diameter(as_floats(x))


@jax.jit
def _diameter(x: Float[Array, "n d"]) -> Float[Array, ""]:
    def farthest(x_i: Array) -> Array:
        apart = x - x_i
        return inner(apart, apart).max()

    return jnp.sqrt(jax.lax.map(farthest, x, batch_size=min(BLOCK, len(x))).max())


def order_parameter(
    x: Real[ArrayLike, "*batch n d"], masses: Real[ArrayLike, "*batch n"] | None = None
) -> Float[Array, "*batch"]:
    """`|Σ_i m_i x_i| / Σ_i m_i`: on the sphere 1 for one cluster and 0 for a balanced set.

    On the circle it is Kuramoto's r. Leading axes are kept; works under jit and vmap.

    >>> x = jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    >>> print(order_parameter(x, masses=jnp.array([1, 1, 2])))
    0.5
    """
    x = as_floats(x)
    m = jnp.ones(x.shape[:-1], x.dtype) if masses is None else jnp.asarray(masses, x.dtype)
    sums = jnp.sum(m[..., None] * x, axis=-2)
    return jnp.linalg.norm(sums, axis=-1) / m.sum(axis=-1)


def effective_rank(x: Real[ArrayLike, "*batch n d"]) -> Float[Array, "*batch"]:
    """`exp(−Σ p_k log p_k)` with p the singular values of x divided by their sum.

    It is r for r equal singular values, goes down to 1 as tokens align (Roy and Vetterli 2007),
    and is 0 where all tokens are 0. Leading axes are kept; works under jit and vmap.

    >>> print(effective_rank(jnp.eye(3)).round(6))
    3.0
    """
    s = jnp.linalg.svd(as_floats(x), compute_uv=False)
    total = s.sum(axis=-1)
    p = s / jnp.where(total > 0, total, 1)[..., None]
    return jnp.where(total > 0, jnp.exp(jax.scipy.special.entr(p).sum(axis=-1)), 0)


def span_dimension(
    x: Real[ArrayLike, "*batch n d"], tol: Float[ArrayLike, ""] | int = 1e-8
) -> Int[Array, "*batch"]:
    """The dimension of the span of the tokens: singular values above `tol` times the largest.

    Leading axes are kept; works under jit and vmap.

    >>> print(span_dimension(jnp.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])))
    1
    """
    return rank(x, tol)
