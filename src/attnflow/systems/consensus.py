"""The equation (9.4), whose limit of zero temperature is the hardmax flow."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Softmax, attend
from attnflow.checks import as_floats
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.attention import RUN_APART, AttentionSystem
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset
from attnflow.weights import AbstractHeads, apply


class ConsensusAttention(AttentionSystem):
    """Attention to differences on R^d, [P](9.4): rescaled attention without the factors e^{tV}.

        z_i' = Σ_j A_ij V (z_j − z_i),   A_ij = e^{β <Q z_i, K z_j>} / Σ_k e^{β <Q z_i, K z_k>}

    As β → ∞ it becomes `Hardmax`, and for V = λI `RescaledAttention` at time t is this with the
    inverse temperature β e^{2λt}. With V = I the convex hull of the tokens shrinks. Several heads
    add up.

    Good values: V = I and β from 1 to 10⁴ times the inverse square of the size of the cloud.

    >>> import jax.numpy as jnp
    >>> print(ConsensusAttention(beta=0.0).velocity(0.0, jnp.array([[0.0], [4.0]])))
    [[ 2.]
     [-2.]]
    """

    equation: ClassVar[str] = "z_i' = Σ_j A_ij V (z_j − z_i), A = softmax(β <Q z_i, K z_j>)"
    source: ClassVar[str] = "[P](9.4)"
    attention_only = False
    space = Euclidean()
    kind = Softmax()
    preset = Preset("beta", 1.0, "cube", 10.0, side=4.0)
    merging_obstacle = RUN_APART

    @keywords_only("weights are keywords, as in PureAttention(1.0, Q=Q, K=K, V=V)")
    @options_of(AttentionSystem)
    def __init__(self, beta: Float[ArrayLike, ""] | int = 1.0, **options: Any):
        super().__init__(beta, **options)

    def drift(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """`Σ_h Σ_j A^h_ij V_h (z_j − z_i)` at z = x."""
        x = as_floats(x)

        def one(head: AbstractHeads) -> Array:
            means = attend(
                apply(head.Q, x),
                apply(head.K, x),
                x,
                beta=self.beta.astype(x.dtype),
                mask=self.mask,
                masses=masses,
                backend=self._backend(x),
            )
            return apply(head.V, means - x)

        return self.heads.at(t, x.dtype).sum(one)

    def restricted(self, basis: Float[Array, "r d"]) -> AttentionSystem | None:
        """With QBᵀ and KBᵀ for Q and K, where V keeps the subspace: differences stay in it."""
        return self._with_restricted_heads(basis)

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t."""
        return self.heads.autonomous
