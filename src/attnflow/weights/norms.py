"""Normalisations of a token: by its length, or by its mean and deviation."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from attnflow.checks import as_floats, as_number, require_finite, require_nonnegative
from attnflow.errors import InputError, unknown
from attnflow.spaces import unit_rows
from attnflow.weights.breaks import Breaks, breaks_of
from attnflow.weights.heads import Weight, admit, at_time, constant, shape_of


class Norm(eqx.Module):
    """`N(y) = gain · standard(y) + shift`, token by token.

    Gain and shift are (d,), or (2, d) with one row for each sub-layer (attention, feed-forward); a
    number stands for equal entries, and a function of t may return any of these.
    """

    name: eqx.AbstractClassVar[str]
    gain: Any
    shift: Any

    @property
    @abc.abstractmethod
    def needs_direction(self) -> bool:
        """Whether a token at the origin has no value."""

    @abc.abstractmethod
    def gain_to_root(self, d: int) -> float | None:
        """The gain with which tokens of R^d have length √d; None is 1."""

    def __init__(self, gain: Weight = None, shift: Weight = None):
        self.gain, self.shift = admit(gain, "gain"), admit(shift, "shift")
        for name, shape in (("gain", shape_of(self.gain)), ("shift", shape_of(self.shift))):
            if shape and (len(shape) > 2 or (len(shape) == 2 and shape[0] != 2)):
                raise InputError(
                    f"{name} must be (d,), or (2, d) with a row for each sub-layer, not {shape}."
                )

    @abc.abstractmethod
    def standard(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The tokens without gain and shift."""

    def __call__(self, t: Any, y: Real[Array, "n d"], sublayer: int = 0) -> Float[Array, "n d"]:
        """The normalised tokens that a sub-layer sees or leaves.

        Args:
            t: the time, for weights that change in it.
            y: tokens, shape (n, d).
            sublayer: 0 for attention, 1 for the feed-forward layer.
        """
        y = as_floats(y)
        gain, shift = (at_time(W, t, y.dtype) for W in (self.gain, self.shift))
        out = self.standard(y)
        if gain is not None:
            out = out * (gain[sublayer] if gain.ndim == 2 else gain)
        if shift is not None:
            out = out + (shift[sublayer] if shift.ndim == 2 else shift)
        return out

    @property
    def dim(self) -> int | None:
        """The dimension d of the tokens, or None when any will do."""
        shapes = (shape_of(self.gain), shape_of(self.shift))
        return next((shape[-1] for shape in shapes if shape), None)

    @property
    def autonomous(self) -> bool:
        """Whether no weight is a function of t."""
        return constant(self.gain, self.shift)

    @property
    def breaks(self) -> Breaks:
        """The times at which gain or shift jumps."""
        return breaks_of(self.gain, self.shift)

    def parameters(self) -> dict[str, Any]:
        """Gain and shift, where given."""
        return {name: W for name, W in vars(self).items() if W is not None}


class RMSNorm(Norm):
    """`gain · y/√(|y|² + eps) + shift`, [P] §2.2: the sphere for gain 1 and without eps.

    Models divide by `√(mean y² + ε)` instead, which is a gain of √d and eps = d ε here.

    Args:
        gain: what N multiplies by: a number, (d,), or (2, d) with one row for each sub-layer; by
            default 1.
        shift: what N adds, like gain; by default 0.
        eps: what is added to |y|²; by default nothing.

    >>> print(RMSNorm(gain=2.0)(0.0, jnp.array([[3.0, 4.0]])))
    [[1.2 1.6]]
    """

    name: ClassVar[str] = "rms"
    eps: Float[Array, ""] | None

    def __init__(self, gain: Weight = None, shift: Weight = None, eps: Any = None):
        super().__init__(gain, shift)
        self.eps = None if eps is None else as_number(eps, "eps")
        require_nonnegative(0.0 if self.eps is None else self.eps, "eps")

    @property
    def needs_direction(self) -> bool:
        return self.eps is None

    def gain_to_root(self, d: int) -> float:
        return math.sqrt(d)

    def standard(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`y/√(|y|² + eps)`."""
        if self.eps is None:
            return unit_rows(y)
        return y / jnp.sqrt(jnp.sum(y * y, axis=-1, keepdims=True) + self.eps.astype(y.dtype))


class LayerNorm(Norm):
    """`gain · (y − ȳ)/√(var y + eps) + shift` with mean and variance over a token's entries.

    Args:
        gain: what N multiplies by: a number, (d,), or (2, d) with one row for each sub-layer; by
            default 1.
        shift: what N adds, like gain; by default 0.
        eps: what is added to the variance; by default 1e-12.

    >>> print(LayerNorm(eps=0.0)(0.0, jnp.array([[1.0, 3.0]])))
    [[-1.  1.]]
    """

    name: ClassVar[str] = "layer"
    needs_direction = False
    eps: Float[Array, ""]

    def __init__(self, gain: Weight = None, shift: Weight = None, eps: Any = None):
        super().__init__(gain, shift)
        self.eps = jnp.asarray(1e-12 if eps is None else eps, dtype=float)
        require_finite(self.eps, "eps")

    def gain_to_root(self, d: int) -> None:
        return None  # the variance of the entries is 1

    def standard(self, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """`(y − ȳ)/√(var y + eps)`."""
        y = y - y.mean(axis=-1, keepdims=True)
        return y / jnp.sqrt(jnp.mean(y * y, axis=-1, keepdims=True) + self.eps.astype(y.dtype))


NORMS: dict[str, type[RMSNorm] | type[LayerNorm]] = {n.name: n for n in (RMSNorm, LayerNorm)}
"""The normalisations by name."""


def as_norm(norm: Any, gain: Weight, shift: Weight, eps: Any) -> Norm:
    """The normalisation of a name.

    Args:
        norm: "rms" or "layer".
        gain: as `RMSNorm` and `LayerNorm` take it.
        shift: likewise.
        eps: likewise.

    >>> type(as_norm("rms", None, None, None)).__name__
    'RMSNorm'
    """
    if norm not in NORMS:
        raise unknown("norm", norm, NORMS)
    return NORMS[norm](gain, shift, eps)
