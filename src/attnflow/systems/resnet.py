"""A residual network, or neural ODE, that moves each token by itself."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import Array, Float, Real

from attnflow.errors import InputError
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.base import Cost, System
from attnflow.systems.presets import BLOCK_WEIGHT, Preset, random_feed_forward
from attnflow.weights.breaks import Breaks
from attnflow.weights.feedforward import FeedForward
from attnflow.weights.heads import Weight


class ResNet(System):
    """A residual network as a flow on R^d, the neural ODE [P](2.1)–(2.2).

        x_i' = w σ(a x_i + b) + c

    Tokens do not see each other, so distinct ones stay distinct, and masses change nothing. Every
    weight may be left out, be a number, or depend on t (`PerLayer`, `Redrawn`). Its `Layers` are
    the residual network itself, `x ← x + Δt w σ(a x + b)`.

    Args:
        w: outer matrix, shape (d, m).
        a: inner matrix, shape (m, d).
        b: inner bias, shape (m,).
        c: outer bias, shape (d,).
        sigma: σ: "relu", "gelu", "gelu_tanh", "silu", "tanh" or a function.

    >>> import jax.numpy as jnp
    >>> print(ResNet(w=-1.0, sigma="tanh").velocity(0.0, jnp.array([[0.0, 100.0]])))
    [[-0. -1.]]
    """

    equation: ClassVar[str] = "x_i' = w σ(a x_i + b) + c"
    source: ClassVar[str] = "[P](2.1)(2.2)"

    space = Euclidean()
    noise_obstacle = None
    merging_obstacle = "its tokens never meet: distinct ones stay distinct"

    feed_forward: FeedForward

    drawn: ClassVar = dict.fromkeys(("w", "a", "b", "c"), BLOCK_WEIGHT)
    preset = Preset(None, 0.0, "cube", 6.0, side=4.0, extra=random_feed_forward)

    @keywords_only("weights are keywords, as in ResNet(w=w, a=a)")
    def __init__(
        self,
        *,
        w: Weight = None,
        a: Weight = None,
        b: Weight = None,
        c: Weight = None,
        sigma: Any = "relu",
    ):
        self.feed_forward = FeedForward(w, a, b, c, sigma)

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The perceptron at each token."""
        return self.feed_forward(t, x)

    @property
    def breaks(self) -> Breaks:
        """The times at which a weight jumps."""
        return self.feed_forward.breaks

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens must have the dimension of the weights."""
        if self.feed_forward.dim not in (None, x.shape[-1]):
            raise InputError(
                f"x0 has tokens of dimension d = {x.shape[-1]}, but w (d × m) and a (m × d) expect "
                f"d = {self.feed_forward.dim}."
            )

    def cost(self, n: int) -> Cost:
        """No pairs: tokens do not see each other."""
        return Cost(0, 0)

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t."""
        return self.feed_forward.autonomous

    def parameters(self) -> dict[str, Any]:
        """The weights that are not left out, and σ."""
        return self.feed_forward.parameters()
