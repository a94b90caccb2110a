"""Hegselmann and Krause's bounded confidence: everybody moves to the mean of whom they trust."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats
from attnflow.spaces import Euclidean
from attnflow.systems.base import Map
from attnflow.systems.kernels import (
    Pairwise,
    as_length,
    in_blocks,
    indicator,
    require_whole_steps,
    squared_distances,
    weighted_means,
)
from attnflow.systems.presets import Preset


class HegselmannKrause(Map, Pairwise):
    """Bounded confidence on R^d, a map in time (Hegselmann and Krause, 2002; [E] related work).

        x_i ← mean of all x_j with |x_i − x_j| ≤ radius

    The tokens come to rest after finitely many steps, in clusters that no longer see each other:
    in one dimension, where their order never changes, these are more than a radius apart. With
    masses the mean is weighted by m_j. One layer is one update, so `Layers(1.0)` is its method.

    Good values: `radius=1.0` with tokens in a cube of side 5 to 10 leaves about side/2.2 clusters
    on the line.

    >>> import jax.numpy as jnp
    >>> print(HegselmannKrause(1.0).layer(0, jnp.array([[0.0], [1.0], [3.0]]), 1.0))
    [[0.5]
     [0.5]
     [3. ]]
    """

    equation: ClassVar[str] = "x_i ← mean of x_j with |x_i − x_j| ≤ radius"
    source: ClassVar[str] = "[E] related work, Hegselmann–Krause"
    space = Euclidean()
    preset = Preset("radius", 1.0, "cube", 20.0, side=6.0)

    radius: Float[Array, ""]

    def __init__(self, radius: Float[ArrayLike, ""] | int):
        self.radius = as_length(radius, "radius")

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """Everybody at the mean of their neighbours; k and dt do not matter."""
        x = as_floats(x)

        def means(block: Float[Array, "b d"]) -> Float[Array, "b d"]:
            return weighted_means(indicator(squared_distances(block, x, self.radius)), x, masses)

        return in_blocks(means, x)

    def check_layers(self, dt: Any, start: Any) -> None:
        """One layer is one update."""
        require_whole_steps(self, dt)

    def restricted(self, basis: Float[Array, "r d"]) -> HegselmannKrause:
        """Itself: only distances matter."""
        return self

    def parameters(self) -> dict[str, Any]:
        """The radius."""
        return {"radius": self.radius}
