"""Noise for diffrax: a term whose control is a Brownian increment for each step."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.systems import Diffusive


class Noise(diffrax.AbstractTerm):
    """The noise of a system: `diffuse` applied to an increment that the step's number draws.

    The number of the step from t0 is t0/dt, so that a run in pieces sees the motion of the whole,
    and one that is continued sees new noise.
    """

    system: Diffusive
    masses: Float[Array, " n"] | None
    dt: Float[Array, ""]
    shape: tuple[int, ...] = eqx.field(static=True)

    def vf(self, t: Any, y: Any, args: Any) -> Any:
        """Where the noise is felt: the time and the state."""
        return t, y

    def contr(self, t0: Any, t1: Any, **kwargs: Any) -> Float[Array, "n d"]:
        """The increment from t0 to t1, which is one step: N(0, t1 − t0) for each coordinate."""
        key = jax.random.key(0) if self.system.key is None else self.system.key
        number = jnp.round(t0 / self.dt).astype(jnp.int32)
        size = jnp.sqrt(jnp.asarray(t1 - t0))
        return size * jax.random.normal(jax.random.fold_in(key, number), self.shape, size.dtype)

    def prod(self, vf: Any, control: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """What the increment moves."""
        t, x = vf
        return self.system.diffuse(t, x, control.astype(x.dtype), self.masses)
