"""Harmonics on the circle and on S², and the expansion of `e^{β(<x,y> − 1)}` in them.

On every sphere the kernel is diagonal in harmonics (Funk–Hecke):

    e^{β(<x,y> − 1)} = Σ_l a_l(β) Σ_m Y_lm(x) Y_lm(y),      Σ_m Y_lm(x)² = N_l for every x,

with N_l harmonics of degree l. The a_l are modified Bessel functions, `a_l ∝ I_{l+ν}(β)` with
ν = d/2 − 1, and fall faster than exponentially once l² ≫ β.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

SEGMENTS = 3
"""Degrees are computed in this many groups, each as wide as its largest degree."""


def coefficients(
    beta: Float[Array, ""], degree: int, d: int
) -> tuple[Float[Array, " l"], Float[Array, ""]]:
    """The a_l for l < degree on the sphere of R^d, and how much the rest adds up to.

    Ratios of Bessel functions come from their continued fraction, taken from the far end, which is
    stable for all β ≥ 0; that the kernel is 1 at x = y sets the scale.

    Args:
        beta: inverse temperature β ≥ 0.
        degree: the number of degrees.
        d: the dimension, 2 or 3.

    >>> a, rest = coefficients(jnp.array(0.0), 4, 2)
    >>> print(a, rest)
    [1. 0. 0. 0.] 0.0
    """
    l = jnp.arange(1, 2 * degree, dtype=beta.dtype)

    def ratio(next_ratio: Array, l: Array) -> tuple[Array, Array]:
        r = beta / (2 * l + (d - 2) + beta * next_ratio)
        return r, r

    _, ratios = jax.lax.scan(ratio, jnp.zeros_like(beta), l, reverse=True)
    a = jnp.concatenate([jnp.ones(1, beta.dtype), jnp.cumprod(ratios)])
    N = jnp.asarray(counts(2 * degree, d), beta.dtype)
    a = a / jnp.sum(N * a)
    return a[:degree], jnp.sum((N * a)[degree:])


def count_ratios(degree: int, d: int) -> Float[np.ndarray, " l"]:
    """N_l / N_{l−1} for 0 < l < degree, where N_l harmonics on the sphere of R^d have degree l.

    >>> print(count_ratios(4, 2))
    [2. 1. 1.]
    """
    l = np.arange(1, degree, dtype=float)
    if d == 2:
        return np.where(l == 1, 2.0, 1.0)
    return (2 * l + d - 2) * (l + d - 3) / (l * (2 * l + d - 4))


def counts(degree: int, d: int) -> Float[np.ndarray, " l"]:
    """N_l for l < degree.

    >>> print(counts(4, 3))
    [1. 3. 5. 7.]
    """
    return np.rint(np.cumprod(np.concatenate([[1.0], count_ratios(degree, d)])))


def gegenbauer(u: Any, d: int) -> Iterator[Any]:
    """C_k(u) / C_k(1) of index d/2 − 1 for k = 0, 1, …: the harmonics on S^{d−1} of one angle.

    By their recurrence, for arrays of NumPy and of JAX; at d = 2 they are cos kθ, u = cos θ.

    >>> print(*itertools.islice(gegenbauer(0.5, 2), 4))
    1.0 0.5 -0.5 -1.0
    """
    now, after = 1 + 0 * u, u
    for k in itertools.count(1):
        yield now
        now, after = after, ((2 * k + d - 2) * u * after - k * now) / (k + d - 2)


@functools.cache
def reach(degree: int, d: int, precision: float) -> float:
    """The largest β for which degrees from `degree` on add up to less than `precision`.

    Args:
        degree: the first degree that is left out.
        d: the dimension, 2 or 3.
        precision: what the degrees left out may add up to.

    >>> round(reach(32, 2, 1e-16), 1)
    10.7
    """
    l = np.arange(4 * degree)

    def excess(log_beta: float) -> float:
        beta = np.exp(log_beta)
        if d == 2:
            a = scipy.special.ive(l, beta)
        else:
            a = np.sqrt(np.pi / (2 * beta)) * scipy.special.ive(l + 0.5, beta)
        return float(np.log(np.sum((counts(len(l), d) * a)[degree:]) + 1e-300)) - np.log(precision)

    return float(np.exp(scipy.optimize.brentq(excess, np.log(1e-9), np.log(degree**2))))


def circle(x: Float[Array, "2 n"], degree: int) -> Float[Array, "modes n"]:
    """`cos kθ` and `sin kθ` for k < degree, times √2 for k > 0, at the points x = (cos θ, sin θ).

    Powers of cos θ + i sin θ, by doubling.
    """
    cos, sin = _powers(x, degree)
    scale = jnp.asarray(np.where(np.arange(degree) == 0, 1, np.sqrt(2)), x.dtype)[:, None]
    return jnp.concatenate([scale * cos, scale * sin])


def circle_degrees(degree: int) -> np.ndarray:
    """The degree of each row of `circle`."""
    return np.tile(np.arange(degree), 2)


def sphere(x: Float[Array, "3 n"], degree: int) -> Float[Array, "modes n"]:
    """The real spherical harmonics of degrees below `degree` at the points x of S².

    They are written as polynomials in the coordinates (an associated Legendre function without its
    power of sin θ, times a power of x₁ + i x₂), so that they are smooth at the poles too. Rows are
    padded with zeros: see `sphere_degrees`.
    """
    cos, sin = _powers(x[:2], degree)
    rows: list[Array] = []
    last = before = jnp.zeros((0, x.shape[1]), x.dtype)
    for low, high in _segments(degree):
        rise, fall, first = (jnp.asarray(c[low:high, :high], x.dtype) for c in _legendre(degree))

        def up(carry: tuple[Array, Array], c: tuple[Array, ...]) -> tuple[Any, Array]:
            last, before = carry
            p = c[0][:, None] * x[2] * last - c[1][:, None] * before + c[2][:, None]
            return (p, last), p

        wider = jnp.zeros((high - low, x.shape[1]), x.dtype)
        last, before = (jnp.concatenate([p, wider]) for p in (last, before))
        (last, before), legendre = jax.lax.scan(up, (last, before), (rise, fall, first))
        both = jnp.concatenate([legendre * cos[:high], legendre * sin[:high]], axis=1)
        rows.append(both.reshape(-1, x.shape[1]))
    return jnp.concatenate(rows)


def sphere_degrees(degree: int) -> np.ndarray:
    """The degree of each row of `sphere`."""
    return np.concatenate(
        [np.repeat(np.arange(low, high), 2 * high) for low, high in _segments(degree)]
    )


def _segments(degree: int) -> list[tuple[int, int]]:
    edges = [degree * i // SEGMENTS for i in range(SEGMENTS + 1)]
    return list(itertools.pairwise(edges))


@functools.cache
def _legendre(degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`P_lm = rise_lm z P_{l−1,m} − fall_lm P_{l−2,m} + first_lm`, normalised to Σ_m Y² = 2l + 1.

    Without sin^m θ, which belongs to the power of x₁ + i x₂; `first` starts each m at l = m.
    """
    l, m = np.arange(degree, dtype=float)[:, None], np.arange(degree, dtype=float)
    below = np.maximum(l**2 - m**2, 1)
    rise = np.where(m < l, np.sqrt(np.maximum(4 * l**2 - 1, 0) / below), 0)
    before = np.maximum((l - 1) ** 2 - m**2, 0) / np.maximum(4 * (l - 1) ** 2 - 1, 1)
    fall = np.where(m < l, rise * np.sqrt(before), 0)
    start = np.cumprod(np.where(m == 0, 1, (2 * m + 1) / np.maximum(2 * m, 1)))
    return rise, fall, np.diag(np.sqrt(start * np.where(m == 0, 1, 2)))


def _powers(x: Float[Array, "2 n"], degree: int) -> tuple[Array, Array]:
    """Real and imaginary parts of (x₁ + i x₂)^k for k < degree."""
    re, im = jnp.ones_like(x[:1]), jnp.zeros_like(x[:1])
    square_re, square_im = x[:1], x[1:]
    while len(re) < degree:
        re, im = (
            jnp.concatenate([re, re * square_re - im * square_im]),
            jnp.concatenate([im, re * square_im + im * square_re]),
        )
        square_re, square_im = square_re**2 - square_im**2, 2 * square_re * square_im
    return re[:degree], im[:degree]
