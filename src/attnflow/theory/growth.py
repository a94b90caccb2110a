"""How fast each mode of a nearly uniform measure grows, and which one is the fastest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from jaxtyping import ArrayLike, Float, Int, Real

from attnflow.checks import require_count, require_nonnegative
from attnflow.errors import InputError
from attnflow.theory.gegenbauer import bessel_ratios


def linear_growth(
    beta: Real[ArrayLike, ...],
    d: int,
    k: Real[ArrayLike, ...],
    normalised: bool = True,
    sigma: Real[ArrayLike, ...] = 0.0,
) -> Float[np.ndarray, ...]:
    """The growth rate of mode k (a harmonic of degree k ≥ 1) about the uniform measure on S^{d−1}.

        SA:  k (k + d − 2) ( I_{k+ν}(β) / (β I_ν(β)) − σ ),   ν = d/2 − 1
        USA: the same with I_{k+ν}(β) / (β I_ν(β)) times Γ(ν+1) (2/β)^ν I_ν(β)

    On the circle these are `k² I_k/(β I_0)` and `k² I_k/β`. It follows from (3.4) of [P], as the
    kernel is diagonal in harmonics. Without noise every mode grows for β > 0; noise σ damps those
    for which the bracket is negative. At β = 0 only k = 1 grows, at (d − 1)/d.

    Arrays are broadcast. Ratios of Bessel functions come from their
    continued fraction, so that no β or d overflows or divides 0 by 0 for SA.

    Args:
        beta: inverse temperature β ≥ 0, a number or an array.
        d: the dimension of the space around the sphere, at least 2.
        k: the degree of the mode, at least 1, a number or an array.
        normalised: True for SA, False for USA.
        sigma: the strength of the noise, as in `Noisy`, a number or an array.

    >>> linear_growth(4.0, 2, np.array([1, 2, 3, 4])).round(4).tolist()
    [0.2159, 0.5682, 0.6644, 0.5013]
    >>> linear_growth([0.0, 5.0], 3, 1).round(4).tolist()
    [0.6667, 0.32]
    """
    require_nonnegative(beta, "beta")
    require_nonnegative(sigma, "sigma")
    d = require_count(d, "d", least=2)
    degrees = np.asarray(k)
    if degrees.size and (np.any(degrees != np.round(degrees)) or degrees.min() < 1):
        raise InputError(f"k must be whole numbers of at least 1, but it is {k!r}.")
    b, degrees, s = np.broadcast_arrays(
        np.asarray(beta, float), degrees.astype(int), np.asarray(sigma, float)
    )
    gain = _bessel_gain(b, d, degrees)
    if not normalised:
        gain = gain * scipy.special.hyp0f1(d / 2, b**2 / 4)
    return np.asarray(degrees * (degrees + d - 2.0) * (gain - s))


def fastest_mode(
    beta: Real[ArrayLike, ...],
    d: int = 2,
    normalised: bool = True,
    sigma: Real[ArrayLike, ...] = 0.0,
) -> Int[np.ndarray, ...]:
    """The k whose mode grows fastest about the uniform measure, or 0 where none grows.

    On the circle it is how many clusters first appear: about √(2β) of them without noise.

    Args:
        beta: inverse temperature β ≥ 0, a number or an array.
        d: the dimension of the space around the sphere, at least 2.
        normalised: True for SA, False for USA; they differ only through noise.
        sigma: the strength of the noise, as in `Noisy`, a number or an array.

    >>> fastest_mode([1.0, 5.0, 20.0, 80.0]).tolist()
    [1, 3, 6, 13]
    """
    b, s = np.broadcast_arrays(np.asarray(beta, float), np.asarray(sigma, float))
    largest = float(b.max()) if b.size else 0.0
    # Rates fall once k² is some times β, and k grows no faster than that in any dimension.
    k = np.arange(1, math.ceil(4 * math.sqrt(2 * max(largest, 0.0))) + 8)
    rates = linear_growth(b[..., None], d, k, normalised, s[..., None])
    return np.where(rates.max(axis=-1) > 0, k[np.argmax(rates, axis=-1)], 0)


def _bessel_gain(beta: np.ndarray, d: int, k: np.ndarray) -> Any:
    """`I_{k+ν}(β) / (β I_ν(β))`, a product of ratios of neighbours."""
    gain = np.ones(beta.shape)
    for j, ratio in bessel_ratios(beta, d, int(np.max(k, initial=1))):
        if j > 1:
            gain, second = np.where(j > k, gain, gain * ratio), ratio
    return gain / (d + beta * second)  # I_{1+ν} / (β I_ν), also at β = 0
