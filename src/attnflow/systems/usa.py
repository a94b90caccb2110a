"""USA: unnormalised self-attention on the sphere."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import ArrayLike, Float

from attnflow.attention import Unnormalised
from attnflow.spaces import Sphere
from attnflow.systems.attention import AttentionSystem
from attnflow.weights import Weight


class USA(AttentionSystem):
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

    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int,
        *,
        Q: Weight = None,
        K: Weight = None,
        V: Weight = None,
        mask: Any = None,
        backend: Any = None,
    ):
        super().__init__(Sphere(), Unnormalised(), beta, Q=Q, K=K, V=V, mask=mask, backend=backend)

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t."""
        return self.heads.autonomous

    @property
    def merging_obstacle(self) -> str | None:
        """None without a mask and with constant weights: equal tokens then stay equal."""
        return self._what_parts_equals
