"""Each token moves towards whom it scores highest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats
from attnflow.errors import InputError
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.kernels import Pairwise, in_blocks
from attnflow.systems.presets import MATRIX, Preset
from attnflow.weights import AbstractHeads, Heads, Weight, apply

ROUNDING = 64
"""Scores that differ by this many units of rounding, of the largest that there could be, tie."""


class Hardmax(Pairwise):
    """The singular (hardmax) dynamics on R^d, [P](9.5)–(9.6): the limit β → ∞ of (9.4).

        z_i' = |C_i|⁻¹ Σ_{j∈C_i} V (z_j − z_i),   C_i = argmax_j <Q z_i, K z_j>

    The field jumps where scores tie. Solutions are those of the differential inclusion
    `z_i' ∈ conv{V (z_j − z_i) : j ∈ C_i}`, in Filippov's sense. They exist and are not unique
    (Example 9.3), so `simulate` runs them with the method `Filippov(rule)`, whose rule selects one.
    `velocity` is the field as it is written, with all that tie to rounding; `Fixed` and `Layers`
    give its Euler steps. With masses the mean over C_i is weighted. Q, K, V are constant and of
    one head.

    With V = I tokens run to a few leaders, vertices of the hull. With V = −I tokens slide along
    ties, as every choice is regretted at once.

    Args:
        Q: query matrix, k × d, or a number times the identity; the identity by default.
        K: key matrix, like Q.
        V: value matrix, d × d, like Q.

    >>> print(Hardmax().velocity(0.0, jnp.array([[1.0], [3.0], [-1.0]])))
    [[2.]
     [0.]
     [0.]]
    """

    equation: ClassVar[str] = "z_i' = mean over argmax_j <Q z_i, K z_j> of V (z_j − z_i)"
    source: ClassVar[str] = "[P](9.5)(9.6)"
    drawn: ClassVar = {"Q": MATRIX, "K": MATRIX, "V": MATRIX}
    preset = Preset(None, 0.0, "cube", 12.0, side=2.0)
    dynamics: ClassVar[str] = "inclusion"

    space = Euclidean()
    autonomous = True
    merging_obstacle = "its field jumps, and tokens that are close may follow different leaders"

    heads: Heads

    @keywords_only("weights are keywords, as in Hardmax(Q=Q, K=K, V=V)")
    def __init__(self, *, Q: Weight = None, K: Weight = None, V: Weight = None):
        for name, W in (("Q", Q), ("K", K), ("V", V)):
            if callable(W):
                raise InputError(f"{name} must be constant for Hardmax, not a function of time.")
        self.heads = Heads(Q, K, V)
        if self.heads.count is not None:
            raise InputError(
                f"Q, K and V must be single matrices for Hardmax, but they have "
                f"{self.heads.count} heads: [P](9.5) has one."
            )

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The field (9.5), the mean over all that tie; many tokens go in blocks of rows."""
        x = as_floats(x)
        heads = self.heads.at(t, x.dtype)
        weights = self._weights(heads, x, masses)
        return apply(heads.V, in_blocks(lambda block: weights(block) @ x - block, x))

    def attention(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n n"]:
        """The weights `m_j / Σ_{k∈C_i} m_k` of j in C_i, and 0 elsewhere."""
        x = as_floats(x)
        return self._weights(self.heads.at(t, x.dtype), x, masses)(x)

    def _weights(
        self, heads: AbstractHeads, x: Float[Array, "n d"], masses: Float[Array, " n"] | None
    ) -> Callable[[Float[Array, "b d"]], Float[Array, "b n"]]:
        """The rows of weights of some tokens, among all the tokens x."""
        m = jnp.ones(len(x), x.dtype) if masses is None else masses.astype(x.dtype)
        keys = jnp.where(m[:, None] > 0, apply(heads.K, x), 0)
        largest = (jnp.linalg.norm(a, axis=1).max() for a in (apply(heads.Q, x), keys))
        tie = ROUNDING * float(jnp.finfo(x.dtype).eps) * math.prod(largest)

        def rows(block: Float[Array, "b d"]) -> Float[Array, "b n"]:
            scores = jnp.where(m > 0, apply(heads.Q, block) @ keys.T, -jnp.inf)
            highest = jnp.where(scores >= scores.max(axis=1, keepdims=True) - tie, m, 0)
            return highest / highest.sum(axis=1, keepdims=True)

        return rows

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens must have the dimension of the weights."""
        if self.heads.dim not in (None, x.shape[-1]):
            raise InputError(
                f"x0 has tokens of dimension d = {x.shape[-1]}, but the weights of Hardmax expect "
                f"d = {self.heads.dim}."
            )

    def parameters(self) -> dict[str, Any]:
        """The weights that are not the identity."""
        named = {"Q": self.heads.Q, "K": self.heads.K, "V": self.heads.V}
        return {name: W for name, W in named.items() if W is not None}
