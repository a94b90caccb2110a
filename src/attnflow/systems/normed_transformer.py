"""The Transformer as models are trained: blocks that normalise after or before each sub-layer."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, require_directions
from attnflow.errors import InputError
from attnflow.spaces import Euclidean
from attnflow.systems.attention import RUN_APART
from attnflow.systems.base import Map
from attnflow.systems.block import Block
from attnflow.systems.options import options_of
from attnflow.systems.presets import BLOCK_WEIGHT, Preset, random_feed_forward
from attnflow.weights.breaks import Breaks
from attnflow.weights.heads import Weight
from attnflow.weights.norms import Norm, as_norm


class _Normed(Block):
    """Blocks with a normalisation N, of which each sub-layer may have its own gain and shift.

    Args:
        beta: inverse temperature β; trained models have 1/√k for queries of k entries.
        norm: "layer" (to mean 0 and variance 1) or "rms" (to unit length).
        gain: what N multiplies by, (d,), or (2, d) for the two sub-layers.
        shift: what N adds, like gain.
        eps: what N adds to the variance, as trained models do.
        options: the weights and options of a block: see `Transformer`.
    """

    space = Euclidean()
    drawn: ClassVar = Block.drawn | {"gain": BLOCK_WEIGHT, "shift": BLOCK_WEIGHT}
    preset = Preset("beta", 0.5, "gaussian", 24.0, 8, extra=random_feed_forward)
    merging_obstacle = RUN_APART

    norm: Norm

    @options_of(Block)
    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int = 1.0,
        *,
        norm: str = "layer",
        gain: Weight = None,
        shift: Weight = None,
        eps: Any = None,
        **options: Any,
    ):
        super().__init__(beta, **options)
        self.norm = as_norm(norm, gain, shift, eps)

    @property
    def autonomous(self) -> bool:
        """Whether no weight, gain or shift depends on t."""
        return self.heads.autonomous and self._fed_alike and self.norm.autonomous

    @property
    def breaks(self) -> Breaks:
        """The times at which a weight jumps."""
        return super().breaks.also(self.norm.breaks)

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens have the dimension of the gain, and a direction where N divides by length."""
        super().check_start(x)
        if self.norm.dim not in (None, x.shape[-1]):
            raise InputError(
                f"x0 has d = {x.shape[-1]}, but gain and shift are for d = {self.norm.dim}."
            )
        if self.norm.needs_direction:
            require_directions(x)

    def parameters(self) -> dict[str, Any]:
        """The normalisation too."""
        return super().parameters() | {"norm": self.norm.name} | self.norm.parameters()


class PostNormTransformer(_Normed, Map, init=False):
    """Post-norm blocks, as the original Transformer and BERT: normalise after each sub-layer.

        y_i = N₁(x_i + Δt (Σ_h O_h Σ_j A^h_ij (V_h x_j + b_V_h) + b_O))
        x_i ← N₂(y_i + Δt (w σ(a y_i + b) + c))

    N is "layer" or "rms" normalisation, with `gain` and `shift` of shape (d,), or (2, d) for N₁ and
    N₂. A map in time, run by `Layers(dt)`, dt = 1 in practice. With "rms", gain D and no
    feed-forward layer it is `PostNorm`. Weights of each layer are `PerLayer`. With g the
    feed-forward layer is gated, and with `rotary` scores see places (`FeedForward`, `Rotary`).

    >>> import jax.numpy as jnp
    >>> system = PostNormTransformer(V=0.0, w=1.0, norm="rms", sigma="relu")
    >>> print(system.layer(0, jnp.array([[3.0, 4.0]]), 1.0))
    [[0.6 0.8]]
    """

    equation: ClassVar[str] = "y = N₁(x + Δt attention(x)), x ← N₂(y + Δt (w σ(a y + b) + c))"
    source: ClassVar[str] = "[P](2.8), post-norm"
    attention_only = False

    velocity = Map.velocity
    noise_obstacle = Map.noise_obstacle

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The two residual steps, each followed by its normalisation."""
        x, t = as_floats(x), k * dt
        y = self.norm(t, x + dt * self.drift(t, x, masses), 0)
        return y if self.feed_forward is None else self.norm(t, y + dt * self.push(t, y), 1)

    def check_layers(self, dt: Any, start: Any) -> None:
        """There is no flow for Strang's order to approach."""
        if self.splitting != "lie":
            raise InputError("splitting must be 'lie' for post-norm layers: they have no flow.")


class PreNormTransformer(_Normed, init=False):
    """Pre-norm blocks, as GPT-2: each sub-layer sees normalised tokens, the residual stream grows.

        x_i' = Σ_h O_h Σ_j A^h_ij (V_h N₁(x_j) + b_V_h) + b_O + w σ(a N₂(x_i) + b) + c

    with scores of N₁(x). A flow on R^d; its `Layers` are Lie–Trotter split, x first
    moved by attention and then by the feed-forward layer, which is GPT-2's block for dt = 1 with
    `mask="causal"` and σ = "gelu_tanh". N is as in `PostNormTransformer`. With "rms", gain D and no
    feed-forward layer it is `PreNorm`.

    >>> import jax.numpy as jnp
    >>> system = PreNormTransformer(V=0.0, w=1.0, norm="rms", sigma="relu")
    >>> print(system.layer(0, jnp.array([[3.0, 4.0]]), 1.0))
    [[3.6 4.8]]
    """

    equation: ClassVar[str] = "x_i' = Σ_j A_ij V N₁(x_j) + w σ(a N₂(x_i) + b) + c"
    source: ClassVar[str] = "[P](2.8), pre-norm"
    attention_only = False

    def drift(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The attention of the normalised tokens."""
        return super().drift(t, self.norm(t, x, 0), masses)

    def push(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """The feed-forward layer at the normalised tokens."""
        return super().push(t, self.norm(t, x, 1))

    def attention(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "*heads n n"]:
        """The weights at the normalised tokens."""
        return super().attention(t, self.norm(t, x, 0), masses)
