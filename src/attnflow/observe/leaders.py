"""Leaders: the few tokens that draw the attention of others."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Real

from attnflow.checks import as_floats


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
