"""Natural frequencies of oscillators: n numbers of a law on the line.

They are drawn from a seed or a key. `even=True` draws nothing and takes the quantiles of levels
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
from attnflow.randomness import AnyKey, as_key

Number = float | int | Float[Array, ""]


def lorentzian(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    seed: int | None = None,
    key: AnyKey | None = None,
) -> Float[Array, " n"]:
    """The Lorentzian (Cauchy) law of half width Δ = `width`: density `Δ/π / ((ω − centre)² + Δ²)`.

    >>> print(lorentzian(3, width=0.5, even=True).round(12) + 0.0)
    [-0.5  0.   0.5]
    """
    return _scaled(jnp.tan(jnp.pi * (_levels(n, even, seed, key) - 0.5)), width, centre)


def normal(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    seed: int | None = None,
    key: AnyKey | None = None,
) -> Float[Array, " n"]:
    """The Gaussian law of standard deviation `width`.

    >>> print(normal(3, width=1.0, even=True).round(3) + 0.0)
    [-0.674  0.     0.674]
    """
    return _scaled(ndtri(_levels(n, even, seed, key)), width, centre)


def uniform(
    n: int,
    width: Number,
    *,
    centre: Number = 0.0,
    even: bool = False,
    seed: int | None = None,
    key: AnyKey | None = None,
) -> Float[Array, " n"]:
    """The uniform law between `centre − width` and `centre + width`.

    >>> print(uniform(3, width=1.0, even=True))
    [-0.5  0.   0.5]
    """
    return _scaled(2 * _levels(n, even, seed, key) - 1, width, centre)


FREQUENCIES: dict[str, Callable[..., Any]] = {
    law.__name__: law for law in (lorentzian, normal, uniform)
}
"""The laws by name, as specs call them."""


def _levels(n: int, even: bool, seed: int | None, key: AnyKey | None) -> Float[Array, " n"]:
    """Levels between 0 and 1, at which a quantile function gives the frequencies."""
    n = require_count(n, "n")
    if even:
        return jnp.arange(1, n + 1) / (n + 1)
    tiny = float(jnp.finfo(jnp.result_type(float)).tiny)
    return jax.random.uniform(as_key(seed, key), (n,), dtype=float, minval=tiny)


def _scaled(standard: Float[Array, " n"], width: Number, centre: Number) -> Float[Array, " n"]:
    require_positive(width, "width")
    require_finite(centre, "centre")
    return centre + width * standard
