"""Attention alone, on R^d."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import ArrayLike, Float

from attnflow.attention import Softmax
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset


class PureAttention(AttentionSystem):
    """Attention on R^d without normalisation, [E](1)–(2).

        x_i' = Σ_j A_ij V x_j,   A_ij = e^{β <Q x_i, K x_j>} / Σ_k e^{β <Q x_i, K x_k>}

    For V with an eigenvalue of positive real part tokens run away exponentially: look at them
    through `RescaledAttention`. With V = −I and QᵀK = I they fall to 0 like t^{−1/2} (TC.5).
    Q and K may be rectangular (k × d). Its `Layers` are the discrete Transformer [E](3).

    >>> import jax.numpy as jnp
    >>> print(PureAttention().velocity(0.0, jnp.array([[1.0], [1.0]])))
    [[1.]
     [1.]]
    """

    equation: ClassVar[str] = "x_i' = Σ_j A_ij V x_j, A = softmax(β <Q x_i, K x_j>)"
    source: ClassVar[str] = "[E](1)(2)"
    attention_only = True
    pure_attention = "tokens"
    space = Euclidean()
    kind = Softmax()
    preset = Preset("beta", 1.0, "cube", 3.0, side=2.0)

    @keywords_only("weights are keywords, as in PureAttention(1.0, Q=Q, K=K, V=V)")
    @options_of(AttentionSystem)
    def __init__(self, beta: Float[ArrayLike, ""] | int = 1.0, **options: Any):
        super().__init__(beta, **options)
