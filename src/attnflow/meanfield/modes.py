"""MF on the circle while the density is smooth: its Fourier coefficients."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Num, Real

from attnflow.checks import as_floats, is_traced
from attnflow.errors import InputError
from attnflow.meanfield.measures import ModeSystem, mass_tol, require_modes
from attnflow.spaces import Flat
from attnflow.systems import Cost, System
from attnflow.systems.fields import mean_pull


class FourierModes(Flat):
    """Measures on the circle as their first Fourier coefficients, `(M + 1, 2)`; c_0 is 1."""

    unit = False
    rotations = False

    def admit(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The start x itself, if it can be the coefficients of a probability measure."""
        parts = "the real and imaginary parts of the modes"
        require_modes(x, 2, parts, "meanfield.modes(rho, M)")
        if not is_traced(x) and (most := np.hypot(x[..., 0], x[..., 1]).max()) > 1 + mass_tol(x):
            raise InputError(
                f"x0 must hold modes of a probability measure, none above 1, but one is {most:g}."
            )
        return x


class CircleModes(ModeSystem):
    """The many-token limit of a system on the circle, in Fourier's modes, [P](3.2)–(3.4), (3.8).

        c_k' = −ik ∫ X[ρ] ρ e^{−ikθ} dθ − σ k² c_k,    c_k = ∫ e^{−ikθ} dμ(θ)

    The state is c_0 … c_M, as their real and imaginary parts `(M + 1, 2)`. `meanfield.modes` makes
    it from a density, and `density(x, N)` goes back. X is a product of coefficients; X ρ is formed
    on a grid four times as fine as the modes (Galerkin). c_0 = 1 stays 1 exactly.

    Exact to rounding while ρ is smooth: errors fall faster than any power of M once the modes that
    are left out are small, which `tail(x)` shows. As clusters become narrow they are not; ρ then
    oscillates and may become negative, and `CircleDensity` is the better choice. Good values:
    M = 63.

    Args:
        system: that of the tokens, as for `CircleDensity`.

    >>> from attnflow.systems import AngularSA
    >>> x = jnp.zeros((4, 2)).at[0, 0].set(1.0).at[2, 0].set(1e-3)
    >>> rate = CircleModes(AngularSA(beta=4.0)).velocity(0.0, x)[2, 0] / 1e-3
    >>> print(round(float(rate), 4))  # 2² I_2(4) / (4 I_0(4))
    0.5682
    """

    equation: ClassVar[str] = "c_k' = −ik ∫ X[ρ] ρ e^{−ikθ} dθ − σ k² c_k"
    source: ClassVar[str] = "[P](3.2)–(3.4), (3.8)"

    def __init__(self, system: System):
        super().__init__(FourierModes(), system)

    def rate(self, t: Any, x: Num[Array, "n d"]) -> Float[Array, "n d"]:
        """`c_k'`."""
        c, sigma = _complex(x), self.sigma
        P = _grid(len(c))
        phi = 2 * np.pi / P * jnp.arange(P, dtype=c.real.dtype)

        def correlate(kernel: Float[Array, " P"]) -> Float[Array, " P"]:
            return _values(c * jnp.conj(jnp.fft.rfft(kernel)[: len(c)]) / P, P)

        flux = self.field(t).speeds(phi, 0, correlate) * _values(c, P)
        k = jnp.arange(len(c)).astype(c.dtype)
        rate = -1j * k * jnp.fft.rfft(flux)[: len(c)] / P
        if sigma is not None:
            rate = rate - sigma.astype(c.dtype) * k**2 * c
        return jnp.stack([rate.real, rate.imag], axis=-1)

    def density(self, x: Num[Array, "n d"], N: int) -> Float[Array, "N 1"]:
        """The averages of ρ over N cells, as `CircleDensity` has them."""
        c = _complex(x)
        if 2 * (len(c) - 1) >= N:
            raise InputError(f"N must be above {2 * (len(c) - 1)} to hold these modes, not {N}.")
        averaged = c * _cell_average(len(c), N, c.real.dtype)
        return _values(averaged, N)[:, None] / (2 * np.pi)

    def energy(self, x: Num[Array, "n d"]) -> Float[Array, ""]:
        """E_β of the measure, with the same constant as `observe.energy`."""
        c = _complex(x)
        beta = self.attention(0.0).beta.astype(c.real.dtype)
        P = _grid(len(c))
        phi = 2 * np.pi / P * jnp.arange(P, dtype=beta.dtype)
        pull = -jnp.fft.rfft(mean_pull(phi, 0, beta))[1 : len(c)].imag / P
        k = jnp.arange(1, len(c), dtype=beta.dtype)
        varying = 2 * jnp.sum(pull / k * jnp.abs(c[1:]) ** 2)
        mean = jnp.mean(jnp.exp(beta * (jnp.cos(phi) - 1)))
        constant = jnp.where(beta == 0, 0, mean / jnp.where(beta == 0, 1, beta))
        return jnp.exp(beta) * (constant + varying) / 2

    def cost(self, n: int) -> Cost:
        return Cost(pairs=_grid(n) * _grid(n).bit_length(), held=8 * _grid(n))


def modes(rho: Real[Array, "N 1"] | Real[np.ndarray, "N 1"], M: int) -> Float[Array, "M1 2"]:
    """The Fourier coefficients c_0 … c_M of a density that is given by its averages over N cells.

    Exact where ρ has no modes above N/2. `CircleModes.density` is the way back.

    >>> print(modes(jnp.full((16, 1), 1 / (2 * jnp.pi)), 2).round(12) + 0.0)
    [[1. 0.]
     [0. 0.]
     [0. 0.]]
    """
    averages = as_floats(rho)[:, 0]
    N = len(averages)
    if 2 * M >= N:
        raise InputError(f"M must be below {N / 2:g} for a density in {N} cells, not {M}.")
    c = jnp.fft.rfft(averages)[: M + 1] * (2 * np.pi / N)
    c = c / _cell_average(M + 1, N, averages.dtype)
    return jnp.stack([c.real, c.imag], axis=-1)


def _cell_average(count: int, N: int, dtype: Any) -> Complex[Array, " k"]:
    """What averaging over cells makes of e^{ikθ}, with θ = 0 at the left edge of cell 0."""
    half = jnp.arange(count, dtype=dtype) * (np.pi / N)
    size = jnp.sinc(half / np.pi)
    return jax.lax.complex(size * jnp.cos(half), size * jnp.sin(half))


def _complex(x: Num[Array, "n d"]) -> Complex[Array, " n"]:
    x = as_floats(x)
    return jax.lax.complex(x[:, 0], x[:, 1])


def _values(c: Complex[Array, " k"], P: int) -> Float[Array, " P"]:
    """`Σ_k c_k e^{ikθ}` over −M ≤ k ≤ M at P points."""
    return jnp.fft.irfft(c, P) * P


def _grid(count: int) -> int:
    """Points of the grid: a power of two, at least four for each mode."""
    return 1 << (4 * count - 1).bit_length()
