"""The velocity field X[μ] that a measure of tokens gives itself, as a system declares it.

On the circle every field is made of integrals `∫ k(ω − θ) dμ(ω)`, which a grid or Fourier's
coefficients turn into products; a field says which kernels k it needs and what it makes of them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

Correlate = Callable[[Float[Array, " P"]], Float[Array, " P"]]
"""The integrals of a kernel, which is given at some angles, against a measure."""


class Field(eqx.Module):
    """X[μ] on the circle."""

    @abc.abstractmethod
    def speeds(
        self, phi: Float[Array, " P"], width: Any, correlate: Correlate
    ) -> Float[Array, " P"]:
        """X at some points, from `correlate` of kernels at the angles phi.

        Kernels may be averaged over cells of this width around each angle.
        """


class AttentionField(Field):
    """`X[μ](x) = c P⊥_x ∫ e^{β<x,y>} y dμ(y)`, over `∫ e^{β<x,y>} dμ(y)` where it is normalised.

    The common factor e^β is left out of the kernels until the end.
    """

    beta: Float[Array, ""]
    c: Float[Array, ""] | None
    normalised: bool = eqx.field(static=True)

    def speeds(
        self, phi: Float[Array, " P"], width: Any, correlate: Correlate
    ) -> Float[Array, " P"]:
        """On the circle."""
        pulled = correlate(mean_pull(phi, width, self.beta.astype(phi.dtype)))
        total = correlate(self.weight(jnp.cos(phi))) if self.normalised else pulled
        ratio = self.combine(pulled, total)
        if not self.normalised:
            return ratio
        # A mean of sines. What rounding makes of it far from all mass must not be faster.
        fastest = jnp.ones((), phi.dtype) if self.c is None else jnp.abs(self.c.astype(phi.dtype))
        return jnp.clip(ratio, -fastest, fastest)

    def weight(self, cosine: Float[Array, " P"]) -> Float[Array, " P"]:
        """`e^{β (cos − 1)}`."""
        return jnp.exp(self.beta.astype(cosine.dtype) * (cosine - 1))

    def combine(self, pulled: Float[Array, " P"], total: Float[Array, " P"]) -> Float[Array, " P"]:
        """The field from the pull and the weight of μ, both without e^β."""
        if self.normalised:
            # Sums carry a rounding error of their largest value.
            least = 64 * jnp.finfo(total.dtype).eps * jnp.max(total)
            field = pulled / jnp.maximum(total, least)
        else:
            field = jnp.exp(self.beta.astype(pulled.dtype)) * pulled
        return field if self.c is None else self.c.astype(field.dtype) * field


class CouplingField(Field):
    """`X[μ](θ) = ω + K ∫ h(ω' − θ) dμ(ω')`."""

    h: Callable[..., Any]
    K: Float[Array, ""]
    omega: Float[Array, ""] | None

    def speeds(
        self, phi: Float[Array, " P"], width: Any, correlate: Correlate
    ) -> Float[Array, " P"]:
        """On the circle; h is taken at the middle of each cell."""
        speeds = self.K.astype(phi.dtype) * correlate(self.h(phi))
        return speeds if self.omega is None else speeds + self.omega.astype(phi.dtype)


def mean_pull(phi: Float[Array, " P"], width: Any, beta: Float[Array, ""]) -> Float[Array, " P"]:
    """`e^{β (cos φ − 1)} sin φ`, averaged over a cell of this width around φ; 0 is no cell.

    The average is a difference of potentials, `(w(φ − Δ/2) − w(φ + Δ/2)) / Δ` with
    `w = e^{β(cos − 1)} / β`, which is why energy grows in finite volumes too.

    >>> print(mean_pull(jnp.array([jnp.pi / 2]), 0.0, jnp.array(0.0)))
    [1.]
    """
    if isinstance(width, (int, float)) and width == 0:
        return jnp.exp(beta * (jnp.cos(phi) - 1)) * jnp.sin(phi)
    ahead = jnp.cos(phi + width / 2)
    drop = 2 * jnp.sin(phi) * jnp.sin(jnp.asarray(width, phi.dtype) / 2)
    safe = jnp.where(beta == 0, 1, beta)
    grown = jnp.where(beta == 0, drop, jnp.expm1(safe * drop) / safe)
    return jnp.exp(beta * (ahead - 1)) * grown / width
