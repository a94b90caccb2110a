"""Natural frequencies of oscillators: n numbers of a law on the line.

They are drawn from a key. `even=True` draws nothing and takes the quantiles of levels
1/(n+1), …, n/(n+1) in order: the law without its sampling noise, which is 1/√n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

from attnflow.checks import require_count, require_finite, require_positive
from attnflow.errors import InputError
from attnflow.randomness import RandomKey, as_key
from attnflow.retired import renamed_arguments

__all__ = ["FREQUENCIES", "lorentzian", "normal", "uniform"]

Number = float | int | Float[Array, ""]


@renamed_arguments(seed="key")
def lorentzian(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    key: RandomKey | None = None,
) -> Float[Array, " n"]:
    """The Lorentzian (Cauchy) law of half width Δ: density `Δ/π / ((ω − centre)² + Δ²)`.

    Args:
        n: how many.
        width: the half width Δ.
        centre: the middle of the law.
        even: whether to take the quantiles of evenly spaced levels instead of drawing.
        key: an integer or a JAX key; needed unless `even`.

    >>> print(lorentzian(3, width=0.5, even=True).round(12) + 0.0)
    [-0.5  0.   0.5]
    """
    return _scaled(jnp.tan(jnp.pi * (_levels(n, even, key) - 0.5)), width, centre)


@renamed_arguments(seed="key")
def normal(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    key: RandomKey | None = None,
) -> Float[Array, " n"]:
    """The Gaussian law of standard deviation `width`.

    Args:
        n: how many.
        width: the standard deviation.
        centre: the middle of the law.
        even: whether to take the quantiles of evenly spaced levels instead of drawing.
        key: an integer or a JAX key; needed unless `even`.

    >>> print(normal(3, width=1.0, even=True).round(3) + 0.0)
    [-0.674  0.     0.674]
    """
    return _scaled(ndtri(_levels(n, even, key)), width, centre)


@renamed_arguments(seed="key")
def uniform(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    key: RandomKey | None = None,
) -> Float[Array, " n"]:
    """The uniform law between `centre − width` and `centre + width`.

    Args:
        n: how many.
        width: half the length of the interval.
        centre: the middle of the law.
        even: whether to take the quantiles of evenly spaced levels instead of drawing.
        key: an integer or a JAX key; needed unless `even`.

    >>> print(uniform(3, width=1.0, even=True))
    [-0.5  0.   0.5]
    """
    return _scaled(2 * _levels(n, even, key) - 1, width, centre)


FREQUENCIES: dict[str, Callable[..., Any]] = {
    law.__name__: law for law in (lorentzian, normal, uniform)
}
"""The laws by name, as specs call them."""


def _levels(n: int, even: bool, key: RandomKey | None) -> Float[Array, " n"]:
    """Levels between 0 and 1, at which a quantile function gives the frequencies."""
    n = require_count(n, "n")
    if even:
        return jnp.arange(1, n + 1) / (n + 1)
    if key is None:
        raise InputError("key: frequencies are drawn: pass a key, or even=True for quantiles.")
    tiny = float(jnp.finfo(jnp.result_type(float)).tiny)
    return jax.random.uniform(as_key(key), (n,), dtype=float, minval=tiny)


def _scaled(standard: Float[Array, " n"], width: Number, centre: Number) -> Float[Array, " n"]:
    require_positive(width, "width")
    require_finite(centre, "centre")
    return centre + width * standard
