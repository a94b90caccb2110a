"""Attention on an ellipsoid: normalisation with a trained diagonal, as a flow."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import ArrayLike, Float

from attnflow.attention import Softmax
from attnflow.retired import keywords_only
from attnflow.spaces import Ellipsoid
from attnflow.systems.attention import AttentionSystem
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset, diagonal


class EllipsoidAttention(AttentionSystem):
    """Self-attention on the ellipsoid `|D⁻¹x| = 1`, [P] §2.2.

        x_i' = v_i − <ν_i, v_i> ν_i / |ν_i|²,   v_i = Σ_j A_ij V x_j,   ν_i = D⁻² x_i

    D is the diagonal of a trained layer normalisation; D = 1 gives `SA`. This flow is not the
    limit of normalised layers with D (`PostNorm`): that map is not the identity on its ellipsoid.

    Args:
        D: the half-axes of the ellipsoid, shape (d,), all positive.

    >>> import jax.numpy as jnp
    >>> system = EllipsoidAttention(beta=1.0, D=jnp.array([2.0, 1.0]))
    >>> system.velocity(0.0, jnp.array([[2.0, 0.0], [0.0, 1.0]])).shape
    (2, 2)
    """

    equation: ClassVar[str] = "x_i' = v_i − <ν_i,v_i> ν_i/|ν_i|², v_i = Σ_j A_ij V x_j, ν = D⁻²x"
    source: ClassVar[str] = "[P] §2.2"
    attention_only = True

    kind = Softmax()
    preset = Preset("beta", 4.0, "ellipsoid", 12.0, 3, extra=diagonal)

    space: Ellipsoid

    @keywords_only("D and weights are keywords, as in PostNorm(1.0, D=D)")
    @options_of(AttentionSystem)
    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int,
        *,
        D: Float[ArrayLike, " d"],
        **options: Any,
    ):
        self.space = Ellipsoid(D)
        super().__init__(beta, **options)

    def parameters(self) -> dict[str, Any]:
        """D too."""
        return super().parameters() | {"D": self.space.D}
