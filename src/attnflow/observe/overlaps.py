"""Inner products of tokens: the matrix, and their histogram."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Blocked
from attnflow.checks import as_floats, require_count, require_state
from attnflow.errors import InputError
from attnflow.observe.tangent import require_unit

BLOCK = Blocked().block


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
