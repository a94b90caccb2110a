"""The kernel e^{βt} in Gegenbauer polynomials, and the extremes of the energy (P3.4).

    e^{βt} = Σ_k a_k C_k^ν(t) / C_k^ν(1),   ν = d/2 − 1   (d = 2: C_k^ν(t) / C_k^ν(1) → cos kθ)

All a_k are positive for β > 0, so that the energy of a measure is a sum of squares whose only term
for the uniform measure is the constant one: it has the least energy, and Dirac masses the most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

from attnflow.attention.harmonics import count_ratios
from attnflow.checks import require_count, require_nonnegative


def gegenbauer_coefficients(beta: float | int, d: int, degree: int) -> Float[np.ndarray, " k"]:
    """The a_k for k = 0 … degree: positive, and with those of all degrees they add up to e^β.

        a_k = N_k Γ(ν+1) (2/β)^ν I_{k+ν}(β),   N_k harmonics of degree k on S^{d−1}

    They are products of ratios of Bessel functions, from their continued fraction, which neither
    overflow nor cancel in any dimension. Runs on the host: how many degrees the sum needs depends
    on β. Infinite where they are too large for a float, 0 where too small.

    Args:
        beta: inverse temperature β ≥ 0.
        d: the dimension of the space around the sphere, at least 2.
        degree: the last k.

    >>> gegenbauer_coefficients(1.0, 3, 3).round(6).tolist()
    [1.175201, 1.103638, 0.357814, 0.070456]
    """
    require_nonnegative(beta, "beta")
    d, degree = require_count(d, "d", least=2), require_count(degree, "degree", least=0)
    logs = _log_coefficients(float(beta), d, degree)
    with np.errstate(over="ignore"):
        return np.exp(logs[: degree + 1])


def uniform_energy(beta: float | int, d: int) -> float:
    """`a_0 / 2β`: E_β of the uniform measure on S^{d−1}, the least of all (P3.4). At β = 0 it is 0.

    >>> round(uniform_energy(1.0, 2), 6), uniform_energy(0.0, 3)
    (0.633033, 0.0)
    """
    constant = float(gegenbauer_coefficients(beta, d, 0)[0])
    return constant / (2 * beta) if beta else 0.0


def dirac_energy(beta: float | int) -> float:
    """`e^β / 2β`: E_β of one cluster, the most of all (P3.4). At β = 0 it is ½.

    >>> round(dirac_energy(1.0), 6), dirac_energy(0.0)
    (1.359141, 0.5)
    """
    require_nonnegative(beta, "beta")
    with np.errstate(over="ignore"):
        return float(np.exp(float(beta)) / (2 * beta)) if beta else 0.5


def _log_coefficients(beta: float, d: int, degree: int) -> Float[np.ndarray, " k"]:
    """The logarithms of the coefficients, up to a degree from which the rest is below rounding."""
    ratios = np.array([ratio for _, ratio in bessel_ratios(beta, d, degree)])[::-1]
    with np.errstate(divide="ignore"):
        steps = np.log(ratios * count_ratios(len(ratios) + 1, d))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    return logs + beta - scipy.special.logsumexp(logs)


def bessel_ratios(beta: Any, d: int, degree: int) -> Iterator[tuple[int, Any]]:
    """Degrees k and I_{k+ν}(β) / I_{k−1+ν}(β), from beyond `degree` down to 1; β may be an array.

    Their continued fraction is begun so far out that the rest of it is below rounding.

    Args:
        beta: inverse temperature β, a number or an array.
        d: the dimension of the space around the sphere, at least 2.
        degree: the degree that must be right; the first pairs are of higher degrees.

    >>> k, ratio = list(bessel_ratios(1.0, 3, 1))[-1]
    >>> k, round(ratio, 6)  # coth 1 − 1
    (1, 0.313035)
    """
    largest, ratio = float(np.max(beta, initial=0)), 0.0
    for k in range(degree + math.ceil(largest + 12 * math.sqrt(largest) + 40), 0, -1):
        ratio = beta / (2 * k + d - 2 + beta * ratio)
        yield k, ratio
