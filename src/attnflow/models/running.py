"""Layer after layer: one compiled layer in a loop, for one text or a padded batch."""

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
    """The points where the tokens of one text or of each text start."""
    return embedding(ids, types) if ids.ndim == 1 else jax.vmap(embedding)(ids, types)


@eqx.filter_jit
def layers(
    system: PostNormTransformer | PreNormTransformer,
    x: Float[Array, "*b n d"],
    masses: Float[Array, "*b n"] | None,
    dt: Any,
    steps: int,
) -> Float[Array, "*b T n d"]:
    """The states before and after each of the layers; a token of mass 0 is seen by nobody."""

    def one(x: Array, masses: Array | None) -> Array:
        def step(x: Array, k: Array) -> tuple[Array, Array]:
            y = system.layer(k, x, dt, masses)
            return y, y

        _, after = jax.lax.scan(step, x, jnp.arange(steps, dtype=x.dtype))
        return jnp.concatenate([x[None], after])

    return one(x, masses) if x.ndim == 2 else jax.vmap(one)(x, masses)
