"""How wide, how aligned and how flat a configuration is, and the overlaps of its tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Real

from attnflow.attention import Blocked
from attnflow.checks import as_floats, require_count, require_state
from attnflow.errors import InputError
from attnflow.observe.attention import rank
from attnflow.observe.tangent import require_unit
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


def overlaps(x: Float[ArrayLike, "*batch n d"]) -> Float[Array, "*batch n n"]:
    """`<x_i, x_j>` for all pairs of tokens. Works under jit and vmap.

    >>> print(overlaps(jnp.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    x = jnp.asarray(x)
    return x @ jnp.swapaxes(x, -1, -2)


def overlap_histogram(
    x: Real[ArrayLike, "n d"], bins: int = 50
) -> tuple[Float[Array, " bins"], Float[Array, " edges"]]:
    """The density of `<x_i, x_j>` over pairs i ≠ j of unit tokens, on equal bins of [−1, 1].

    Returns the density, which integrates to 1, and the bins + 1 edges. Memory is O(n · block);
    works under jit and vmap (`bins` is static).

    >>> density, edges = overlap_histogram(jnp.eye(3), bins=4)
    >>> print(density, edges)
    [0. 0. 2. 0.] [-1.  -0.5  0.   0.5  1. ]
    """
    require_state(x)
    x = as_floats(x)
    require_unit(x)
    if len(x) < 2:
        raise InputError("x must have at least 2 tokens: the histogram is over pairs.")
    bins = require_count(bins, "bins")
    counts = _counts(x, bins)
    edges = jnp.linspace(-1, 1, bins + 1, dtype=x.dtype)
    return counts * (bins / (2 * len(x) * (len(x) - 1))), edges


@jax.jit(static_argnames="bins")
def _counts(x: Float[Array, "n d"], bins: int) -> Float[Array, " bins"]:
    """How many ordered pairs i ≠ j are in each bin; what rounding puts beyond ±1 is in the last."""

    def row(i: Array) -> Array:
        place = jnp.floor((x @ x[i] + 1) * (bins / 2)).astype(int)
        place = jnp.clip(place, 0, bins - 1).at[i].set(bins)
        return jnp.zeros(bins, x.dtype).at[place].add(1, mode="drop")

    index = jnp.arange(len(x))
    return jax.lax.map(row, index, batch_size=min(BLOCK, len(x))).sum(axis=0)
