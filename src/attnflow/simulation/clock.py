"""`Clock`: a time as the sum of two floats, for steps far below the spacing of floats at it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Clock(eqx.Module):
    """The time `high + low`, where |low| is at most half the spacing of floats at `high`.

    At t = 10³⁰ floats are 10¹⁴ apart; a clock there still counts steps of any length.

    >>> clock = Clock.at(1e30).after(1.0).after(0.5)
    >>> print(clock.until(1e30), clock.high)
    -1.5 1e+30
    """

    high: Float[Array, "*batch"]
    low: Float[Array, "*batch"]

    @classmethod
    def at(cls, t: Any) -> Clock:
        """The clock that shows t."""
        t = jnp.asarray(t, float) if isinstance(t, (int, float)) else t
        return cls(t, jnp.zeros_like(t))

    def after(self, dt: Any) -> Clock:
        """The clock dt later: Knuth's sum, which loses nothing of `high + dt`."""
        total = self.high + dt
        virtual = total - self.high
        lost = (self.high - (total - virtual)) + (dt - virtual)
        low = self.low + lost
        high = total + low
        return Clock(high, low - (high - total))

    def until(self, t: Any) -> Float[Array, ""]:
        """How long it is to the time t."""
        return (t - self.high) - self.low
