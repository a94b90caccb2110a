"""`Embedding`: from the numbers of tokens to the points where they start."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.weights import LayerNorm, apply


class Embedding(eqx.Module):
    """`x_i = P N(word_i + place_i + type_i)`: the start of token i.

    All but `words` may be left out. `words`, `places` and `types` are tables with a row for each
    token of the vocabulary, each place and each segment of a pair of texts. N is a layer
    normalisation, and P (d, e), with its `bias`, leads from the e entries of the tables to the d of
    the tokens (ALBERT). Places count from 0; where `padding` is given, they count from padding + 1,
    and padding itself stays at that place (RoBERTa).

    >>> start = Embedding(words=jnp.eye(3), places=10 * jnp.eye(3))
    >>> print(start(jnp.array([2, 2])))
    [[10.  0.  1.]
     [ 0. 10.  1.]]
    """

    words: Float[Array, "vocabulary e"]
    places: Float[Array, "most e"] | None = None
    types: Float[Array, "segments e"] | None = None
    norm: LayerNorm | None = None
    projection: Float[Array, "d e"] | None = None
    bias: Float[Array, " d"] | None = None
    padding: int | None = eqx.field(static=True, default=None)

    def __call__(
        self, ids: Int[Array, " n"], types: Int[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The points where the tokens start."""
        x = self.words[ids]
        if self.types is not None:
            x = x + self.types[jnp.zeros_like(ids) if types is None else types]
        if self.places is not None:
            x = x + self.places[self._places(ids)]
        x = x if self.norm is None else self.norm(0.0, x)
        x = apply(self.projection, x)
        return x if self.bias is None else x + self.bias

    @property
    def longest(self) -> int | None:
        """The largest number of tokens that have a place, or None when any number will do."""
        if self.places is None:
            return None
        return len(self.places) - (0 if self.padding is None else self.padding + 1)

    def _places(self, ids: Int[Array, " n"]) -> Int[Array, " n"]:
        if self.padding is None:
            return jnp.arange(len(ids))
        real = (ids != self.padding).astype(ids.dtype)
        return jnp.cumsum(real) * real + self.padding
