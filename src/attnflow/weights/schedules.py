"""Weights that change in time: any function of t, `Redrawn` every Δ, or given `PerLayer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, Real

from attnflow.checks import as_floats, require_count, require_finite, require_positive
from attnflow.errors import InputError
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
        return self.draw(key=jax.random.fold_in(self.key, _period(t, self.every)))


class PerLayer(eqx.Module):
    """Given weights, one for each layer: the first on [0, Δ), the next on [Δ, 2Δ), …

    `layers` has a leading axis of layers. After the last one its weight stays. With
    `Layers(dt=Δ)` layer k of a run uses the weight number k, as a trained model does.

    >>> V = PerLayer(jnp.array([[[1.0]], [[2.0]]]))
    >>> print(V(0.0), V(1.0), V(7.0))
    [[1.]] [[2.]] [[2.]]
    """

    layers: Float[Array, "L ..."]
    every: float = eqx.field(static=True)

    def __init__(self, layers: Real[ArrayLike, "L ..."], *, every: float | int = 1.0):
        require_positive(every, "every")
        self.layers = as_floats(layers)
        if self.layers.ndim < 1 or not len(self.layers):
            raise InputError("layers must have a leading axis with at least one layer.")
        require_finite(self.layers, "layers")
        self.every = float(every)

    def __call__(self, t: Any) -> Float[Array, ...]:
        """The weight at time t."""
        return self.layers[jnp.clip(_period(t, self.every), 0, len(self.layers) - 1)]


class Grouped(PerLayer):
    """Per-layer weights of heads that are shared by groups: each head stands for `copies` in a row.

    The keys and values of Llama's heads (Ainslie et al., *GQA*, 2023) are kept once, and copied
    for the layer that runs.

    >>> K = Grouped(jnp.array([[[[1.0]], [[2.0]]]]), copies=2)
    >>> print(K(0.0).ravel())
    [1. 1. 2. 2.]
    """

    copies: int = eqx.field(static=True)

    def __init__(
        self, layers: Real[ArrayLike, "L H ..."], *, copies: int, every: float | int = 1.0
    ):
        super().__init__(layers, every=every)
        self.copies = require_count(copies, "copies")

    def __call__(self, t: Any) -> Float[Array, ...]:
        """The weight at time t, with all its heads."""
        return jnp.repeat(super().__call__(t), self.copies, axis=0)


def _period(t: Any, every: float) -> Int[Array, ""]:
    """The number of the period that t is in."""
    t = as_floats(t)
    return jnp.floor(t / every + rounding(t.dtype)).astype(jnp.int32)
