"""Sums of tokens of which only the part across each token matters, exact however small it is."""

from __future__ import annotations

from typing import Any

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

MAX_COUNTED = 64
"""Up to this many tokens all pairs are compared sooner than the tokens are sorted."""


def sums_across(
    numerator: Float[Array, "q n"],
    x: Float[Array, "n d"],
    prints: UInt32[Array, "n 2"],
    rows: Int[Array, " q"],
) -> Float[Array, "q d"]:
    """`Σ_j w_ij x_j` for the tokens i in `rows`, without the terms along x_i.

    These are its own and those of all tokens that are equal to it. They would vanish only in the
    projection and up to rounding, at 1e-16, while the forces of a metastable state are smaller than
    that.

    Args:
        numerator: the weights w_ij of these rows, shape (q, n).
        x: tokens, shape (n, d).
        prints: the `fingerprints` of the tokens, shape (n, 2).
        rows: the numbers i of the rows, shape (q,).

    >>> x = jnp.array([[0.6, 0.8], [0.6, 0.8], [0.8, 0.6]])
    >>> print(sums_across(jnp.ones((3, 3)), x, fingerprints(x), jnp.arange(3)))
    [[0.8 0.6]
     [0.8 0.6]
     [1.2 1.6]]
    """
    return _sums(numerator, x, equal_pairs(prints[rows], prints), rows)


def equal_pairs(mine: UInt32[Array, "q 2"], prints: UInt32[Array, "n 2"]) -> Bool[Array, "q n"]:
    """Which tokens equal which, by their fingerprints."""
    return (mine[:, :1] == prints[:, 0]) & (mine[:, 1:] == prints[:, 1])


def equal_mass(
    prints: UInt32[Array, "n 2"], masses: Float[Array, " n"] | None, dtype: Any
) -> Float[Array, " n"]:
    """The mass of the tokens that equal each token, itself among them.

    Pairs of many tokens are looked at only where some are equal, which sorting tells; in a batch,
    where any member has some.

    >>> x = jnp.array([[0.6, 0.8], [0.6, 0.8], [0.8, 0.6]])
    >>> print(equal_mass(fingerprints(x), None, float))
    [2. 2. 1.]
    """
    n = len(prints)
    own = jnp.ones(n, dtype) if masses is None else masses

    def counted() -> Float[Array, " n"]:
        return jnp.where(equal_pairs(prints, prints), own, 0).sum(axis=1)

    if n <= MAX_COUNTED:
        return counted()
    ordered = jnp.sort(prints[:, 0])
    some = eqxi.unvmap_any(ordered[1:] == ordered[:-1])
    return jax.lax.cond(some, counted, lambda: own)


@jax.custom_jvp
def _sums(
    numerator: Float[Array, "q n"],
    x: Float[Array, "n d"],
    equal: Bool[Array, "q n"],
    rows: Int[Array, " q"],
) -> Float[Array, "q d"]:
    return jnp.where(equal, 0, numerator) @ x


@_sums.defjvp
def _sums_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Of the terms left out, those of other tokens are `w_ij (x_j − x_i)`, which is 0 only here."""
    numerator, x, equal, rows = primals
    own = rows[:, None] == jnp.arange(len(x))
    change = jnp.where(equal, 0, tangents[0]) @ x
    change += jnp.where(own, 0, numerator) @ tangents[1]
    change -= jnp.where(equal & ~own, numerator, 0).sum(axis=1)[:, None] * tangents[1][rows]
    return _sums(numerator, x, equal, rows), change


def fingerprints(x: Float[Array, "n d"]) -> UInt32[Array, "n 2"]:
    """64 bits for each token, the same for equal tokens and (but for one in 10¹⁹) only for them.

    >>> a, b, c = fingerprints(jnp.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]))
    >>> bool((a == c).all()), bool((a == b).any())
    (True, False)
    """
    words = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(x) + 0, jnp.uint32)
    words = words.reshape(len(x), -1)
    words = words ^ (words >> 16)  # round numbers differ in their high bits alone
    odd = 2 * np.random.default_rng(0).integers(2**31, size=(2, words.shape[1])) + 1
    prints = [(words * row).sum(axis=1, dtype=jnp.uint32) for row in odd.astype(np.uint32)]
    return jnp.stack(prints, axis=1)
