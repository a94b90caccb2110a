"""Run the layers: one compiled layer in a loop, for one text or a padded batch."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.models.embedding import Embedding
from attnflow.systems import PostNormTransformer, PreNormTransformer


@eqx.filter_jit
def starts(
    embedding: Embedding, ids: Int[Array, "*b n"], types: Int[Array, "*b n"]
) -> Float[Array, "*b n d"]:
    """Where the tokens start.

    Args:
        embedding: the embedding of the model.
        ids: token ids, shape (n,) or (b, n).
        types: the segment of each token, same shape.
    """
    return embedding(ids, types) if ids.ndim == 1 else jax.vmap(embedding)(ids, types)


@eqx.filter_jit
def layers(
    system: PostNormTransformer | PreNormTransformer,
    x: Float[Array, "*b n d"],
    masses: Float[Array, "*b n"] | None,
    dt: Any,
    steps: int,
) -> Float[Array, "*b T n d"]:
    """The states before the first layer and after each, shape (T, n, d) or (b, T, n, d).

    Args:
        system: the layers of a model.
        x: the tokens at the start, shape (n, d) or (b, n, d).
        masses: 1 for tokens and 0 for padding, which no token attends to; None if all count.
        dt: scales the residual update.
        steps: number of layers.
    """

    def one(x: Array, masses: Array | None) -> Array:
        def step(x: Array, k: Array) -> tuple[Array, Array]:
            y = system.layer(k, x, dt, masses)
            return y, y

        _, after = jax.lax.scan(step, x, jnp.arange(steps, dtype=x.dtype))
        return jnp.concatenate([x[None], after])

    return one(x, masses) if x.ndim == 2 else jax.vmap(one)(x, masses)
