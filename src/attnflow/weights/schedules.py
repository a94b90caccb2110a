"""Weights that change in time. Any function of t will do; `Redrawn` is a new draw every Δ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attnflow.checks import as_floats, require_positive
from attnflow.randomness import AnyKey, as_key


def rounding(dtype: Any) -> float:
    """A time this close below k·Δ, as a part of Δ, counts as k·Δ: sums of steps are not exact."""
    return 1e-4 if dtype == jnp.float32 else 1e-10


class Redrawn(eqx.Module):
    """Per-layer weights: an independent draw on each of [0, Δ), [Δ, 2Δ), …

    `draw` takes `key=` and returns a matrix, like every family; the same seed gives the same
    sequence of matrices. Integration stops at each multiple of Δ, so that no step straddles one.

    >>> from functools import partial
    >>> from attnflow.weights import ginibre
    >>> V = Redrawn(partial(ginibre, 3), every=0.5, seed=0)
    >>> bool((V(0.1) == V(0.4)).all()), bool((V(0.4) == V(0.6)).all())
    (True, False)
    """

    draw: Callable[..., Array] = eqx.field(static=True)
    every: float = eqx.field(static=True)
    key: PRNGKeyArray

    def __init__(
        self,
        draw: Callable[..., Array],
        *,
        every: float | int,
        seed: int | None = None,
        key: AnyKey | None = None,
    ):
        require_positive(every, "every")
        self.draw = draw
        self.every = float(every)
        self.key = as_key(seed, key)

    def __call__(self, t: Any) -> Float[Array, "*heads k d"]:
        """The matrix at time t."""
        t = as_floats(t)
        period = jnp.floor(t / self.every + rounding(t.dtype)).astype(jnp.int32)
        return self.draw(key=jax.random.fold_in(self.key, period))
