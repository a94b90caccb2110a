"""Unnormalised self-attention on the sphere."""

from __future__ import annotations

from typing import ClassVar

from attnflow.attention import Unnormalised
from attnflow.spaces import Sphere
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.presets import Preset


class USA(AttentionSystem, init=False):
    """Unnormalised self-attention on the sphere, [P](USA).

        x_i' = P⊥_{x_i} ( (1/n) Σ_j e^{β <Q x_i, K x_j>} V x_j )

    With Q = K = V = I this is the gradient flow `x' = n ∇E_β` of the interaction energy ([P]
    R3.8). The factor is n, or the total mass, under a mask too. Speeds grow like e^β.

    >>> import jax.numpy as jnp
    >>> USA(beta=1.0).velocity(0.0, jnp.eye(2)).shape
    (2, 2)
    """

    equation: ClassVar[str] = "x_i' = P⊥((1/n) Σ_j e^{β <Q x_i, K x_j>} V x_j)"
    source: ClassVar[str] = "[P](USA)"
    attention_only = True
    negative_beta = True
    space = Sphere()
    kind = Unnormalised()
    preset = Preset("beta", 2.0, "sphere", 6.0, 3)
