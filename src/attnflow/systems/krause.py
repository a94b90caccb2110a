"""Krause's model of opinions: everybody drifts to a weighted mean of those nearby."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError, unknown
from attnflow.spaces import Euclidean
from attnflow.systems.kernels import (
    PHI,
    Pairwise,
    as_length,
    in_blocks,
    squared_distances,
    weighted_means,
)
from attnflow.systems.presets import Preset


class Krause(Pairwise):
    """Krause's model on R^d ([E], related work).

        x_i' = Σ_j a_ij (x_j − x_i),   a_ij = φ(|x_i−x_j|²) / Σ_k φ(|x_i−x_k|²)

    φ is "gaussian" (e^{−s/2}), "indicator" (1 for s ≤ 1), "cauchy" (1/(1+s)), or a function of
    s = |x_i−x_j|²/radius² with φ(0) > 0. The hull of the tokens shrinks, and they gather in
    clusters: all in one if φ is positive everywhere, though for "gaussian" distant ones only after
    e^{distance²/2}; with "indicator" in groups that no longer see each other. With masses, weights
    are proportional to m_j. With "indicator" the velocity jumps, so `Fixed(dt)` is the better
    method; its `Layers(1.0)` are `HegselmannKrause`, and those of "gaussian" the blurring
    `MeanShift`.

    Good values: tokens a few radii apart (`radius=1.0` in a cube of side 6).

    >>> print(Krause("cauchy").velocity(0.0, jnp.array([[0.0], [1.0]])).round(4))
    [[ 0.3333]
     [-0.3333]]
    """

    equation: ClassVar[str] = "x_i' = Σ_j a_ij (x_j − x_i), a_ij ∝ φ(|x_i−x_j|²)"
    source: ClassVar[str] = "[E] related work, Krause"
    space = Euclidean()
    preset = Preset("radius", 1.0, "cube", 100.0, side=10.0)
    noise_obstacle = None
    autonomous = True
    merging_obstacle = "tokens that are close may see different neighbours"

    phi: str | Callable[..., Any] = eqx.field(static=True)
    radius: Float[Array, ""]

    def __init__(
        self,
        phi: str | Callable[..., Any] = "gaussian",
        *,
        radius: Float[ArrayLike, ""] | int = 1.0,
    ):
        self.phi = _checked(phi)
        self.radius = as_length(radius, "radius")

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The way to the weighted mean."""
        x = as_floats(x)
        phi = PHI[self.phi] if isinstance(self.phi, str) else self.phi

        def means(block: Float[Array, "b d"]) -> Float[Array, "b d"]:
            return weighted_means(phi(squared_distances(block, x, self.radius)), x, masses)

        return in_blocks(means, x) - x

    def restricted(self, basis: Float[Array, "r d"]) -> Krause:
        """Itself: only distances matter."""
        return self

    def parameters(self) -> dict[str, Any]:
        """φ and the radius."""
        return {"phi": self.phi, "radius": self.radius}


def _checked(phi: Any) -> str | Callable[..., Any]:
    """The name of a kernel, or a function that is positive at 0."""
    if isinstance(phi, str):
        if phi not in PHI:
            raise unknown("phi", phi, PHI)
        return phi
    if not callable(phi):
        raise InputError(f"phi must be a name ({', '.join(PHI)}) or a function, not {phi!r}.")
    at_zero = phi(jnp.zeros(()))
    if not is_traced(at_zero) and not 0 < float(at_zero) < float("inf"):
        raise InputError(
            f"phi must be positive and finite at 0, where a token sees itself, but phi(0) is "
            f"{float(at_zero):g}."
        )
    return phi
