"""NOISE: any flow with Brownian noise."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key, Real

from attnflow.checks import as_floats, as_number, require_nonnegative
from attnflow.errors import InputError
from attnflow.spaces import Space
from attnflow.systems.base import Diffusive, Map, System


class Noisy(Diffusive):
    """A system with noise, [P] §9.4: tangential Brownian motion of intensity σ for each token.

        dx_i = velocity_i dt + √(2σ) P_{x_i} dW_i

    P is the projection to the tangent space: nothing on R^d, P⊥ on the sphere, where tokens stay
    to rounding. Without a drift E<x(t), x(0)> = e^{−(d−1)σt} on S^{d−1}. On the circle with β = 0
    tokens lose their consensus at σ = ½ (Problem 7).

    `simulate` needs a key: `simulate(Noisy(SA(1.0), 0.1), x0, ts, key=0)`. It takes `Fixed(dt,
    "heun")` steps by default, "euler", or `Layers`, where each layer ends with a kick.

    >>> from attnflow.systems import SA
    >>> Noisy(SA(beta=1.0), sigma=0.1)
    Noisy(system=SA(beta=1), sigma=0.1)
    """

    equation: ClassVar[str] = "dx_i = velocity_i dt + √(2σ) P⊥ dW_i"
    source: ClassVar[str] = "[P] §9.4"

    system: System
    sigma: Float[Array, ""]
    space: Space
    key: Key[Array, ""] | None

    def __init__(self, system: System, sigma: Real[ArrayLike, ""]):
        if not isinstance(system, System):
            raise InputError(f"system must be a System such as SA(beta=1.0), not {system!r}.")
        other = type(system).encode is not System.encode
        if isinstance(system, (Map, Diffusive)) or other:
            raise InputError(
                f"system must be a flow without noise in its own coordinates, which "
                f"{type(system).__name__} is not."
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

    def diffuse(
        self,
        t: Any,
        x: Float[Array, "n d"],
        w: Float[Array, "n d"],
        masses: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """`√(2σ) P w`."""
        return jnp.sqrt(2 * self.sigma.astype(x.dtype)) * self.space.project(x, w)

    def layer(
        self, k: Any, x: Real[Array, "n d"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n d"]:
        """The layer of the system inside, then a kick."""
        if self.key is None:
            raise InputError("layer of Noisy needs a key: take Noisy(...).drawing(key).")
        x = self.system.layer(k, as_floats(x), dt, masses)
        number = jax.random.fold_in(self.key, jnp.asarray(jnp.round(k), jnp.int32))
        w = jnp.sqrt(jnp.asarray(dt, x.dtype)) * jax.random.normal(number, x.shape, x.dtype)
        return self.retract(x + self.diffuse(k * dt, x, w, masses))

    def positions(self, x: Any) -> Float[Array, "n d"]:
        """Those of the system inside."""
        return self.system.positions(x)

    def retract(self, x: Any) -> Any:
        """As the system inside."""
        return self.system.retract(x)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Those of the system inside."""
        return self.system.breaks

    @property
    def beta(self) -> Float[Array, ""]:
        """The inverse temperature of the system inside, if it has one."""
        return self.system.beta  # type: ignore[attr-defined]

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """As the system inside."""
        self.system.check_start(x)

    def scores_held(self, n: int) -> int:
        """As the system inside."""
        return self.system.scores_held(n)

    def pairs(self, n: int) -> int:
        """As the system inside."""
        return self.system.pairs(n)

    def parameters(self) -> dict[str, Any]:
        """The system and σ."""
        return {"system": self.system, "sigma": self.sigma}
