"""Rotary positions: queries and keys are turned by an angle that grows with a token's place."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, require_count, require_finite, require_positive
from attnflow.errors import InputError


class Rotary(eqx.Module):
    """Turn token i by the angle `i ω_j` in its j-th plane, so that scores see `i − j` alone.

    The planes of a vector of k entries are spanned by the entries j and j + k/2, as in Llama;
    `frequencies` are the k/2 numbers ω_j. Su et al., *RoFormer* (2021), equation (15).

    >>> quarter = Rotary(jnp.array([jnp.pi / 2]))
    >>> print(quarter(jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(12) + 0.0)
    [[1. 0.]
     [0. 1.]]
    """

    frequencies: Float[Array, " p"]

    def __init__(self, frequencies: Real[ArrayLike, " p"]):
        self.frequencies = as_floats(frequencies)
        if self.frequencies.ndim != 1 or not self.frequencies.size:
            raise InputError(
                "frequencies must be a list of k/2 numbers for heads of k rows, but their shape "
                f"is {self.frequencies.shape}."
            )
        require_finite(self.frequencies, "frequencies")

    @property
    def width(self) -> int:
        """The number k of rows of Q and K."""
        return 2 * len(self.frequencies)

    def __call__(self, u: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """The rows of u, each turned by its place; the first one is not."""
        places = jnp.arange(len(u), dtype=self.frequencies.dtype)
        angles = places[:, None] * self.frequencies
        cos, sin = jnp.cos(angles).astype(u.dtype), jnp.sin(angles).astype(u.dtype)
        first, second = jnp.split(u, 2, axis=1)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)


def rotary_frequencies(k: int, theta: float | int = 1e4) -> Float[Array, " p"]:
    """`ω_j = θ^{−2j/k}` for j < k/2, as in Su et al.

    >>> print(rotary_frequencies(4, theta=100.0))
    [1.  0.1]
    """
    if require_count(k, "k", least=2) % 2:
        raise InputError(f"k must be even, as rotations act on planes, but it is {k}.")
    require_positive(theta, "theta")
    return float(theta) ** (-jnp.arange(0, k, 2, dtype=float) / k)


def as_rotary(rotary: Any) -> Rotary | None:
    """A `Rotary`, None, or the one of the given frequencies.

    >>> as_rotary([1.0, 0.1]).width
    4
    """
    return rotary if rotary is None or isinstance(rotary, Rotary) else Rotary(as_floats(rotary))
