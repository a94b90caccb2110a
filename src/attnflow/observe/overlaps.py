"""The matrix of inner products."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def overlaps(x: Float[ArrayLike, "*batch n d"]) -> Float[Array, "*batch n n"]:
    """`<x_i, x_j>` for all pairs of tokens.

    >>> print(overlaps(jnp.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    x = jnp.asarray(x)
    return x @ jnp.swapaxes(x, -1, -2)
