"""Layers that normalise with a trained diagonal, after or before attention."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.attention import Softmax
from attnflow.checks import as_floats, require_directions, require_finite
from attnflow.errors import InputError
from attnflow.retired import keywords_only
from attnflow.spaces import Euclidean
from attnflow.systems.attention import RUN_APART, AttentionSystem
from attnflow.systems.base import Map
from attnflow.systems.options import options_of
from attnflow.systems.presets import Preset, diagonal
from attnflow.weights import RMSNorm


class _Normalised(AttentionSystem):
    """Attention layers with the normalisation `N(y) = D y/|y|`."""

    space = Euclidean()
    kind = Softmax()
    merging_obstacle = RUN_APART

    D: Float[Array, " d"]

    @keywords_only("D and weights are keywords, as in PostNorm(1.0, D=D)")
    @options_of(AttentionSystem)
    def __init__(
        self,
        beta: Float[ArrayLike, ""] | int,
        *,
        D: Float[ArrayLike, " d"],
        **options: Any,
    ):
        super().__init__(beta, **options)
        self.D = jnp.asarray(D, dtype=float)
        if self.D.ndim != 1:
            raise InputError(f"D must be a vector (the diagonal), but its shape is {self.D.shape}.")
        require_finite(self.D, "D")

    def normalise(self, y: Real[Array, "n d"]) -> Float[Array, "n d"]:
        """`D y/|y|`, row by row."""
        return RMSNorm(self.D, None)(0.0, y)

    def restricted(self, basis: Float[Array, "r d"]) -> None:
        """D leads out of every subspace."""
        return None

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Tokens have the dimension of D, and a direction."""
        super().check_start(x)
        if x.shape[-1] != len(self.D):
            raise InputError(f"x0 has d = {x.shape[-1]}, but D has {len(self.D)} entries.")
        require_directions(x)

    @property
    def autonomous(self) -> bool:
        """Whether no weight depends on t."""
        return self.heads.autonomous

    def parameters(self) -> dict[str, Any]:
        """D too."""
        return super().parameters() | {"D": self.D}


class PostNorm(_Normalised, Map, init=False):
    """Post-norm layers, [P] §2.2: the residual step, then normalisation with a diagonal.

        x_i ← D y_i/|y_i|,   y_i = x_i + Δt Σ_j A_ij V x_j

    D = 1 gives the layers of `SA`. For other D the map is not the identity on its ellipsoid even
    at Δt = 0, so there is no flow and `velocity` refuses; `EllipsoidAttention` is the flow on it.
    `PostNormTransformer` has a feed-forward layer too.

    Args:
        D: the diagonal of the normalisation, shape (d,).

    >>> import jax.numpy as jnp
    >>> print(PostNorm(1.0, D=jnp.array([2.0, 1.0])).layer(0, jnp.eye(2), 0.0))
    [[2. 0.]
     [0. 1.]]
    """

    equation: ClassVar[str] = "x_i ← D y_i/|y_i|, y_i = x_i + Δt Σ_j A_ij V x_j"
    source: ClassVar[str] = "[P] §2.2, post-norm"
    attention_only = False
    preset = Preset("beta", 2.0, "sphere", 48.0, 3, extra=diagonal)

    velocity = Map.velocity
    noise_obstacle = Map.noise_obstacle

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The residual step, then `D y/|y|`."""
        x = as_floats(x)
        return self.normalise(x + dt * self.drift(k * dt, x, masses))


class PreNorm(_Normalised, init=False):
    """Pre-norm layers, [P] §2.2: attention sees normalised tokens, the residual stream grows.

        x_i' = Σ_j A_ij V N(x_j),   A from the scores <Q N(x_i), K N(x_j)>,   N(x) = D x/|x|

    Its `Layers` are the Euler steps of this flow on R^d. `PreNormTransformer` has a feed-forward
    layer too.

    Args:
        D: the diagonal of the normalisation, shape (d,).

    >>> import jax.numpy as jnp
    >>> print(PreNorm(0.0, D=jnp.ones(1)).velocity(0.0, jnp.array([[5.0], [3.0]])))
    [[1.]
     [1.]]
    """

    equation: ClassVar[str] = "x_i' = Σ_j A_ij V N(x_j), N(x) = D x/|x|"
    source: ClassVar[str] = "[P] §2.2, pre-norm"
    attention_only = False
    preset = Preset("beta", 2.0, "sphere", 24.0, 3, extra=diagonal)

    def drift(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The drift at the normalised tokens."""
        return super().drift(t, self.normalise(x), masses)

    def attention(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "*heads n n"]:
        """The weights at the normalised tokens."""
        return super().attention(t, self.normalise(x), masses)
