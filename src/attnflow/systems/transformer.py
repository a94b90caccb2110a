"""The complete Transformer on the sphere, attention and feed-forward layers."""

from __future__ import annotations

from typing import ClassVar

from attnflow.spaces import Sphere
from attnflow.systems.block import Block
from attnflow.systems.presets import Preset, random_feed_forward


class Transformer(Block, init=False):
    """The complete Transformer on the sphere, [P](2.8).

        x_i' = P⊥_{x_i} ( Σ_h O_h Σ_j A^h_ij (V_h x_j + b_V_h) + b_O + w σ(a x_i + b) + c )
        A^h_ij = softmax_j(β <Q_h x_i + b_Q_h, K_h x_j + b_K_h>)

    All weights may be left out, constant, per layer (`PerLayer`, `Redrawn`) or functions of t: see
    `AffineHeads` and `FeedForward` for their shapes. Without w, a, b, c it is `SA`; with V = 0 it
    is `ResNet` on the sphere. σ is "relu", "gelu" (exact), "gelu_tanh", "silu" or "tanh"; with g
    the feed-forward layer is gated, and with `rotary` scores see places (`Rotary`).

    Its `Layers` are Lie–Trotter split, as Transformers are (`splitting="strang"` is of second
    order): attention, normalisation, feed-forward, normalisation. `PostNormTransformer` and
    `PreNormTransformer` have trained normalisations instead.

    Good values: β = 1, w and a Ginibre of size 1/√d: tokens first cluster, and
    then move together towards where the feed-forward layer leads.

    >>> import jax.numpy as jnp
    >>> system = Transformer(1.0, V=0.0, w=jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    >>> print(system.velocity(0.0, jnp.eye(2)))
    [[0. 0.]
     [1. 0.]]
    """

    equation: ClassVar[str] = "x_i' = P⊥(Σ_h O_h Σ_j A^h_ij V_h x_j + w σ(a x_i + b))"
    source: ClassVar[str] = "[P](2.8)"
    attention_only = False
    space = Sphere()
    preset = Preset("beta", 4.0, "sphere", 12.0, 3, extra=random_feed_forward)

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t."""
        return self.heads.autonomous and self._fed_alike

    @property
    def merging_obstacle(self) -> str | None:
        """None without mask and rotary positions, and with constant weights."""
        if self._fed_alike:
            return self._what_parts_equals
        return "its feed-forward weights change in time, and tokens that have met may part again"
