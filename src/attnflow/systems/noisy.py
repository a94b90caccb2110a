"""Any flow with Brownian noise."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key, Real

from attnflow.checks import as_floats, as_number, require_nonnegative
from attnflow.errors import InputError
from attnflow.retired import RenamedAttribute
from attnflow.spaces import Space
from attnflow.systems.base import Cost, Diffusive, System
from attnflow.systems.fields import AttentionField, Field
from attnflow.weights import Breaks


class Noisy(Diffusive):
    """A system with noise, [P] §9.4: tangential Brownian motion of intensity σ for each token.

        dx_i = velocity_i dt + √(2σ) P_{x_i} dW_i

    P is the projection to the tangent space: nothing on R^d, P⊥ on the sphere, where tokens stay
    to rounding. Without a drift E<x(t), x(0)> = e^{−(d−1)σt} on S^{d−1}. On the circle with β = 0
    tokens lose their consensus at σ = ½ (Problem 7).

    `simulate` needs a key: `simulate(Noisy(SA(1.0), 0.1), x0, ts, key=0)`. It takes `Fixed(dt,
    "heun")` steps by default, short enough for the noise and for the drift at the start; or
    "euler", or `Layers`, where each layer ends with a kick.

    >>> from attnflow.systems import SA
    >>> Noisy(SA(beta=1.0), sigma=0.1)
    Noisy(system=SA(beta=1), sigma=0.1)
    """

    equation: ClassVar[str] = "dx_i = velocity_i dt + √(2σ) P⊥ dW_i"
    source: ClassVar[str] = "[P] §9.4"

    beta = RenamedAttribute("inverse_temperature")
    merging_obstacle = "its noise moves equal tokens apart"

    system: System
    sigma: Float[Array, ""]
    space: Space
    key: Key[Array, ""] | None

    def __init__(self, system: System, sigma: Real[ArrayLike, ""]):
        if not isinstance(system, System):
            raise InputError(f"system must be a System such as SA(beta=1.0), not {system!r}.")
        if (why := system.noise_obstacle) is not None:
            raise InputError(
                f"system must be a flow whose state takes noise, but {type(system).__name__} {why}."
            )
        self.system, self.space = system, system.space
        self.sigma = as_number(sigma, "sigma")
        require_nonnegative(self.sigma, "sigma")
        self.key = None

    def velocity(
        self, t: Any, x: Real[Array, "n d"], masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The velocity of the system inside."""
        return self.system.velocity(t, x, masses)

    def apply_noise(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """`√(2σ) P w`."""
        return jnp.sqrt(2 * self.sigma.astype(x.dtype)) * self.space.project(x, w)

    @property
    def additive(self) -> bool:
        """Where the space is flat."""
        return self.space.flat

    def noise_rate(self, x: Float[Array, "*n d"]) -> Float[Array, ""]:
        """`(d − 1)σ` on the sphere, 0 where the space is flat."""
        return self.sigma * self.space.brownian_rate(x.shape[-1])

    def kick(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        dt: Any,
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """Brownian motion of the space with intensity σ."""
        variance = 2 * self.sigma.astype(x.dtype) * dt
        return self.space.brownian(x, jnp.sqrt(2 * self.sigma.astype(x.dtype)) * w, variance)

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The layer of the system inside, then a kick."""
        if self.key is None:
            raise InputError("layer of Noisy needs a key: take Noisy(...).with_key(key).")
        x = self.system.layer(k, as_floats(x), dt, masses)
        number = jax.random.fold_in(self.key, jnp.asarray(jnp.round(k), jnp.int32))
        w = jnp.sqrt(jnp.asarray(dt, x.dtype)) * jax.random.normal(number, x.shape, x.dtype)
        return self.retract(x + self.apply_noise(k * dt, x, w, masses))

    def positions(self, x: Any) -> Float[Array, "n d"]:
        return self.system.positions(x)

    def retract(self, x: Any) -> Any:
        return self.system.retract(x)

    @property
    def breaks(self) -> Breaks:
        return self.system.breaks

    def attention_field(self, t: Any) -> AttentionField | None:
        return self.system.attention_field(t)

    def circle_field(self, t: Any) -> Field | None:
        return self.system.circle_field(t)

    @property
    def intensity(self) -> Float[Array, ""]:
        return self.sigma

    @property
    def inverse_temperature(self) -> Float[Array, ""] | None:
        return self.system.inverse_temperature

    @property
    def attention_system(self) -> Any:
        """That of the system inside: noise has no attention."""
        return self.system.attention_system

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        self.system.check_start(x)

    def cost(self, n: int) -> Cost:
        return self.system.cost(n)

    @property
    def autonomous(self) -> bool:
        """Whether the drift does not depend on t; the noise is the same at all times."""
        return self.system.autonomous

    def parameters(self) -> dict[str, Any]:
        """The system and σ."""
        return {"system": self.system, "sigma": self.sigma}
