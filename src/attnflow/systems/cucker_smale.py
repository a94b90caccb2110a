"""Cucker–Smale flocking."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, as_number, require_nonnegative
from attnflow.errors import InputError
from attnflow.spaces import Euclidean
from attnflow.systems.kernels import Pairwise, as_shares, in_blocks
from attnflow.systems.presets import Preset


class CuckerSmale(Pairwise):
    """Cucker and Smale's birds, which align their velocities (2007).

        x_i' = v_i,   v_i' = (K/n) Σ_j (1 + |x_i − x_j|²)^{−b} (v_j − v_i)

    The state has rows (x, v), an array (n, 2d); `positions` are the x and `velocities` the v. The
    mean velocity is kept. For b ≤ ½ all velocities become equal and the flock stays together from
    every start; for b > ½ only if birds are close enough, or alike enough, at first. With masses
    K/n Σ_j is K Σ_j m_j / Σ m.

    >>> flock = CuckerSmale(K=1.0, b=0.25)
    >>> print(flock.velocity(0.0, jnp.array([[0.0, 1.0], [0.0, -1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """

    equation: ClassVar[str] = "x_i' = v_i, v_i' = (K/n) Σ_j (1+|x_i−x_j|²)^{−b} (v_j − v_i)"
    source: ClassVar[str] = "Cucker–Smale 2007, [E] related work"
    space = Euclidean()
    preset = Preset("K", 2.0, "gaussian", 8.0, of_rows=4)
    noise_obstacle = "has velocities in its state, and noise would move places as well"
    autonomous = True
    merging_obstacle = "birds that meet may have different velocities"

    K: Float[Array, ""]
    b: Float[Array, ""]

    def __init__(self, K: Real[ArrayLike, ""] = 1.0, b: Real[ArrayLike, ""] = 0.25):
        self.K, self.b = as_number(K, "K"), as_number(b, "b")
        require_nonnegative(self.b, "b")

    def velocity(
        self, t: Any, x: Real[Array, "n m"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n m"]:
        """(v, the pull of the others)."""
        x = as_floats(x)
        place, v = jnp.split(x, 2, axis=-1)
        b, shares = self.b.astype(x.dtype), as_shares(masses, x)

        def pull(birds: Float[Array, "b m"]) -> Float[Array, "b d"]:
            here, own = jnp.split(birds, 2, axis=-1)
            squared = jnp.sum((here[:, None] - place) ** 2, axis=-1)
            weights = (1 + squared) ** -b * shares
            return weights @ v - weights.sum(axis=1, keepdims=True) * own

        return jnp.concatenate([v, self.K.astype(x.dtype) * in_blocks(pull, x)], axis=-1)

    def positions(self, x: Float[Array, "n m"]) -> Float[Array, "n d"]:
        """The places of the birds."""
        return x[:, : x.shape[-1] // 2]

    def velocities(self, x: Float[Array, "n m"]) -> Float[Array, "n d"]:
        """Their velocities."""
        return x[:, x.shape[-1] // 2 :]

    def check_start(self, x: Float[Array, "*batch n m"]) -> None:
        """Rows are pairs (x, v)."""
        if x.shape[-1] % 2:
            raise InputError(
                f"x0 must have rows (x, v), an even number of columns, but has {x.shape[-1]}."
            )

    def parameters(self) -> dict[str, Any]:
        """K and b."""
        return {"K": self.K, "b": self.b}
