"""Dobrushin's bound: how fast two measures under the same flow can part."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from attnflow.checks import require_nonnegative
from attnflow.errors import InputError
from attnflow.meanfield.circle import CircleDensity
from attnflow.systems.fields import AttentionField

ANGLE_COUNT = 4096
"""The number of angles over which a maximum is taken."""


def dobrushin_constant(beta: float | int, normalised: bool = True) -> float:
    """L with `W1(μ(t), ν(t)) ≤ e^{Lt} W1(μ(0), ν(0))` on the circle, for any two measures (R3.3).

    It is the sum of two Lipschitz constants of the field `X[μ](θ)`, in θ and in μ (for W1). USA has
    `e^β` twice. SA has `max(1, β + 1/(4β))` in θ, as `∂_θ X` is `β Var(sin) − E cos` of attention,
    and in μ at most `e^β max_y e^{β cos y} (|cos y − β sin² y| + β |sin y|)`, where e^{−β} is
    the least that Z can be. `lipschitz_constants` are those along a solution, which are far less.

    >>> round(dobrushin_constant(1.0, normalised=False), 4), round(dobrushin_constant(0.0), 4)
    (5.4366, 2.0)
    """
    require_nonnegative(beta, "beta")
    if not normalised:
        return float(2 * np.exp(beta))
    along = beta + 1 / (4 * beta) if beta >= 0.5 else 1.0
    return float(along + np.exp(2 * beta) * _reach(float(beta)))


def lipschitz_constants(
    system: CircleDensity, x: Float[ArrayLike, "N 1"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The Lipschitz constants at a density: of X[ρ] in θ, and of X in μ at μ = ρ.

    That in θ is the largest slope of X between edges of cells. For SA that in μ has the least
    `∫ e^{β cos} dρ` under it, which spread densities keep large; for USA it is e^β. Their sum,
    integrated along the solution ρ(t), is the exponent of Dobrushin's bound for any other measure
    μ(t) under the flow. Works under jit and vmap.

    >>> from attnflow.systems import AngularSA
    >>> uniform = jnp.full((64, 1), 1 / (2 * jnp.pi))
    >>> along, across = lipschitz_constants(CircleDensity(AngularSA(0.0)), uniform)
    >>> print(along.round(12), across.round(12))
    0.0 1.0
    """
    field = system.field(0.0)
    if not isinstance(field, AttentionField) or field.c is not None:
        raise InputError(f"system must be of SA or USA without V, but it is {system.system!r}.")
    x = jnp.asarray(x)
    width = 2 * np.pi / len(x)
    speeds = system.speeds(x)
    along = jnp.abs(jnp.roll(speeds, -1) - speeds).max() / width
    beta = field.beta.astype(x.dtype)
    if not field.normalised:
        return along, jnp.exp(beta)
    angle = jnp.asarray(width * np.arange(len(x)), x.dtype)
    spectra = jnp.fft.rfft(x[:, 0] * width) * jnp.fft.rfft(jnp.exp(beta * (jnp.cos(angle) - 1)))
    least = jnp.fft.irfft(spectra, len(x)).min()
    y = jnp.asarray(np.linspace(0, np.pi, ANGLE_COUNT), x.dtype)
    return along, _stretch(y, beta).max() / least


def _reach(beta: float) -> float:
    return float(_stretch(jnp.linspace(0, np.pi, ANGLE_COUNT), jnp.asarray(beta, float)).max())


def _stretch(y: Float[Array, " k"], beta: Float[Array, ""]) -> Float[Array, " k"]:
    """The steepest slope in y of `e^{β(cos y − 1)} (sin y − X)` with |X| ≤ 1: that of X = ±1."""
    cosine, sine = jnp.cos(y), jnp.sin(y)
    slope = jnp.abs(cosine - beta * sine**2) + beta * jnp.abs(sine)
    return jnp.exp(beta * (cosine - 1)) * slope
