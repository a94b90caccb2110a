"""Constants of the theorems about small and large β and about high dimension."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from attnflow.checks import as_floats, require_count, require_nonnegative
from attnflow.errors import InputError
from attnflow.theory.inputs import Numbers


def tau_star(beta: Real[ArrayLike, "*shape"] | Numbers, d: int = 2) -> Float[Array, "*shape"]:
    """The angle τ* in (0, π/2] with `β sin² τ* = (d−1) cos τ*` ([P] appendix B).

    Tokens at a local maximum of E_β cannot be split into two groups that are further apart than
    τ*. It decreases in β, from π/2 at β = 0, and is √((d−1)/β) for large β. Works under jit, vmap
    and grad.

    >>> print(tau_star([0.0, 1.0, 100.0]).round(4))
    [1.5708 0.9046 0.0999]
    """
    require_nonnegative(beta, "beta")
    d = require_count(d, "d", least=2)
    beta = as_floats(beta)
    root = (d - 1) + jnp.sqrt((d - 1) ** 2 + 4 * beta**2)
    return jnp.arctan2(jnp.sqrt(2 * (d - 1) / root), 2 * beta / root)


def large_beta(n: int, d: int) -> float:
    """The β above which `(n−1) τ*_β < π/2`, so that SA and USA end in one cluster (T5.1p).

    This is the usable form of `β ≥ C(d) n²`: about `(d−1) (2(n−1)/π)²` for large n.

    >>> round(large_beta(32, 2), 2), large_beta(2, 3)
    (389.31, 0.0)
    """
    n, d = require_count(n, "n", least=2), require_count(d, "d", least=2)
    if n == 2:
        return 0.0
    tau = math.pi / (2 * (n - 1))
    return (d - 1) * math.cos(tau) / math.sin(tau) ** 2


def log_lipschitz(beta: Real[ArrayLike, "*shape"] | Numbers) -> Float[Array, "*shape"]:
    """`log c(β) = 10 max(1, β)`: SA's flow stretches distances by at most c(β)^{nt} ((D.4)).

        max_j |x_j(t) − y_j(t)| ≤ c(β)^{nt} max_j |x_j(0) − y_j(0)|

    >>> print(log_lipschitz([0.5, 3.0]))
    [10. 30.]
    """
    require_nonnegative(beta, "beta")
    return 10 * jnp.maximum(1, as_floats(beta))


def lipschitz(beta: Real[ArrayLike, "*shape"] | Numbers) -> Float[Array, "*shape"]:
    """`c(β) = e^{10 max(1, β)}` of (D.4) and T6.9; infinite where a float cannot hold it.

    >>> print(f"{float(lipschitz(0.5)):.2f}")
    22026.47
    """
    return jnp.exp(log_lipschitz(beta))


def concentration_bound(
    beta: Real[ArrayLike, ""], n: int, d: int, t: Real[ArrayLike, "*times"] | Numbers
) -> Float[Array, "*times"]:
    """`2 c(β)^{nt} √(log d / d)`: how far cosines of uniform tokens may be from γ_β(t) (T6.9).

    For SA, d ≥ n, and with `concentration_probability`. A difference of cosines is at most 2
    anyway, which this exceeds from `t = log(d / log d) / (20 n max(1, β))` on. Infinite where a
    float cannot hold it.

    Args:
        beta: inverse temperature β.
        n: the number of tokens.
        d: the dimension, at least n.
        t: times, of any shape.

    >>> print(concentration_bound(1.0, 2, 10_000, [0.0, 0.1, 100.0]).round(4))
    [0.0607 0.4485    inf]
    """
    require_nonnegative(t, "t")
    t = as_floats(t)
    _require_room(n, d)
    rate = log_lipschitz(jnp.asarray(beta, t.dtype))
    spread = math.log(2) + (math.log(math.log(d)) - math.log(d)) / 2
    return jnp.exp(n * t * rate + spread)


def concentration_probability(n: int, d: int) -> float:
    """`1 − 2n² d^{−1/64}`: the probability with which T6.9 is claimed.

    It says nothing (is negative) for every dimension that one can run: two tokens would need
    d > 8^64 ≈ 6·10⁵⁷.

    >>> round(concentration_probability(2, 10**6), 2), round(concentration_probability(2, 8**70), 2)
    (-5.45, 0.18)
    """
    _require_room(n, d)
    return 1 - 2 * n**2 * math.exp(-math.log(d) / 64)


def _require_room(n: int, d: int) -> None:
    n = require_count(n, "n", least=2)
    d = require_count(d, "d", least=2, bits=None)  # beyond all that can be run
    if d < n:
        raise InputError(f"T6.9 needs d ≥ n, so that tokens can be orthogonal, but {d} < {n}.")
