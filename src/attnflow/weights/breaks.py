"""When weights jump: at the multiples of periods, and at given times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


def rounding(dtype: Any) -> float:
    """A time this close below k·Δ, as a part of Δ, counts as k·Δ: sums of steps are not exact."""
    return 1e-4 if dtype == jnp.float32 else 1e-10


@dataclass(frozen=True)
class Breaks:
    """The times at which a velocity jumps: all multiples of each of `periods`, and `times`.

    A break is reached a little before its time, by `rounding` of its period or a few units of
    rounding of its time, so that a sum of steps that should end there does.

    >>> breaks = Breaks(periods=(0.5,), times=(0.7,))
    >>> print(breaks.next(jnp.array(0.5)), breaks.next(jnp.array(0.7)), breaks.last(jnp.array(0.6)))
    0.7 1.0 0.5
    """

    periods: tuple[float, ...] = ()
    times: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.periods or self.times)

    def also(self, other: Breaks) -> Breaks:
        """These and those of another."""
        periods = dict.fromkeys(self.periods + other.periods)
        times = sorted({*self.times, *other.times})
        return Breaks(tuple(periods), tuple(times))

    def next(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The first break after t, or infinity."""
        found = jnp.full_like(t, jnp.inf)
        for every in self.periods:
            found = jnp.minimum(found, (self._number(t, every) + 1) * every)
        if self.times:
            times = jnp.asarray(self.times, t.dtype)
            found = jnp.minimum(found, jnp.min(jnp.where(self._passed(t), jnp.inf, times)))
        return found

    def last(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The last break up to t, or minus infinity."""
        found = jnp.full_like(t, -jnp.inf)
        for every in self.periods:
            found = jnp.maximum(found, self._number(t, every) * every)
        if self.times:
            times = jnp.asarray(self.times, t.dtype)
            found = jnp.maximum(found, jnp.max(jnp.where(self._passed(t), times, -jnp.inf)))
        return found

    def reached(self, t: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether t is a break."""
        found = jnp.zeros((), bool)
        for every in self.periods:
            away = jnp.abs(t / every - self._number(t, every))
            found = found | (away <= rounding(t.dtype))
        for time in self.times:
            found = found | (jnp.abs(t - time) <= _units(time, t.dtype))
        return found

    def before(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The time t, or one that is just before it where t is a break."""
        early = t
        for every in self.periods:
            away = jnp.abs(t / every - self._number(t, every))
            margin = 3 * rounding(t.dtype) * every
            early = jnp.where(away <= rounding(t.dtype), jnp.minimum(early, t - margin), early)
        for time in self.times:
            margin = 3 * _units(time, t.dtype)
            early = jnp.where(
                jnp.abs(t - time) <= margin / 3, jnp.minimum(early, t - margin), early
            )
        return early

    def after(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """The time t, or one that is just after it where t is a break."""
        late = self.last(t)
        late = late + 4 * float(jnp.finfo(t.dtype).eps) * jnp.abs(late)
        return jnp.where(self.reached(t), jnp.maximum(t, late), t)

    def count(self, start: float, end: float) -> int:
        """How many breaks there are from start to end, at most."""
        repeated = sum(math.ceil((end - start) / every) + 1 for every in self.periods)
        return repeated + sum(start <= time <= end for time in self.times)

    def _number(self, t: Float[Array, ""], every: float) -> Float[Array, ""]:
        return jnp.floor(t / every + rounding(t.dtype))

    def _passed(self, t: Float[Array, ""]) -> Bool[Array, " k"]:
        margin = np.array([_units(time, t.dtype) for time in self.times])
        return t >= jnp.asarray(np.asarray(self.times) - margin, t.dtype)


def _units(time: float, dtype: Any) -> float:
    """A few units of rounding of a time."""
    return 16 * float(jnp.finfo(dtype).eps) * abs(time)


def breaks_of(*weights: Any) -> Breaks:
    """The breaks that some of the weights declare."""
    found = Breaks()
    for weight in weights:
        found = found.also(getattr(weight, "breaks", Breaks()))
    return found
