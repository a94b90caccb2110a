"""Coupling functions h of oscillators on the circle, for `CircleCoupling`.

Their numbers are array leaves: a new value compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from attnflow.checks import as_floats, as_number, require_finite
from attnflow.errors import InputError

__all__ = ["COUPLINGS", "Exponential", "Harmonics"]

Coefficients = Sequence[float | int] | Num[np.ndarray, " _"] | Num[Array, " _"]


class Exponential(eqx.Module):
    """`h(θ) = e^{β cos θ} sin θ`, the coupling of attention: K = 1 gives `AngularUSA(beta)`.

    >>> print(Exponential(2.0)(jnp.array([jnp.pi / 2])))
    [1.]
    """

    beta: Float[Array, ""]

    def __init__(self, beta: Float[ArrayLike, ""] | int):
        self.beta = as_number(beta, "beta")

    def __call__(self, theta: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The coupling h of every angle."""
        return jnp.exp(self.beta.astype(theta.dtype) * jnp.cos(theta)) * jnp.sin(theta)


class Harmonics(eqx.Module):
    """`h(θ) = Σ_k s_k sin kθ + c_k cos kθ` from the coefficients of k = 1, 2, … (Daido).

    `sin=[1]` is Kuramoto's coupling, `sin=[cos α], cos=[-sin α]` that of Sakaguchi and Kuramoto,
    sin(θ − α); `sin=[0, 1]` has two clusters opposite each other as its attractor.

    >>> print(Harmonics(sin=[0.0, 1.0])(jnp.array([jnp.pi / 4])))
    [1.]
    """

    sin: Float[Array, " s"]
    cos: Float[Array, " c"]

    def __init__(self, sin: Coefficients = (), cos: Coefficients = ()):
        self.sin, self.cos = _coefficients(sin, "sin"), _coefficients(cos, "cos")
        if not len(self.sin) + len(self.cos):
            raise InputError("sin and cos are both empty: Harmonics(sin=[1.0]) is Kuramoto's h.")

    def __call__(self, theta: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The coupling h of every angle."""
        value = jnp.zeros_like(theta)
        for wave, coefficients in ((jnp.sin, self.sin), (jnp.cos, self.cos)):
            for k, coefficient in enumerate(coefficients.astype(theta.dtype), start=1):
                value = value + coefficient * wave(k * theta)
        return value


COUPLINGS: dict[str, Callable[..., Any]] = {"exponential": Exponential, "harmonics": Harmonics}
"""The couplings by name, as specs call them."""


def _coefficients(values: Any, name: str) -> Float[Array, " k"]:
    array = as_floats(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be a list of coefficients, but its shape is {array.shape}.")
    require_finite(array, name)
    return array
