"""Self-attention on the sphere."""

from __future__ import annotations

from typing import ClassVar

from attnflow.attention import Softmax
from attnflow.spaces import Sphere
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.presets import Preset


class SA(AttentionSystem, init=False):
    """Self-attention on the sphere, [P](SA); with Q, K, V it is [P](2.3)–(2.4).

        x_i' = P⊥_{x_i} ( Σ_j A_ij V x_j ),   A_ij = e^{β <Q x_i, K x_j>} / Σ_k e^{β <Q x_i, K x_k>}

    With Q = K = V = I tokens attract each other and end in one cluster (T6.1), for large β after
    an exponentially long metastable life as several. V = −I (pass `V=-1.0`) repels them; β = 0
    is [P](4.1). `mask="causal"` lets token i see only j ≤ i. Its `Layers` are the
    residual step and then division by the length.

    Good values: β = 1 (one cluster within t ≈ 10), β = 9 on S² (metastable clusters).

    >>> import jax.numpy as jnp
    >>> SA(beta=4.0).velocity(0.0, jnp.eye(2)).shape
    (2, 2)
    """

    equation: ClassVar[str] = "x_i' = P⊥(Σ_j A_ij V x_j), A = softmax(β <Q x_i, K x_j>)"
    source: ClassVar[str] = "[P](2.3)(2.4)(SA)"
    attention_only = True
    negative_beta = True
    space = Sphere()
    kind = Softmax()
    preset = Preset("beta", 4.0, "sphere", 12.0, 3)
