"""The common cosine of tokens that start orthogonal, and the time it needs (T6.8, (6.12)).

With g = 1 − γ the equations of T6.8 separate, and the time at which γ is reached is

    SA:  t = ∫_g^1 (e^{βs} + n − 1) / (2s (n − (n−1)s)) ds
    USA: t = n e^{−β} ∫_g^1 e^{βs} / (2s (n − (n−1)s)) ds

whose partial fractions are exponential integrals. Everything is written in u = −log g, which keeps
1 − γ to full relative accuracy, and in which t is concave, so that Newton's iteration from u = 0
climbs to the solution without ever passing it. The exponential integrals are summed here, as those
of `jax.scipy.special` take ten seconds to compile, and its E₁ does not return for arrays with very
small entries.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, is_traced, require_count, require_nonnegative
from attnflow.errors import InputError
from attnflow.theory.inputs import Numbers

SERIES_UNTIL, ASYMPTOTIC_FROM = 1.0, 50.0
"""Where the power series of E₁ ends, and where the asymptotic one of Ei begins."""

FRACTION_LEVELS, SERIES_TERMS = 100, 130
"""Levels of E₁'s continued fraction, and terms of Ei's series, that are enough in between."""

MAX_LOG_GAP = 1e30
"""The largest −log(1 − γ): far beyond any 1 − γ that a float can hold."""


def gamma(
    beta: Real[ArrayLike, ""],
    n: int,
    ts: Real[ArrayLike, "*times"] | Numbers,
    normalised: bool = True,
) -> Float[Array, "*times"]:
    """The cosine γ_β(t) of every pair of n tokens that start orthogonal, T6.8 with γ(0) = 0.

        SA:   γ' = 2 e^{βγ} (1−γ) ((n−1)γ+1) / (e^β + (n−1) e^{βγ})
        USA:  γ' = (2/n) e^{βγ} (1−γ) ((n−1)γ+1)

    As accurate as t itself: for large β, γ rises within one unit of time after t ≈ e^β/β, and there
    the rounding of t shows. Works under jit, vmap and grad, in β and in the times.

    Args:
        beta: inverse temperature β.
        n: the number of tokens, at least 2.
        ts: times, of any shape.
        normalised: True for SA, False for USA.

    >>> print(gamma(1.0, 32, [0.0, 1.0, 5.27]).round(4))
    [0.     0.1518 0.999 ]
    """
    ts = as_floats(ts)
    n = _checked(beta, n)
    require_nonnegative(ts, "ts")
    return -jnp.expm1(-_depth(ts, jnp.asarray(beta, ts.dtype), n, normalised))


def gap(
    beta: Real[ArrayLike, ""],
    n: int,
    ts: Real[ArrayLike, "*times"] | Numbers,
    normalised: bool = True,
) -> Float[Array, "*times"]:
    """`1 − γ_β(t)`, accurate relative to itself also where γ rounds to 1.

    It falls as e^{−2t} under SA and as e^{−2t e^β} under USA in the end.

    Args:
        beta: inverse temperature β.
        n: the number of tokens, at least 2.
        ts: times, of any shape.
        normalised: True for SA, False for USA.

    >>> print(f"{float(gap(1.0, 32, 100.0)):.4e}")
    5.2390e-86
    """
    ts = as_floats(ts)
    n = _checked(beta, n)
    require_nonnegative(ts, "ts")
    return jnp.exp(-_depth(ts, jnp.asarray(beta, ts.dtype), n, normalised))


def transition_time(
    beta: Real[ArrayLike, "*shape"] | Numbers,
    n: int,
    delta: Real[ArrayLike, ""],
    normalised: bool = True,
) -> Float[Array, "*shape"]:
    """The time at which γ_β(t) = 1 − δ: the transition curve Γ of (6.12), for every β at once.

    Infinite where it is too large for a float. Works under jit, vmap and grad.

    Args:
        beta: inverse temperature β, of any shape.
        n: the number of tokens, at least 2.
        delta: how far γ is from 1 at that time, between 0 and 1; the paper's figures have 1e-3.
        normalised: True for SA, False for USA.

    >>> print(transition_time([1.0, 3.0, 5.0], 32, 1e-3).round(2))
    [5.27 5.9  9.54]
    """
    beta = as_floats(beta)
    n = _checked(beta, n)
    if not is_traced(delta) and not 0 < np.asarray(delta) < 1:
        raise InputError(f"delta must lie between 0 and 1, but it is {delta}.")
    depth = -jnp.log(jnp.asarray(delta, beta.dtype))
    return _time(depth, beta, n, normalised) / _pace(beta, normalised)


def _checked(beta: Any, n: int) -> int:
    require_nonnegative(beta, "beta")
    return require_count(n, "n", least=2)


def _pace(beta: Array, normalised: bool) -> Array:
    """One over the unit of time: e^β for SA, so that nothing overflows, and 1 for USA."""
    return jnp.exp(-beta) if normalised else jnp.ones_like(beta)


@functools.partial(jax.jit, static_argnames="normalised")
def _depth(ts: Array, beta: Array, n: Any, normalised: bool) -> Array:
    """`u = −log(1 − γ_β(t))`. The last step of Newton carries the derivatives."""
    fixed = jax.lax.stop_gradient(beta)
    target = jax.lax.stop_gradient(ts) * _pace(fixed, normalised)
    precision = 8 * jnp.finfo(ts.dtype).eps

    def newton(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        u, _ = carry
        slope = jnp.maximum(_slope(u, fixed, n, normalised), jnp.finfo(ts.dtype).tiny)
        step = (target - _time(u, fixed, n, normalised)) / slope
        going = (step > precision * (1 + u + target / slope)) & (u < MAX_LOG_GAP)
        return jnp.minimum(u + jnp.where(going, step, 0), MAX_LOG_GAP), going

    start = jnp.zeros_like(ts), jnp.ones_like(ts, bool)
    u, _ = jax.lax.while_loop(lambda carry: carry[1].any(), newton, start)
    slope = jnp.maximum(_slope(u, fixed, n, normalised), jnp.finfo(ts.dtype).tiny)
    rest = ts * _pace(beta, normalised) - _time(u, beta, n, normalised)
    return jnp.clip(u + rest / slope, 0, MAX_LOG_GAP)


def _slope(u: Array, beta: Array, n: Any, normalised: bool) -> Array:
    """`dt/du` in the unit of `_pace`."""
    cosine = -jnp.expm1(-u)
    others = (n - 1) * jnp.exp(-beta) + jnp.exp(-beta * cosine)
    return (others if normalised else n * jnp.exp(-beta * cosine)) / (2 * (1 + (n - 1) * cosine))


@functools.partial(jax.jit, static_argnames="normalised")
def _time(u: Array, beta: Array, n: Any, normalised: bool) -> Array:
    """`t(u)` in the unit of `_pace`."""
    cosine, small = -jnp.expm1(-u), jnp.exp(-u)
    logarithm = jnp.log1p((n - 1) * cosine)
    near, far = beta / (n - 1), beta / (n - 1) + beta * cosine
    grown = _growing(beta) - jnp.exp(-beta * cosine) * _growing(beta * small)
    decayed = _decaying(near) - jnp.exp(-beta * cosine) * _decaying(far)
    both_near = jnp.exp(near) * (logarithm - _series(-near) + _series(-far))
    kernel = jnp.exp(-beta) * u + grown + jnp.where(far < SERIES_UNTIL, both_near, decayed)
    if not normalised:
        return kernel / 2
    return (kernel + (n - 1) * jnp.exp(-beta) * (u + logarithm)) / (2 * n)


def _series(z: Array) -> Array:
    """`∫_0^z (e^s − 1)/s ds = Σ_{k≥1} z^k / (k k!)`, for |z| ≤ SERIES_UNTIL."""
    z = jnp.clip(z, -SERIES_UNTIL, SERIES_UNTIL)
    return z * jnp.polyval(_floats([1 / (k * math.factorial(k)) for k in range(20, 0, -1)], z), z)


def _growing(z: Array) -> Array:
    """`e^{−z} ∫_0^z (e^s − 1)/s ds` for z ≥ 0, a mean of 1/k: all terms are positive."""
    near = jnp.minimum(z, ASYMPTOTIC_FROM)

    def add(carry: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        total, weight = carry
        weight = weight * near / k
        return (total + weight / k, weight), None

    terms = jnp.arange(1, SERIES_TERMS + 1, dtype=z.dtype)
    (total, _), _ = jax.lax.scan(add, (jnp.zeros_like(z), jnp.exp(-near)), terms)
    logarithm = jnp.log(jnp.maximum(z, ASYMPTOTIC_FROM)) + np.euler_gamma
    return jnp.where(z > ASYMPTOTIC_FROM, _asymptotic(z) - jnp.exp(-z) * logarithm, total)


def _decaying(z: Array) -> Array:
    """`e^z E₁(z)` for z > 0, from its continued fraction; at 0, where it is infinite, a number."""
    far = jnp.maximum(z, SERIES_UNTIL)

    def level(tail: Array, k: Array) -> tuple[Array, None]:
        return k**2 / (far + 2 * k + 1 - tail), None

    levels = jnp.arange(FRACTION_LEVELS, 0, -1, dtype=far.dtype)
    tail, _ = jax.lax.scan(level, jnp.zeros_like(far), levels)
    near = jnp.clip(z, jnp.finfo(z.dtype).tiny, SERIES_UNTIL)
    logarithm = -np.euler_gamma - jnp.log(near)
    return jnp.where(
        z < SERIES_UNTIL, jnp.exp(near) * (logarithm - _series(-near)), 1 / (far + 1 - tail)
    )


def _asymptotic(z: Array) -> Array:
    """`e^{−z} Ei(z) = Σ_k k! / z^{k+1}`, for z ≥ ASYMPTOTIC_FROM."""
    inverse = 1 / jnp.maximum(z, ASYMPTOTIC_FROM)
    terms = _floats([float(math.factorial(k)) for k in range(25, -1, -1)], z)
    return inverse * jnp.polyval(terms, inverse)


def _floats(values: list[float], like: Array) -> Array:
    return jnp.asarray(np.asarray(values, float), like.dtype)
