"""MF on the circle: the density of many tokens, in finite volumes."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.meanfield.measures import MeasureSystem, mass_tol
from attnflow.meanfield.volumes import continuity_rate, positive_step
from attnflow.spaces import Flat
from attnflow.systems import Cost, System

MIN_CELLS = 4
"""The fewest cells for which slopes mean anything."""


class Densities(Flat):
    """Densities on the circle as averages over N equal cells, `(N, 1)`: nowhere negative, mass 1.

    >>> print(Densities().retract(jnp.array([[0.5], [-0.5], [1.0]]))[:, 0].round(6))
    [0.333333 0.       0.666667]
    """

    unit = False
    rotations = False

    def retract(self, y: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The density y if it is nowhere negative, else its positive part with the mass of y."""
        positive = jnp.maximum(y, 0)
        short = jnp.any(y < 0, axis=-2, keepdims=True)
        kept = y.sum(axis=-2, keepdims=True) / positive.sum(axis=-2, keepdims=True)
        return jnp.where(short, positive * kept, y)

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Make the mass 1 where it is so up to 1e-6 (float32: 1e-4); refuse any other."""
        if x.shape[-1] != 1 or x.shape[-2] < MIN_CELLS:
            raise InputError(
                f"x0 must have shape (N, 1), the average density in each of N ≥ {MIN_CELLS} cells "
                f"of the circle, but its shape is {x.shape}: meanfield.density(fn, N) makes one."
            )
        masses = x.sum(axis=(-2, -1), keepdims=True) * _width(x)
        if not is_traced(x):
            if bool((x < 0).any()):
                raise InputError(f"x0 must not be negative, but its least entry is {x.min():g}.")
            off = np.abs(np.asarray(masses) - 1).max()
            if off > mass_tol(x):
                raise InputError(
                    f"x0 must have mass 1, the mean of its entries times 2π, but that is off by "
                    f"{off:g}: divide x0 by it."
                )
        return x / masses


class CircleDensity(MeasureSystem):
    """The many-token limit of a system on the circle, in finite volumes, [P](3.2)–(3.4), (3.8).

        ∂_t ρ + ∂_θ (X[ρ] ρ) = σ ∂_θ² ρ

    The state is ρ as its average in each of N cells, `(N, 1)`; cell i spans [iΔ, (i+1)Δ], Δ = 2π/N.
    `meanfield.density` and its relatives make starts.

    The scheme is `continuity_rate`: of second order where ρ is smooth, it keeps mass to rounding,
    and clusters may become as narrow as a cell. For attention without noise, X is a difference of
    potentials, so that the energy of the cells grows whatever their number. The cost is
    O(N log N), as X is a convolution. No density becomes negative: `Fixed(dt, "heun")` with
    dt ≤ `positive_step(x)` keeps it so by itself, and under any other method every step is
    retracted: what is below 0 is cut off and its mass taken from the rest. Good values: N = 256,
    and N = 2048 for narrow clusters. `CircleModes` is more exact while ρ is smooth.

    Args:
        system: that of the tokens: `AngularSA(beta)` or `SA(beta)`, `AngularUSA` or `USA` (with a
            number V at most), `Kuramoto` or `CircleCoupling` (with one frequency at most), or
            `Noisy` of these, whose σ diffuses (Fokker–Planck).

    >>> from attnflow import meanfield
    >>> from attnflow.systems import AngularSA
    >>> system = CircleDensity(AngularSA(beta=1.0))
    >>> uniform = jnp.full((8, 1), 1 / (2 * jnp.pi))
    >>> print(float(jnp.abs(system.velocity(0.0, uniform)).max().round(12)))
    0.0
    """

    equation: ClassVar[str] = "∂_t ρ + ∂_θ(X[ρ] ρ) = σ ∂_θ² ρ"
    source: ClassVar[str] = "[P](3.2)–(3.4), (3.8)"

    def __init__(self, system: System):
        super().__init__(Densities(), system)

    def rate(self, t: Any, x: Num[Array, "n d"]) -> Float[Array, "n d"]:
        """`∂_t ρ` of every cell."""
        rho = as_floats(x)[:, 0]
        return continuity_rate(rho, self.speeds(x, t), _width(x), self.sigma)[:, None]

    def speeds(self, x: Num[Array, "n d"], t: Any = 0.0) -> Float[Array, " n"]:
        """X[ρ] at the left edge of every cell, at time t."""
        rho, width = as_floats(x)[:, 0], _width(x)
        n = len(rho)
        phi = width * (jnp.arange(n, dtype=rho.dtype) + 0.5)
        spectrum = jnp.fft.rfft(rho * width)

        def correlate(kernel: Float[Array, " P"]) -> Float[Array, " P"]:
            return jnp.fft.irfft(spectrum * jnp.conj(jnp.fft.rfft(kernel)), n)

        return self.field(t).speeds(phi, width, correlate)

    def positive_step(self, x: Num[Array, "n d"], t: Any = 0.0) -> Float[Array, ""]:
        """The longest step of `Fixed(dt, "heun")` from x that keeps ρ ≥ 0 by itself."""
        return positive_step(self.speeds(x, t), _width(x), self.sigma)

    def energy(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """E_β of the cells: `observe.energy` of their centres with their masses, in O(N log N)."""
        rho, width = as_floats(x)[:, 0], _width(x)
        beta = self.attention(0.0).beta.astype(rho.dtype)
        cosine = jnp.cos(width * jnp.arange(len(rho), dtype=rho.dtype))
        safe = jnp.where(beta == 0, 1, beta)
        kernel = jnp.where(beta == 0, cosine, jnp.exp(beta * cosine) / safe)
        around = jnp.fft.irfft(jnp.fft.rfft(rho) * jnp.fft.rfft(kernel), len(rho))
        return width**2 * jnp.sum(rho * around) / 2

    def mass(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """The mass of ρ, which stays 1."""
        return as_floats(x).sum() * _width(x)

    def positions(self, x: Num[Array, "n d"]) -> Float[Array, "n 2"]:
        """The graph of ρ: the centre of each cell and the density there."""
        rho = as_floats(x)
        theta = _width(x) * (jnp.arange(len(rho), dtype=rho.dtype) + 0.5)
        return jnp.concatenate([theta[:, None], rho], axis=1)

    def cost(self, n: int) -> Cost:
        return Cost(pairs=n * n.bit_length(), held=8 * n)


def _width(x: Any) -> float:
    return 2 * float(np.pi) / x.shape[-2]
