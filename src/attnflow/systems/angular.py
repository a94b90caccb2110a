"""Self-attention on the circle, written in angles."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from attnflow.systems.angles import AngleSystem, as_angles
from attnflow.systems.attention import as_beta
from attnflow.systems.fields import AttentionField
from attnflow.systems.kernels import Pairwise, as_shares, in_blocks
from attnflow.systems.presets import Preset


class AngularAttention(AngleSystem, Pairwise):
    """`θ_i' = c_i Σ_j m_j e^{β (cos(θ_j − θ_i) − 1)} sin(θ_j − θ_i)`; a subclass gives c_i.

    Differences of angles come first, so that close tokens keep all the digits of their distance and
    a token's own term is exactly 0.
    """

    autonomous = True
    merging_obstacle = (
        "its tokens are angles, which may meet a whole turn apart: take SA or USA with d = 2"
    )

    beta: Float[Array, ""]

    def __init__(self, beta: Float[ArrayLike, ""] | int):
        self.beta = as_beta(beta)

    @property
    def inverse_temperature(self) -> Float[Array, ""]:
        return self.beta

    @property
    @abc.abstractmethod
    def normalised(self) -> bool:
        """Whether c_i is one over the sum of the weights."""

    def circle_field(self, t: Any) -> AttentionField:
        """That of SA or USA on the circle."""
        return AttentionField(self.beta, None, self.normalised)

    @abc.abstractmethod
    def factor(
        self, weights: Float[Array, "b n"], log_scale: Float[Array, " b"]
    ) -> Float[Array, " b"]:
        """The c_i, from the weights that the sines have in the sum, all without `e^{log_scale}`."""

    def velocity(
        self, t: Any, x: Num[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The speeds of the angles."""
        theta = as_angles(x)
        beta = self.beta.astype(theta.dtype)
        shares = as_shares(masses, theta)

        def speeds(block: Float[Array, " b"]) -> Float[Array, " b"]:
            ahead = theta - block[:, None]
            # cos − 1 loses the digits of a small angle, −2 sin² of its half does not.
            exponents = -2 * beta * jnp.sin(ahead / 2) ** 2
            largest = jnp.where(beta < 0, exponents.max(axis=1), 0)
            weights = shares * jnp.exp(exponents - largest[:, None])
            pulls = jnp.sum(weights * jnp.sin(ahead), axis=1)
            return self.factor(weights, beta + largest) * pulls

        return in_blocks(speeds, theta)[:, None]

    def parameters(self) -> dict[str, Any]:
        return {"beta": self.beta}


class AngularSA(AngularAttention, init=False):
    """`SA` on the circle in angles, [P](7.1) normalised.

        θ_i' = Σ_j e^{β cos(θ_j − θ_i)} sin(θ_j − θ_i) / Σ_j e^{β cos(θ_j − θ_i)}

    The state is θ, of shape `(n, 1)`, and `positions` are `(cos θ, sin θ)`: the same flow as SA
    with d = 2. Its `Layers` are Euler steps of the angles, not those of `SA`. For the long life of
    metastable clusters, and for very many tokens, take `SA`, which can merge tokens and sum through
    harmonics.
    Good values: those of `SA`, such as β = 9, where a few clusters live long.

    >>> print(AngularSA(beta=0.0).velocity(0.0, jnp.array([[0.0], [jnp.pi / 2]])))
    [[ 0.5]
     [-0.5]]
    """

    equation: ClassVar[str] = "θ_i' = Σ_j A_ij sin(θ_j − θ_i), A = softmax(β cos(θ_j − θ_i))"
    source: ClassVar[str] = "[P](7.1)"
    preset = Preset("beta", 4.0, "angles", 12.0, of_rows=1)
    normalised = True

    def factor(
        self, weights: Float[Array, "b n"], log_scale: Float[Array, " b"]
    ) -> Float[Array, " b"]:
        """1 over the sum of the weights."""
        return 1 / weights.sum(axis=1)


class AngularUSA(AngularAttention, init=False):
    """`USA` on the circle in angles, [P](7.1).

        θ_i' = (1/n) Σ_j e^{β cos(θ_j − θ_i)} sin(θ_j − θ_i)

    The state is θ, of shape `(n, 1)`, and `positions` are `(cos θ, sin θ)`: the same flow as USA
    with d = 2. At β = 0 it is `Kuramoto(K=1)`. Speeds grow like e^β.

    >>> print(AngularUSA(beta=0.0).velocity(0.0, jnp.array([[0.0], [jnp.pi / 2]])))
    [[ 0.5]
     [-0.5]]
    """

    equation: ClassVar[str] = "θ_i' = (1/n) Σ_j e^{β cos(θ_j − θ_i)} sin(θ_j − θ_i)"
    source: ClassVar[str] = "[P](7.1)"
    preset = Preset("beta", 2.0, "angles", 6.0, of_rows=1)
    normalised = False

    def factor(
        self, weights: Float[Array, "b n"], log_scale: Float[Array, " b"]
    ) -> Float[Array, " b"]:
        return jnp.exp(log_scale)
