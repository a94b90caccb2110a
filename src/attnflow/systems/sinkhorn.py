"""Attention whose weights are doubly stochastic, on the sphere and on R^d."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import ArrayLike, Float

from attnflow.attention import Sinkhorn
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean, Sphere
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset


class SinkhornSA(AttentionSystem, init=False):
    """Doubly stochastic attention on the sphere, [P] Remark 3.5: SA with the weights of Sinkhorn.

        x_i' = P⊥_{x_i} ( Σ_j A_ij V x_j ),   A_ij = m_j e^{β <Q x_i, K x_j> + f_i + g_j}

    with f and g such that `Σ_j A_ij = 1` and `Σ_i m_i A_ij = m_j`: every token is heard as much
    as it listens. Where QᵀK is symmetric so is A (for equal masses), and with Q = K = V = I tokens
    gather in one cluster as under SA. `Sinkhorn` in `attnflow.attention` says how exact A is.
    No mask; all n² scores are held.

    Good values: those of SA.

    >>> import jax.numpy as jnp
    >>> A = SinkhornSA(beta=4.0).attention(0.0, jnp.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    >>> print(A.sum(axis=0).round(9))
    [1. 1. 1.]
    """

    equation: ClassVar[str] = "x_i' = P⊥(Σ_j A_ij V x_j), A = Sinkhorn(β <Q x_i, K x_j>)"
    source: ClassVar[str] = "[P] Remark 3.5"
    attention_only = True
    space = Sphere()
    kind = Sinkhorn()
    preset = Preset("beta", 4.0, "sphere", 12.0, 3)


class SinkhornPure(AttentionSystem):
    """Doubly stochastic attention on R^d, [P] Remark 3.5: `PureAttention` with Sinkhorn's weights.

        x_i' = Σ_j A_ij V x_j,   A_ij = m_j e^{β <Q x_i, K x_j> + f_i + g_j}

    with rows and columns as in `SinkhornSA`. As columns sum to 1, the centre of mass follows V
    alone, `x̄' = V x̄`, which softmax attention does not know. Q and K may be rectangular (k × d).

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0], [2.0], [6.0]])
    >>> print(SinkhornPure().velocity(0.0, x).mean().round(9))
    3.0
    """

    equation: ClassVar[str] = "x_i' = Σ_j A_ij V x_j, A = Sinkhorn(β <Q x_i, K x_j>)"
    source: ClassVar[str] = "[P] Remark 3.5"
    attention_only = True
    space = Euclidean()
    kind = Sinkhorn()
    preset = Preset("beta", 1.0, "cube", 2.0, side=2.0)

    @keywords_only("weights are keywords, as in PureAttention(1.0, Q=Q, K=K, V=V)")
    @options_of(AttentionSystem)
    def __init__(self, beta: Float[ArrayLike, ""] | int = 1.0, **options: Any):
        super().__init__(beta, **options)
