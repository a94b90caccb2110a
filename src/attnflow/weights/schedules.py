"""Weights that change in time: `Scheduled` by a function, `Redrawn` every Δ, given `PerLayer`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, Real

from attnflow.checks import (
    NO_NUMBERS,
    as_floats,
    require_count,
    require_finite,
    require_positive,
)
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments
from attnflow.weights.breaks import Breaks, rounding


class Scheduled(eqx.Module):
    """A function of t with its breaks: the times at which integration stops and looks again.

    Any function of t is a weight. A step of an integrator sees it at a few times only: a step over
    a jump is not accurate, and an adaptive one may jump over a narrow bump without seeing it. No
    step straddles a break. Declare one at each jump, and on either side of a bump.

    Args:
        fn: a function of t that returns a weight.
        breaks: times of breaks.
        every: a period: all its multiples are breaks as well.

    >>> pulse = Scheduled(lambda t: jnp.exp(-((t - 5) / 0.01) ** 2), breaks=(4.9, 5.1))
    >>> print(pulse(5.0))
    1.0
    >>> pulse.breaks.times
    (4.9, 5.1)
    """

    fn: Callable[[Any], Array]
    breaks: Breaks = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable[[Any], Array],
        *,
        breaks: Sequence[float | int] = (),
        every: float | int | None = None,
    ):
        if not callable(fn):
            raise InputError(f"fn must be a function of t, not {fn!r}.")
        try:
            times = np.asarray(breaks, dtype=float)
        except NO_NUMBERS:
            raise InputError(f"breaks must be a list of times, not {breaks!r}.") from None
        if times.ndim != 1:
            raise InputError(f"breaks must be a list of times, but its shape is {times.shape}.")
        require_finite(times, "breaks")
        if every is not None:
            require_positive(every, "every")
        self.fn = fn
        periods = () if every is None else (float(every),)
        self.breaks = Breaks(periods, tuple(sorted(times.tolist())))

    def __call__(self, t: Any) -> Float[Array, ...]:
        """The weight at time t; at a break, the one after it."""
        return self.fn(self.breaks.after(as_floats(t)))


class Redrawn(eqx.Module):
    """Per-layer weights: an independent draw on each of [0, Δ), [Δ, 2Δ), …

    Integration stops at each multiple of Δ, so that no step straddles one.

    Args:
        draw: takes `key=` and returns a matrix, like every family.
        every: the period Δ.
        key: an integer or a JAX key; the same key gives the same sequence of matrices.

    >>> from functools import partial
    >>> from attnflow.weights import ginibre
    >>> V = Redrawn(partial(ginibre, 3), every=0.5, key=0)
    >>> bool((V(0.1) == V(0.4)).all()), bool((V(0.4) == V(0.6)).all())
    (True, False)
    """

    draw: Callable[..., Array] = eqx.field(static=True)
    every: float = eqx.field(static=True)
    key: PRNGKeyArray

    @renamed_arguments(seed="key")
    def __init__(
        self,
        draw: Callable[..., Array],
        *,
        every: float | int,
        key: RandomKey,
    ):
        require_positive(every, "every")
        self.draw = draw
        self.every = float(every)
        self.key = as_key(key)

    @property
    def breaks(self) -> Breaks:
        """The multiples of Δ."""
        return Breaks(periods=(self.every,))

    def __call__(self, t: Any) -> Float[Array, "*heads k d"]:
        """The matrix at time t."""
        return self.draw(key=jax.random.fold_in(self.key, _period(t, self.every)))


class GivenLayers(eqx.Module):
    """One given weight for each layer; a subclass says what becomes of it when it is used."""

    layers: Float[Array, "L ..."]
    every: float = eqx.field(static=True)

    def __init__(self, layers: Real[ArrayLike, "L ..."], *, every: float | int = 1.0):
        require_positive(every, "every")
        self.layers = as_floats(layers)
        if self.layers.ndim < 1 or not len(self.layers):
            raise InputError("layers must have a leading axis with at least one layer.")
        require_finite(self.layers, "layers")
        self.every = float(every)

    @property
    def breaks(self) -> Breaks:
        """The multiples of Δ."""
        return Breaks(periods=(self.every,))

    def at(self, t: Any) -> Float[Array, ...]:
        """The weight of the layer at time t, as it was given."""
        return self.layers[jnp.clip(_period(t, self.every), 0, len(self.layers) - 1)]

    @abc.abstractmethod
    def __call__(self, t: Any) -> Float[Array, ...]:
        """The weight at time t."""


class PerLayer(GivenLayers):
    """Given weights, one for each layer: the first on [0, Δ), the next on [Δ, 2Δ), …

    `layers` has a leading axis of layers. After the last one its weight stays. With
    `Layers(dt=Δ)` layer k of a run uses the weight number k, as a trained model does.

    >>> V = PerLayer(jnp.array([[[1.0]], [[2.0]]]))
    >>> print(V(0.0), V(1.0), V(7.0))
    [[1.]] [[2.]] [[2.]]
    """

    def __init__(self, layers: Real[ArrayLike, "L ..."], *, every: float | int = 1.0):
        super().__init__(layers, every=every)

    def __call__(self, t: Any) -> Float[Array, ...]:
        return self.at(t)


class Grouped(GivenLayers):
    """Per-layer weights of heads that are shared by groups: each head stands for `copies` in a row.

    The keys and values of Llama's heads (Ainslie et al., *GQA*, 2023) are kept once, and copied
    for the layer that runs.

    Args:
        layers: the weights, with leading axes of layers and heads.
        copies: how many heads share one.
        every: the period Δ of a layer.

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
        return jnp.repeat(self.at(t), self.copies, axis=0)


def _period(t: Any, every: float) -> Int[Array, ""]:
    """The number of the period that t is in."""
    t = as_floats(t)
    return jnp.floor(t / every + rounding(t.dtype)).astype(jnp.int32)
