"""`Embedding`: from token ids to the points where the tokens start."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnflow.weights import LayerNorm, apply


class Embedding(eqx.Module):
    """`x_i = P N(word_i + place_i + type_i)`: the start of token i.

    Everything but `words` is optional.

    Attributes:
        words: one row for each token of the vocabulary, shape (vocabulary, e).
        places: one row for each position in the text, shape (most, e).
        types: one row for each segment of a pair of texts, shape (segments, e).
        norm: the layer normalisation N.
        projection: the matrix P, shape (d, e), from the e entries of the tables to the d entries
            of the tokens (ALBERT).
        bias: added after P, shape (d,).
        padding: the id of the padding token. Without it positions count from 0; with it they
            count from padding + 1, and padding tokens get position `padding` (RoBERTa).

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
        """The largest number of tokens that there are positions for; None if there is no limit."""
        if self.places is None:
            return None
        return len(self.places) - (0 if self.padding is None else self.padding + 1)

    def _places(self, ids: Int[Array, " n"]) -> Int[Array, " n"]:
        if self.padding is None:
            return jnp.arange(len(ids))
        real = (ids != self.padding).astype(ids.dtype)
        return jnp.cumsum(real) * real + self.padding
