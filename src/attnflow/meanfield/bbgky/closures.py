"""Where a third token is, given two: closures of the equation (8.1) for the two-point function.

The law of θ₂ − θ₁ is ψ, as averages over M cells of width Δ = 2π/M whose centres are iΔ, so that
cell 0 is around θ₂ = θ₁ and differences of centres are centres. A closure gives the law of θ₃ given
θ₁ = 0 and θ₂ = iΔ as row i of a matrix. Below, w = 2πψ, which is 1 for independent tokens.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.meanfield.bbgky.triples import consistent, gaps, law, third_side

MIN_RATIO = 1e-6
"""The ratio w is not taken to be smaller: no pair is impossible."""


class Closure(eqx.Module):
    """What stands for the conditional mean in (8.1)."""

    idea: ClassVar[str]

    @abc.abstractmethod
    def pull(
        self, t: Any, psi: Float[Array, " M"], kernel: Float[Array, " M"]
    ) -> Float[Array, " M"]:
        """E[kernel(θ₃) | θ₁ = 0, θ₂ = (i − ½)Δ], at the left edge of every cell.

        Args:
            t: the time.
            psi: the law of θ₂ − θ₁ in M cells, shape (M,).
            kernel: the function of θ₃ at the centres of the cells, shape (M,).
        """


class ThirdToken(Closure):
    """A law of the third token that is made of ψ alone."""

    @abc.abstractmethod
    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        """Row i: the probability of each cell for θ₃, given θ₁ = 0 and θ₂ = iΔ."""

    def pull(
        self, t: Any, psi: Float[Array, " M"], kernel: Float[Array, " M"]
    ) -> Float[Array, " M"]:
        """The mean of the kernel under that law; an edge has the mean of its two cells."""
        centre = self.third(psi) @ kernel
        return (centre + jnp.roll(centre, 1)) / 2


class MolecularChaos(ThirdToken):
    """θ₃ is independent of both others: uniform. The term g vanishes.

    >>> print(MolecularChaos().third(jnp.ones(4))[1])
    [0.25 0.25 0.25 0.25]
    """

    idea: ClassVar[str] = "the third is independent"

    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        return jnp.full((len(psi), len(psi)), 1 / len(psi), psi.dtype)


class Gaussian(ThirdToken):
    """The third cumulant vanishes, as for small Gaussian waves on the uniform measure.

        ρ₃ ∝ w₁₂ + w₁₃ + w₂₃ − 2

    It is exact to first order in w − 1. What is negative is cut off.

    >>> print(Gaussian().third(jnp.ones(4) / (2 * jnp.pi))[1].round(6))
    [0.25 0.25 0.25 0.25]
    """

    idea: ClassVar[str] = "no third cumulant"

    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        w = _ratio(psi)
        return law(jnp.maximum(w[:, None] + w[None, :] + third_side(w) - 2, 0) + _tiny(w))


class Kirkwood(ThirdToken):
    """Kirkwood's superposition: a triple is as likely as its three pairs, `ρ₃ ∝ w₁₂ w₁₃ w₂₃`.

    Normalised for each pair, so that θ₃ has a law. Its pairs 1, 3 do not have the law ψ.

    >>> print(Kirkwood().third(jnp.array([2.0, 1.0, 1.0, 1.0]))[1].round(3))
    [0.333 0.333 0.167 0.167]
    """

    idea: ClassVar[str] = "product of the pairs"

    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        """Products w₁₃ w₂₃, by rows; w₁₂ is the same along a row."""
        w = _ratio(psi)
        return law(w[None, :] * third_side(w))


class MaximumEntropy(ThirdToken):
    """The triple law of most entropy whose pairs all have the law ψ, `ρ₃ = a₁₂ a₁₃ a₂₃`.

    Kirkwood's product with other factors: a is found by proportional fitting.

    >>> psi = jnp.array([2.0, 1.0, 1.0, 1.0]) / 5
    >>> rows = MaximumEntropy().third(psi)
    >>> print((psi @ rows).round(4))
    [0.4 0.2 0.2 0.2]
    """

    idea: ClassVar[str] = "product, with the right pairs"

    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        w = _ratio(psi)
        return law(consistent(w[:, None] * w[None, :] * third_side(w), w))


class Companions(ThirdToken):
    """Two tokens that are closer than chance would have it count as one for the third.

    Of the pairs at distance r, w(r) times as many as of independent tokens, `s = 1 − 1/w(r)`
    are together by attraction and not by chance (s = 0 where w ≤ 1). With r the shortest of the
    three distances,

        ρ₃ ∝ w(r) ((1 − s) w w' + s √(w w')),      w, w' the ratios of the other two pairs:

    strangers are superposed as Kirkwood's, a cluster pays once for its distance to the third
    and not once for each member. Then pairs are given the law ψ, as in `MaximumEntropy`. It is
    exact to first order in w − 1, and there is no number to choose.

    >>> psi = jnp.array([2.0, 1.0, 1.0, 1.0]) / 5
    >>> print((psi @ Companions().third(psi)).round(4))
    [0.4 0.2 0.2 0.2]
    """

    idea: ClassVar[str] = "a cluster is one token"

    def third(self, psi: Float[Array, " M"]) -> Float[Array, "M M"]:
        """Fitted from the superposition of clusters and strangers."""
        w = _ratio(psi)
        shortest, others = gaps(w)
        together = jnp.maximum(0, 1 - 1 / shortest)
        weights = shortest * ((1 - together) * others + together * jnp.sqrt(others))
        return law(consistent(weights, w))


CLOSURES: dict[str, ThirdToken] = {
    "chaos": MolecularChaos(),
    "gaussian": Gaussian(),
    "kirkwood": Kirkwood(),
    "entropy": MaximumEntropy(),
    "companions": Companions(),
}
"""The closures by name."""


def _ratio(psi: Float[Array, " M"]) -> Float[Array, " M"]:
    """w = 2πψ, for ψ of any mass."""
    return jnp.maximum(psi / psi.mean(), jnp.asarray(MIN_RATIO, psi.dtype))


def _tiny(w: Float[Array, " M"]) -> Float[Array, ""]:
    return jnp.asarray(MIN_RATIO, w.dtype)
