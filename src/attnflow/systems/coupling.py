"""Oscillators with a coupling function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from attnflow.errors import InputError, first_line
from attnflow.systems.angles import Oscillators
from attnflow.systems.fields import CouplingField
from attnflow.systems.kernels import Pairwise, in_blocks
from attnflow.systems.presets import Drawn, Preset
from attnflow.weights.couplings import COUPLINGS


class CircleCoupling(Oscillators, Pairwise):
    """Oscillators with a general coupling function, [P](7.5).

        θ_i' = ω_i + (K/n) Σ_j h(θ_j − θ_i)

    The state is θ, of shape `(n, 1)`, and `positions` are `(cos θ, sin θ)`. The sum includes
    j = i, which adds h(0). `weights.couplings` has ready ones whose numbers can change without
    compiling anew: `Exponential(beta)`, with which it is `AngularUSA`, and `Harmonics(sin, cos)`.
    With masses the sum is `Σ_j m_j h` over the total mass.

    Args:
        h: function of an array of angles, entry by entry and of period 2π; `jnp.sin` gives
            `Kuramoto`.
        K: strength of the coupling.
        omega: natural frequencies, shape (n,), or one number for all; 0 by default.

    >>> system = CircleCoupling(jnp.sin, K=2.0)
    >>> print(system.velocity(0.0, jnp.array([[0.0], [jnp.pi / 2]])))
    [[ 1.]
     [-1.]]
    """

    equation: ClassVar[str] = "θ_i' = ω_i + (K/n) Σ_j h(θ_j − θ_i)"
    source: ClassVar[str] = "[P](7.5)"
    drawn: ClassVar = Oscillators.drawn | {"h": Drawn(COUPLINGS, "n")}
    preset = Preset(
        "K",
        1.0,
        "angles",
        8.0,
        of_rows=1,
        extra={"h": {"family": "harmonics", "sin": [0.0, 0.0, 1.0]}},
    )

    h: Callable[..., Any]

    def __init__(
        self,
        h: Callable[..., Any],
        K: Float[ArrayLike, ""] | int,
        omega: Num[ArrayLike, "*n"] | None = None,
    ):
        super().__init__(K, omega)
        self.h = h
        _check_coupling(h)

    def pull(self, theta: Float[Array, " n"], shares: Float[Array, " n"]) -> Float[Array, " n"]:
        """`Σ_j h(θ_j − θ_i)` by shares."""

        def pulls(block: Float[Array, " b"]) -> Float[Array, " b"]:
            return jnp.sum(shares * self.h(theta - block[:, None]), axis=1)

        return in_blocks(pulls, theta)

    def circle_field(self, t: Any) -> CouplingField | None:
        """That of the coupling h, if all tokens have one frequency."""
        return CouplingField(self.h, self.K, self.omega) if self.alike else None

    def parameters(self) -> dict[str, Any]:
        """The function too."""
        return {"h": self.h} | super().parameters()


def _check_coupling(h: Any) -> None:
    if not callable(h):
        raise InputError(f"h must be a function of an angle, such as jnp.sin, not {h!r}.")
    angles = jax.ShapeDtypeStruct((2, 3), float)
    try:
        value = jax.eval_shape(h, angles)
    except Exception as error:
        raise InputError(
            f"h must be a JAX function of an array of angles, such as jnp.sin: {first_line(error)}"
        ) from None
    if getattr(value, "shape", None) != angles.shape:
        raise InputError("h must give one number for each angle of an array, as jnp.sin does.")
