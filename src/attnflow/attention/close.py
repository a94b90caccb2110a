"""Attention between keys that have nearly met, with scores so large that rounding would decide."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.attention.masks import Mask


def close_weights(
    q: Float[Array, "n d"],
    k: Float[Array, "n d"],
    masses: Float[Array, " n"] | None = None,
    mask: Mask | None = None,
) -> Float[Array, "n n"]:
    """Softmax of `<q_i, k_j>`, right also between keys that differ in their last digits.

    Scores are huge there, and their rounding would decide. Each row is shifted by its largest
    score before the product, not after it: `<q_i, k_j − k_m>`.

    Args:
        q: queries, shape (n, d), times β.
        k: keys, shape (n, d).
        masses: masses of the tokens, shape (n,); by default 1 each.
        mask: who may attend to whom; by default everybody.

    >>> q = 1e17 * jnp.ones((2, 1))
    >>> print(close_weights(q, jnp.array([[1.0], [1.0 - 2e-16]])).round(6)[0])
    [1. 0.]
    """
    allowed = True if mask is None else mask.rows(jnp.arange(len(q)), len(k))
    nearest = k[jnp.argmax(jnp.where(allowed, q @ k.T, -jnp.inf), axis=1)]
    scores = jnp.sum(q[:, None, :] * (k - nearest[:, None, :]), axis=-1)
    scores = jnp.where(allowed, scores, -jnp.inf)
    weights = jnp.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights if masses is None else weights * masses
    return weights / weights.sum(axis=1, keepdims=True)
