"""The Vicsek model."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key, Real

from attnflow.checks import as_floats, as_number, require_nonnegative
from attnflow.errors import InputError
from attnflow.spaces import Euclidean
from attnflow.systems.base import Map, Random
from attnflow.systems.kernels import Pairwise, as_length, in_blocks
from attnflow.systems.presets import Preset


class Vicsek(Map, Pairwise, Random):
    """Vicsek's birds (1995): fixed speed, the mean heading of the neighbours, and angular noise.

        θ_i ← arg Σ_{|x_j − x_i| ≤ r} e^{iθ_j} + η ξ_i,   x_i ← x_i + Δt v (cos θ_i, sin θ_i)

    ξ_i is uniform in [−½, ½] and the plane is a torus of side `box` around 0. The state has rows
    (x, y, θ), an array (n, 3); `positions` are the first two, `headings` the unit vectors. The
    order parameter |Σ e^{iθ_j}|/n falls from 1 to 0 as η grows to 2π. It is a map in time, and
    `simulate` needs a key.

    Args:
        eta: strength of the noise, between 0 and 2π.
        radius: how far a bird sees its neighbours.
        speed: length of a step, per unit of time.
        box: side of the torus.

    >>> birds = Vicsek(eta=0.0).with_key(jax.random.key(0))
    >>> print(birds.layer(0, jnp.array([[0.0, 0.0, 0.0], [0.5, 0.0, 1.0]]), 1.0)[:, 2])
    [0.5 0.5]
    """

    equation: ClassVar[str] = "θ_i ← arg Σ_{|x_j−x_i|≤r} e^{iθ_j} + η ξ_i, x_i += Δt v e^{iθ_i}"
    source: ClassVar[str] = "Vicsek et al. 1995, [E] related work"
    space = Euclidean()
    preset = Preset(
        "eta", 0.3, "cube", 100.0, side=5.0, of_rows=3, extra={"speed": 0.1, "box": 5.0}
    )

    eta: Float[Array, ""]
    radius: Float[Array, ""]
    speed: Float[Array, ""]
    box: Float[Array, ""]
    key: Key[Array, ""] | None

    def __init__(
        self,
        eta: Real[ArrayLike, ""],
        radius: Real[ArrayLike, ""] = 1.0,
        speed: Real[ArrayLike, ""] = 0.03,
        box: Real[ArrayLike, ""] = 10.0,
    ):
        self.eta, self.radius = as_number(eta, "eta"), as_length(radius, "radius")
        self.speed, self.box = as_length(speed, "speed"), as_length(box, "box")
        require_nonnegative(self.eta, "eta")
        self.key = None

    def layer(
        self, k: Any, x: Real[Array, "n 3"], dt: Any, masses: Float[Array, " n"] | None = None
    ) -> Float[Array, "n 3"]:
        """All birds at once."""
        if self.key is None:
            raise InputError("layer of Vicsek needs a key: take Vicsek(...).drawing(key).")
        if masses is not None:
            raise InputError("masses: the birds of Vicsek have none.")
        x = as_floats(x)
        eta, radius, speed, box = (
            a.astype(x.dtype) for a in (self.eta, self.radius, self.speed, self.box)
        )
        place, theta = x[:, :2], x[:, 2]
        flying = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)

        def seen(here: Float[Array, "b 2"]) -> Float[Array, "b 2"]:
            """The sum of the headings near each place."""
            apart = here[:, None] - place
            apart = apart - box * jnp.round(apart / box)
            near = (jnp.sum(apart**2, axis=-1) <= radius**2).astype(x.dtype)
            return near @ flying

        number = jax.random.fold_in(self.key, jnp.asarray(jnp.round(k), jnp.int32))
        turn = eta * jax.random.uniform(number, theta.shape, x.dtype, -0.5, 0.5)
        east, north = in_blocks(seen, place).T
        heading = jnp.arctan2(north, east) + turn
        unit = jnp.stack([jnp.cos(heading), jnp.sin(heading)], axis=-1)
        moved = place + jnp.asarray(dt, x.dtype) * speed * unit
        moved = moved - box * jnp.round(moved / box)
        return jnp.concatenate([moved, heading[:, None]], axis=-1)

    def positions(self, x: Float[Array, "n 3"]) -> Float[Array, "n 2"]:
        """Where the birds are."""
        return x[:, :2]

    def headings(self, x: Float[Array, "*batch n 3"]) -> Float[Array, "*batch n 2"]:
        """Where they fly to: unit vectors, whose `observe.order_parameter` is Vicsek's."""
        return jnp.stack([jnp.cos(x[..., 2]), jnp.sin(x[..., 2])], axis=-1)

    def check_start(self, x: Float[Array, "*batch n d"]) -> None:
        """Rows are (x, y, θ)."""
        if x.shape[-1] != 3:
            raise InputError(f"x0 must have rows (x, y, θ), but they have {x.shape[-1]} entries.")

    def parameters(self) -> dict[str, Any]:
        """Noise, radius, speed and box."""
        return {"eta": self.eta, "radius": self.radius, "speed": self.speed, "box": self.box}
