"""What all complete Transformers share: attention, then a feed-forward layer, split in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Softmax
from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError, unknown
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.options import options_of
from attnflow.systems.presets import BLOCK_WEIGHT, MATRIX
from attnflow.weights.affine import AffineHeads
from attnflow.weights.breaks import Breaks
from attnflow.weights.feedforward import FeedForward
from attnflow.weights.heads import Weight

SPLITTINGS = ("lie", "strang")


class Block(AttentionSystem):
    """Heads with biases and a feed-forward layer: `x_i' = project(attention_i + w σ(a x_i + b))`.

    Without w, a, b and c there is no feed-forward layer; V = 0 leaves attention out. A layer is
    "lie" split: a residual step of attention, retraction, a residual step of the feed-forward
    layer, retraction, as in practice. "strang" is half a step of attention, a step
    of feed-forward, half a step of attention, each a midpoint step: the error is then O(Δt³).
    Weights that depend on time are those of k·Δt throughout layer k.

    Args:
        beta: inverse temperature β; trained models have 1/√k for queries of k entries.
        Q: query matrix (k, d), or (heads, k, d). Every weight may also be a number (that times the
            identity), a function of t, `PerLayer` or `Redrawn`.
        K: key matrix, like Q.
        V: value matrix (v, d), or (heads, v, d).
        O: output matrix (d, v), or (heads, d, v).
        b_Q: bias of the queries, (k,) or (heads, k).
        b_K: bias of the keys, like b_Q.
        b_V: bias of the values, (v,) or (heads, v).
        b_O: bias of the output, (d,).
        w: second matrix of the feed-forward layer, (d, m).
        a: first matrix of the feed-forward layer, (m, d).
        b: its bias inside σ, (m,).
        c: its bias outside, (d,).
        g: gate (m, d): the layer is then `w (σ(g x) · (a x + b)) + c`.
        sigma: σ: "relu", "gelu" (exact), "gelu_tanh", "silu", "tanh" or a function.
        rotary: angles by which queries and keys turn from place to place, or a `Rotary`.
        splitting: "lie" or "strang".
        mask: who sees whom: "causal", a boolean matrix (n, n), or a `Mask`.
        backend: how sums are computed: see `SA`.
    """

    kind = Softmax()
    drawn: ClassVar = dict.fromkeys(("Q", "K", "V"), MATRIX) | dict.fromkeys(
        ("O", "b_Q", "b_K", "b_V", "b_O", "w", "a", "b", "c", "g"), BLOCK_WEIGHT
    )

    feed_forward: FeedForward | None
    splitting: str = eqx.field(static=True)

    @options_of(AttentionSystem)
    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int = 1.0,
        *,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        O: Weight = None,
        b_Q: Weight = None,
        b_K: Weight = None,
        b_V: Weight = None,
        b_O: Weight = None,
        w: Weight = None,
        a: Weight = None,
        b: Weight = None,
        c: Weight = None,
        g: Weight = None,
        sigma: Any = "relu",
        rotary: Any = None,
        splitting: str = "lie",
        **options: Any,
    ):
        super().__init__(beta, **options)
        self.heads = AffineHeads(Q, K, V, O, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O, rotary=rotary)
        self.feed_forward = as_feed_forward(w, a, b, c, sigma, g)
        if splitting not in SPLITTINGS:
            raise unknown("splitting", splitting, SPLITTINGS)
        self.splitting = splitting

    def push(self, t: Any, x: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """What the feed-forward layer adds to tokens, before any projection."""
        x = as_floats(x)
        return jnp.zeros_like(x) if self.feed_forward is None else self.feed_forward(t, x)

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The tangential part of attention and feed-forward together."""
        x = as_floats(x)
        attention = super().velocity(t, x, masses)
        if self.feed_forward is None:
            return attention
        return attention + self.space.project(x, self.push(t, x))

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The attention sub-layer, then the feed-forward sub-layer; or Strang's order."""
        x, t = as_floats(x), k * dt
        if self.splitting == "lie":
            x = self.space.retract(x + dt * self.drift(t, x, masses))
            return x if self.feed_forward is None else self.space.retract(x + dt * self.push(t, x))

        def attention(x: Array) -> Array:
            return super(Block, self).velocity(t, x, masses)

        def feed_forward(x: Array) -> Array:
            return self.space.project(x, self.push(t, x))

        x = self._midpoint(attention, x, dt / 2)
        x = self._midpoint(feed_forward, x, dt)
        return self._midpoint(attention, x, dt / 2)

    def _midpoint(self, field: Callable[[Array], Array], x: Array, h: Any) -> Array:
        half = self.space.retract(x + h / 2 * field(x))
        return self.space.retract(x + h * field(half))

    @property
    def _fed_alike(self) -> bool:
        """Whether the feed-forward layer, if there is one, is the same at all times."""
        return self.feed_forward is None or self.feed_forward.autonomous

    @property
    def breaks(self) -> Breaks:
        """The times at which a weight jumps."""
        if self.feed_forward is None:
            return self.heads.breaks
        return self.heads.breaks.also(self.feed_forward.breaks)

    def restricted(self, basis: Float[Array, "r d"]) -> None:
        """None: the feed-forward layer leads out of the span of the tokens."""
        return None

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens must have the dimension of every weight."""
        super().check_start(x)
        expected = None if self.feed_forward is None else self.feed_forward.dim
        if expected not in (None, x.shape[-1]):
            raise InputError(
                f"x0 has tokens of dimension d = {x.shape[-1]}, but the feed-forward layer "
                f"(w is d × m, a is m × d) expects d = {expected}."
            )

    def parameters(self) -> dict[str, Any]:
        """Every weight that was given, and σ."""
        named: dict[str, Any] = {"beta": self.beta} | self.heads.parameters()  # type: ignore[attr-defined]
        named |= {} if self.feed_forward is None else self.feed_forward.parameters()
        named |= {} if self.splitting == "lie" else {"splitting": self.splitting}
        more = {"mask": self.mask, "backend": self.backend}
        return named | {name: value for name, value in more.items() if value is not None}

    def __repr__(self) -> str:
        """In short: how many heads, how wide, which σ. All weights are in `parameters()`."""
        layer = self.feed_forward
        said: dict[str, Any] = {"heads": self.heads.count}
        said |= {} if layer is None else {"width": layer.width, "sigma": layer.sigma}
        said |= {"norm": self.parameters().get("norm"), "mask": self.mask}
        said |= {} if self.splitting == "lie" else {"splitting": self.splitting}
        beta = "traced" if is_traced(self.beta) else f"{float(self.beta):g}"
        given = [f"{name}={value!r}" for name, value in said.items() if value is not None]
        return f"{type(self).__name__}({', '.join([f'beta={beta}', *given])})"


def as_feed_forward(
    w: Weight, a: Weight, b: Weight, c: Weight, sigma: Any, g: Weight = None
) -> FeedForward | None:
    """The feed-forward layer of these weights, or None where there is none at all."""
    layer = FeedForward(w, a, b, c, sigma, g=g)
    return None if all(W is None for W in (w, a, b, c, g)) else layer
